"""A restore leaves nothing that could run by itself, and changes nothing where it cannot be whole."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from store_copied import backed_up, beside, restored, rows
from store_disk import write_one
from store_scene import DAY, HOUR, MINUTE, NINE, Scene, hourly, minutely, scene
from test_store_verify import lived

from duly.errors import DulyError, Invalid, Refused, StoreAway, StoreBusy
from duly.holder.presence import Presence
from duly.operations import runs as run_operations
from duly.operations import tasks
from duly.operations.audit import verify
from duly.operations.restoring import FENCES_AHEAD
from duly.runners.folders import make_folder
from duly.store import Store, copies, engine
from duly.store.address import is_remembered

pytestmark = pytest.mark.file("copies")


@pytest.fixture
def s(tmp_path: Path) -> Iterator[Scene]:
    (tmp_path / "store").mkdir()
    with scene(tmp_path / "store") as made:
        yield made


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
