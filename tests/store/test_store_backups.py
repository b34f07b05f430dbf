"""Backups are whole, restores leave nothing that could run, and neither ever loses what was there."""

import shutil
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from store_disk import write_one
from store_scene import DAY, HOUR, MINUTE, NINE, Scene, hourly, minutely, scene
from test_store_verify import lived

from duly.clock import to_us
from duly.errors import DulyError, Invalid, Refused, StoreAway, StoreBusy
from duly.holder.presence import Presence
from duly.operations import backups, restoring, tasks
from duly.operations import runs as run_operations
from duly.operations.audit import verify
from duly.operations.restoring import FENCES_AHEAD
from duly.runners.folders import make_folder
from duly.store import Store, copies, engine, making
from duly.store.address import Address, is_remembered
from duly.store.migrations import REVISIONS

pytestmark = pytest.mark.file("copies")


@pytest.fixture
def s(tmp_path: Path) -> Iterator[Scene]:
    (tmp_path / "store").mkdir()
    with scene(tmp_path / "store") as made:
        yield made


def backed_up(s: Scene, name: str = "copy.db") -> Path:
    return backups.backup(s.file, s.folder.parent / name, s.environ, now=s.clock.now()).file


def restored(s: Scene, file: Path) -> restoring.Restored:
    return restoring.restore(s.file, file, s.environ, by="ann", clock=s.clock)


def rows(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as raw:
        return [line for line in raw.iterdump() if "backed_up_us" not in line]


def beside(s: Scene) -> set[str]:
    return {one.name for one in s.folder.iterdir()} - {"home", "duly.db", "duly.db-wal", "duly.db-shm", "duly.db.run"}


def test_a_backup_holds_every_row_in_one_file_for_this_user_alone(s: Scene) -> None:
    lived(s)
    done = backups.backup(s.file, s.folder.parent / "copy.db", s.environ, now=s.clock.now())
    assert rows(done.file) == rows(s.path)
    assert stat.S_IMODE(done.file.stat().st_mode) == 0o600
    assert (done.contents.taken_at, done.contents.tasks) == (s.clock.now(), 1)
    assert {one.name for one in s.folder.parent.iterdir()} == {"store", "copy.db"}, "no log, nothing half-made"
    copy = Store.open(Address(path=done.file), s.environ, noted=False)
    assert verify(copy) == []
    copy.close()


def test_a_backup_holds_what_only_the_log_held(s: Scene) -> None:
    s.add("in-the-log-alone", hourly())
    assert b"in-the-log-alone" not in s.path.read_bytes()
    file = backed_up(s)
    assert b"in-the-log-alone" in file.read_bytes()
    assert rows(file) == rows(s.path)


def test_a_backup_is_never_written_over_a_file_not_even_over_one_that_comes_meanwhile(
    s: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = s.folder.parent / "copy.db"
    target.write_text("a diary")
    with pytest.raises(Refused) as refused:
        backed_up(s)
    assert refused.value.reason == "already_exists"
    target.unlink()
    whole = copies.check

    def late(path: Path) -> None:
        whole(path)
        target.write_text("a diary")

    monkeypatch.setattr(copies, "check", late)
    with pytest.raises(Refused):
        backed_up(s)
    assert target.read_text() == "a diary"
    assert {one.name for one in s.folder.parent.iterdir()} == {"store", "copy.db"}


def test_a_backup_goes_to_a_file_system_without_hard_links_too(s: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("os.link", refuse)
    lived(s)
    file = backed_up(s)
    assert rows(file) == rows(s.path)
    with pytest.raises(Refused):
        backed_up(s)
    assert {one.name for one in s.folder.parent.iterdir()} == {"store", "copy.db"}


def test_a_damaged_store_is_not_backed_up_as_if_it_were_sound(s: Scene) -> None:
    damage(s)
    with pytest.raises(StoreAway, match="damaged"):
        backed_up(s)
    assert {one.name for one in s.folder.parent.iterdir()} == {"store"}


def damage(s: Scene) -> None:
    """Break pages in the middle of the file, so that it opens and is not sound."""
    lived(s)
    s.close()
    with closing(sqlite3.connect(s.path)) as raw:
        raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        page = raw.execute("SELECT rootpage FROM sqlite_master WHERE name = 'runs_task'").fetchone()[0]
        size = raw.execute("PRAGMA page_size").fetchone()[0]
    with s.path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)


def test_after_a_restore_all_is_as_in_the_backup_but_at_rest(s: Scene) -> None:
    task = s.add("one", minutely(), on_missed="run")
    file = backed_up(s)
    s.add("later", hourly())
    s.at(NINE + 5 * MINUTE)
    s.plan()
    before = rows(s.path)
    done = restored(s, file)
    assert done.kept is not None
    assert rows(done.kept) == before, "nothing of what was there is lost"
    with s.store.read() as session:
        assert [one.definition.name for one in session.tasks.page()] == ["one"]
        (pause,) = session.pauses.all()
        assert (pause.scope, pause.until) == ("store", None)
        assert session.tasks.due(NINE + DAY, 10) == []
    assert s.task(task.id).planned_until == NINE + 5 * MINUTE
    assert [(one.task.definition.name, one.stretch.count) for one in done.due] == [("one", 5)]
    assert (done.due[0].stretch.first, done.due[0].stretch.last) == (NINE + MINUTE, NINE + 5 * MINUTE)
    assert s.faults() == []


def test_nothing_that_was_due_before_a_restore_is_opened_after_it(s: Scene) -> None:
    s.add("one", minutely(), on_missed="run", max_age=DAY)
    file = backed_up(s)
    s.at(NINE + 5 * MINUTE)
    restored(s, file)
    s.at(NINE + 7 * MINUTE)
    assert s.plan() == []
    tasks.unpause(s.store, "store", "", by="ann")
    assert s.plan() == []
    s.at(NINE + 8 * MINUTE)
    assert [run.due_at for run in s.plan()] == [NINE + 8 * MINUTE]
    assert s.faults() == []


def test_a_once_whose_time_passed_since_the_backup_is_told_and_never_runs(s: Scene) -> None:
    from duly.core.triggers import Once

    task = s.add("one", Once(at=NINE + HOUR))
    file = backed_up(s)
    s.at(NINE + 2 * HOUR)
    assert [one.stretch.count for one in restored(s, file).due] == [1]
    tasks.unpause(s.store, "store", "", by="ann")
    s.at(NINE + 3 * HOUR)
    assert s.plan() == []
    assert s.task(task.id).done
    assert s.faults() == []


def test_what_waited_or_was_held_at_the_backup_ends_with_a_reason_in_the_ledger(s: Scene) -> None:
    held = s.held("held", limits={"db": 1}).run
    s.add("by-hand", minutely())
    waiting = run_operations.run_now(s.store, "by-hand", by="ann")
    file = backed_up(s)
    done = restored(s, file)
    assert {(run.id, run.outcome, run.reason) for run in done.ended} == {
        (held.id, "abandoned", "end_not_confirmed"),
        (waiting.id, "skipped", "paused"),
    }
    assert s.run(held.id).error == (
        "restored from a backup of 2026-03-02T10:00:00Z, and how it went on is not known here"
    )
    assert s.kinds()[-4:] == ["skipped", "ended", "paused", "outage"]
    with s.store.read() as session:
        assert session.runs.counts() == {}
        assert [limit.used for limit in session.crowd.all()] == [0]
    assert s.task(held.task).failures_in_a_row == 0
    assert s.faults() == []


def test_what_is_claimed_after_a_restore_has_a_higher_fence_than_what_was_claimed_before_it(s: Scene) -> None:
    task = s.add("one", minutely())
    file = backed_up(s)
    for number in range(1, 4):
        s.at(NINE + number * MINUTE)
        s.plan()
        s.settle(s.claim()[0])
    before = s.task(task.id).fence
    restored(s, file)
    tasks.unpause(s.store, "store", "", by="ann")
    s.at(NINE + 5 * MINUTE)
    s.plan()
    (won,) = s.claim()
    assert won.run.fence == FENCES_AHEAD + 1 > before
    s.settle(won)
    assert s.faults() == []


def test_the_numbers_of_the_ledger_go_on_above_all_that_were_read_before_a_restore(s: Scene) -> None:
    file = backed_up(s)
    for _ in range(50):
        write_one(s.store)
    with s.store.read() as session:
        before = session.ledger.last()
    restored(s, file)
    write_one(s.store)
    with s.store.read() as session:
        assert session.ledger.last() > before + 1000


def test_a_pause_that_would_have_ended_by_itself_does_not_end_a_restores_rest(s: Scene) -> None:
    s.add("one", minutely())
    tasks.pause(s.store, "store", "", until=NINE + HOUR, note="moving", by="bob")
    file = backed_up(s)
    s.at(NINE + MINUTE)
    done = restored(s, file)
    assert done.pause.note == "restored from a backup of 2026-03-02T09:00:00Z; before: moving"
    assert done.due == []
    s.at(NINE + 2 * HOUR)
    assert s.plan() == []
    assert s.faults() == []


def test_a_task_that_was_disabled_or_paused_at_the_backup_had_nothing_due(s: Scene) -> None:
    for name in ("disabled", "paused", "over"):
        s.add(name, minutely())
    tasks.disable(s.store, "disabled", by="ann")
    tasks.pause(s.store, "task", "paused", until=None, note=None, by="ann")
    tasks.pause(s.store, "task", "over", until=NINE + 3 * MINUTE, note=None, by="ann")
    file = backed_up(s)
    s.at(NINE + 10 * MINUTE)
    done = restored(s, file)
    assert [(one.task.definition.name, one.stretch.count) for one in done.due] == [("over", 7)]
    assert s.faults() == []


def test_a_store_that_is_gone_is_brought_back_and_a_log_that_was_left_is_no_part_of_it(s: Scene) -> None:
    lived(s)
    file = backed_up(s)
    s.close()
    s.path.unlink()
    (s.folder / "duly.db-wal").write_bytes(b"of another store")
    with pytest.raises(StoreAway, match="is gone") as gone:
        Store.open(s.file, s.environ)
    assert "duly restore" in str(gone.value.hint)
    done = restored(s, file)
    assert (s.folder / "duly.db.before-restore.1-wal").read_bytes() == b"of another store"
    assert done.kept is None, "of the store itself nothing was left"
    store = Store.open(s.file, s.environ)
    assert store.faults() == []
    assert verify(store) == []
    store.close()
    assert is_remembered(s.file, s.environ)
    assert s.path.stat().st_nlink == 1


@pytest.mark.parametrize("what", ["pages", "no database", "empty", "a folder's file"])
def test_a_store_that_is_damaged_is_moved_aside_and_the_backup_takes_its_place(s: Scene, what: str) -> None:
    lived(s)
    file = backed_up(s)
    if what == "pages":
        s.close()
        shutil.rmtree(s.folder)
        s.folder.mkdir()
        shutil.copy(file, s.path)
        with closing(sqlite3.connect(s.path)) as raw:
            page = raw.execute("SELECT rootpage FROM sqlite_master WHERE name = 'runs_task'").fetchone()[0]
        with s.path.open("r+b") as damaged:
            damaged.seek((page - 1) * 4096)
            damaged.write(b"\xff" * 4096)
    else:
        s.close()
        s.path.write_bytes({"no database": b"x" * 9999, "empty": b""}.get(what, b"SQLite format 3\0"))
    left = s.path.read_bytes()
    done = restored(s, file)
    assert done.kept is not None
    assert done.kept.read_bytes() == left
    store = Store.open(s.file, s.environ)
    assert verify(store) == []
    store.close()


def test_a_restore_over_a_served_store_is_refused_and_changes_nothing(s: Scene) -> None:
    lived(s)
    file = backed_up(s)
    before = rows(s.path)
    life = Presence(s.store.run_folder, "hld_x")
    try:
        with pytest.raises(Refused, match="hld_x serves") as refused:
            restored(s, file)
        assert refused.value.reason == "already_running"
    finally:
        life.leave()
    assert rows(s.path) == before
    assert beside(s) == set()


def test_a_restore_while_work_of_the_store_lives_is_refused(s: Scene) -> None:
    file = backed_up(s)
    folder = s.store.run_folder / "attempts" / "run_x.7"
    s.store.run_folder.mkdir()
    make_folder(folder)
    with (folder / "lock").open("w") as lock:
        import fcntl

        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(Refused, match=r"alive: run_x\.7"):
            restored(s, file)
    restored(s, file)


def test_one_that_begins_to_serve_while_a_restore_is_made_ready_stops_it(
    s: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = backed_up(s)
    lives: list[Presence] = []
    finish = copies.finish

    def late(path: Path, ahead: int) -> None:
        finish(path, ahead)
        lives.append(Presence(s.store.run_folder, "hld_x"))

    monkeypatch.setattr(copies, "finish", late)
    before = rows(s.path)
    with pytest.raises(Refused, match="hld_x serves"):
        restored(s, file)
    lives[0].leave()
    assert rows(s.path) == before
    assert beside(s) == set()


def test_a_restore_that_cannot_get_the_lock_changes_nothing(s: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    write_one(s.store)
    file = backed_up(s)
    monkeypatch.setattr(engine, "PATIENCE_S", 0.3)
    with closing(sqlite3.connect(s.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreBusy):
            restored(s, file)
        other.execute("ROLLBACK")
    assert [one.kind for one in s.entries()] == ["defined"]
    with s.store.read() as session:
        assert session.pauses.all() == []


@pytest.mark.parametrize(
    ("what", "error", "text"),
    [
        ("nothing", Invalid, "there is no file"),
        ("a folder", Invalid, "is not a file"),
        ("no database", StoreAway, "is not a SQLite database"),
        ("another database", StoreAway, "is not a store of Duly's"),
        ("pages", StoreAway, "damaged"),
        ("a newer one", DulyError, "99.0"),
        ("the store itself", Invalid, "it is the store itself"),
        ("a link to the store", Invalid, "it is the store itself"),
    ],
)
def test_what_is_no_backup_is_refused_and_changes_nothing(
    s: Scene, what: str, error: type[DulyError], text: str
) -> None:
    lived(s)
    file = backed_up(s)
    before = rows(s.path)
    match what:
        case "nothing":
            file.unlink()
        case "a folder":
            file.unlink()
            file.mkdir()
        case "no database":
            file.write_bytes(b"x" * 9999)
        case "another database":
            file.unlink()
            with closing(sqlite3.connect(file)) as raw:
                raw.execute("CREATE TABLE notes (text)")
        case "pages":
            with file.open("r+b") as damaged:
                damaged.seek(8192)
                damaged.write(b"\xff" * 8192)
        case "a newer one":
            with closing(sqlite3.connect(file, isolation_level=None)) as raw:
                raw.execute("UPDATE meta SET value = '99.0' WHERE key = 'lowest_version'")
        case "the store itself":
            file = s.path
        case _:
            file.unlink()
            file.symlink_to(s.path)
    with pytest.raises(error, match=text):
        restored(s, file)
    assert rows(s.path) == before
    assert beside(s) == set()


def first_revision(path: Path) -> None:
    """Make a store as the first revision was."""
    from alembic import command
    from alembic.config import Config
    from sqlalchemy import create_engine

    config = Config()
    config.set_main_option("script_location", str(Path(making.__file__).parent / "migrations"))
    alchemy = create_engine(f"sqlite:///{path}")
    with alchemy.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0001")
    alchemy.dispose()
    with closing(sqlite3.connect(path, isolation_level=None)) as raw:
        raw.execute(f"PRAGMA application_id = {engine.APPLICATION_ID}")
        raw.execute("INSERT INTO meta VALUES ('lowest_version', '0.1.0'), ('store_id', 'x')")
        raw.execute("INSERT INTO ledger (at_us, kind) VALUES (?, 'defined')", (to_us(NINE),))


def test_a_backup_of_an_older_version_is_brought_up_to_date_on_its_way(s: Scene) -> None:
    lived(s)
    file = s.folder.parent / "old.db"
    first_revision(file)
    before = file.read_bytes()
    assert restored(s, file).contents.revision == "0001"
    assert file.read_bytes() == before
    with s.connect().read() as session:
        assert session.tasks.page() == []
    assert s.faults() == []


def test_an_older_store_is_backed_up_as_it_is_and_migrated_after_a_backup(s: Scene) -> None:
    s.close()
    s.path.unlink()
    first_revision(s.path)
    assert restoring.examine(backed_up(s)).revision == "0001"
    done = backups.migrate(s.file, s.environ)
    assert (done.before, done.after) == ("0001", REVISIONS[-1])
    assert done.backup is not None
    assert restoring.examine(done.backup).revision == "0001"
    assert backups.migrate(s.file, s.environ).backup is None


def test_a_log_left_at_the_place_is_no_part_of_a_store_that_is_made_anew(s: Scene) -> None:
    write_one(s.store)
    log = (s.folder / "duly.db-wal").read_bytes()
    s.close()
    s.path.unlink()
    (s.folder / "duly.db-wal").write_bytes(log)
    assert making.make(s.file, s.environ, again=True)
    store = Store.open(s.file, s.environ)
    with store.read() as session:
        assert session.ledger.last() == 0
    assert store.faults() == []
    store.close()
    assert (s.folder / "duly.db.lost.1-wal").read_bytes() == log


def test_migrating_a_store_that_is_up_to_date_does_nothing(s: Scene) -> None:
    lived(s)
    before = rows(s.path)
    done = backups.migrate(s.file, s.environ)
    assert (done.before, done.after, done.backup) == (REVISIONS[-1], REVISIONS[-1], None)
    assert rows(s.path) == before
    assert beside(s) == set()


def test_a_backup_does_not_wait_for_a_writer(s: Scene) -> None:
    with closing(sqlite3.connect(s.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        other.execute("INSERT INTO meta VALUES ('half', 'written')")
        file = backed_up(s)
        other.execute("ROLLBACK")
    assert not any("half" in line for line in rows(file))


def test_the_age_of_a_backup_that_does_not_tell_it_is_that_of_its_newest_entry(s: Scene) -> None:
    s.add("one", hourly())
    file = s.folder.parent / "plain.db"
    with closing(sqlite3.connect(s.path)) as raw, closing(sqlite3.connect(file)) as copy:
        raw.backup(copy)
    assert restoring.examine(file).taken_at == NINE
    s.at(NINE + timedelta(hours=3))
    assert [one.stretch.count for one in restored(s, file).due] == [3]
