"""The file: durable, left alone by readers, waited for, and what becomes of it when the disk or a hand does harm."""

import contextlib
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from store_scene import HOUR, MINUTE, NINE, SUCCEEDED, Scene, hourly, losing, minutely, scene

from duly import clock
from duly.core.run import Entry
from duly.errors import StoreAway, StoreBusy, StoreNewer, StoreUnknown
from duly.holder.settling import Returned
from duly.operations import runs as run_operations
from duly.operations import tasks as task_operations
from duly.store import Session, Store, engine, making
from duly.store.address import Address, is_remembered, resolve

HOLD_THE_LOCK = """
import sqlite3, sys, time
raw = sqlite3.connect(sys.argv[1], isolation_level=None)
raw.execute("BEGIN IMMEDIATE")
raw.execute("INSERT INTO meta VALUES ('held', 'by another')")
print("held", flush=True)
seconds = sys.argv[2]
time.sleep(float(seconds)) if seconds else sys.stdin.readline()
raw.execute("ROLLBACK")
"""


@contextmanager
def locked(path: Path, seconds: float | None = None) -> Iterator[subprocess.Popen[str]]:
    """Another process holds the write lock, for so long or until it is told."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD_THE_LOCK, str(path), "" if seconds is None else str(seconds)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "held\n"
            yield process
        finally:
            process.kill()


def entry(kind: str = "defined") -> Entry:
    return Entry(kind=kind, at=NINE)


def write_one(store: Store, **told: float) -> None:
    with store.write(**told) as session:  # type: ignore[arg-type]
        session.ledger.add([entry()])


def snapshot(s: Scene) -> dict[str, tuple[bytes, int]]:
    """The bytes and the time of change of the database and its log."""
    return {
        name: (path.read_bytes(), path.stat().st_mtime_ns)
        for name in ("duly.db", "duly.db-wal")
        if (path := s.folder / name).exists()
    }


# What is in force


def test_full_durability_and_the_write_ahead_log_are_in_force_on_every_connection(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        for store in (s.store, s.connect(), s.store.another()):
            assert store.synchronous() == 2
            assert store._line.scalar("PRAGMA journal_mode") == "wal"
            store.close()


def test_a_store_is_made_for_its_owner_alone_with_all_that_lies_beside_it(tmp_path: Path) -> None:
    address = Address(path=tmp_path / "duly.db")
    environ = {"HOME": str(tmp_path / "home")}
    before = os.umask(0)
    try:
        store = Store.open(address, environ, create=True)
        write_one(store)
        for name in ("duly.db", "duly.db-wal", "duly.db-shm"):
            assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600, name
        store.close()
    finally:
        os.umask(before)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["duly.db", "home"], "nothing half-made is left"


def test_an_id_marks_the_file_as_ours_and_each_store_has_its_own(tmp_path: Path) -> None:
    seen = set()
    for name in ("a.db", "b.db"):
        making.make(Address(path=tmp_path / name), {"HOME": str(tmp_path)})
        with closing(sqlite3.connect(tmp_path / name)) as raw:
            assert raw.execute("PRAGMA application_id").fetchone() == (0x44756C79,)
            seen |= set(raw.execute("SELECT value FROM meta WHERE key = 'store_id'").fetchall())
    assert len(seen) == 2


# Reading


def test_reading_changes_no_byte_and_needs_no_lock(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        won = s.held()
        s.add("two", minutely())
        s.at(NINE + 5 * HOUR)
        before = snapshot(s)
        reader = Store.find(s.address, s.environ, clock=s.clock)
        assert reader is not None
        with locked(s.address.path):
            for _ in range(20):
                with reader.read() as session:
                    assert len(session.tasks.page()) == 2
                    assert session.runs.by_id(won.run.id) == won.run
                    session.tasks.due(session.now, 10)
                    session.ledger.after(0)
                assert s.faults() == []
        reader.close()
        assert snapshot(s) == before


def test_reading_alone_leaves_the_file_as_it_was_when_all_have_gone(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.add("one", hourly())
    before = snapshot(s)
    reader = Store.find(s.address, s.environ)
    assert reader is not None
    with reader.read() as session:
        assert session.tasks.counts()[0] == 1
    reader.close()
    assert snapshot(s)["duly.db"] == before["duly.db"]


def test_a_reader_cannot_write_even_by_mistake(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        reader = Store.find(s.address, s.environ)
        assert reader is not None
        with pytest.raises(StoreAway), reader.read() as session:
            session.ledger.add([entry()])
        with pytest.raises(StoreAway):
            write_one(reader)
        reader.close()
        assert s.entries() == []


def test_a_read_sees_one_moment_whatever_is_written_meanwhile(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        other = s.connect()
        with other.read() as session:
            assert session.ledger.last() == 0
            write_one(s.store)
            assert session.ledger.last() == 0
        with other.read() as session:
            assert session.ledger.last() == 1


# Writing


def test_a_writer_waits_through_anothers_second_with_the_lock(tmp_path: Path) -> None:
    with scene(tmp_path) as s, locked(s.address.path, seconds=1):
        began = clock.monotonic_s()
        write_one(s.store)
        waited = clock.monotonic_s() - began
        assert 0.5 < waited < 6
        assert len(s.entries()) == 1
        assert s.store.company.present(), "that somebody else writes was noticed"


def test_a_writer_says_busy_when_its_patience_is_over_and_has_written_nothing(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        with locked(s.address.path):
            began = clock.monotonic_s()
            with pytest.raises(StoreBusy):
                write_one(s.store, patience_s=0.3)
            assert 0.25 < clock.monotonic_s() - began < 5
        write_one(s.store)
        assert len(s.entries()) == 1


def test_a_write_sees_what_was_committed_while_it_waited_and_never_fails_for_having_read_before(tmp_path: Path) -> None:
    """Begun deferred, a transaction that has read and then writes is refused when another committed between."""
    with scene(tmp_path) as s:
        one, two = s.store, s.connect()
        for n in range(20):
            with one.read() as session:
                assert session.ledger.last() == 2 * n
            write_one(two)
            with one.write() as session:
                assert session.ledger.last() == 2 * n + 1, "the lock comes first, then the look"
                session.ledger.add([entry()])
        # What the house does not do:
        with closing(sqlite3.connect(s.address.path, isolation_level=None, timeout=0)) as raw:
            raw.execute("BEGIN")
            raw.execute("SELECT count(*) FROM ledger").fetchone()
            write_one(two)
            with pytest.raises(sqlite3.OperationalError, match="locked"):
                raw.execute("INSERT INTO meta VALUES ('a', 'b')")


def test_every_write_begins_with_the_lock_before_anything_is_read(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.held("busy")
        s.add("one", hourly())
        sent: list[str] = []
        s.store._line.raw.set_trace_callback(sent.append)
        run = run_operations.run_now(s.store, "one", by="ann")
        run_operations.cancel(s.store, run.id, by="ann")
        task_operations.pause(s.store, "task", "one", until=None, note=None, by="ann")
        task_operations.unpause(s.store, "task", "one", by="ann")
        task_operations.disable(s.store, "one", by="ann")
        task_operations.enable(s.store, "one", by="ann")
        task_operations.remove(s.store, "one", by="ann")
        s.plan()
        s.claim()
        s.store._line.raw.set_trace_callback(None)
        inside = False
        begun = 0
        for text in sent:
            words = text.split()
            if words[:2] == ["BEGIN", "IMMEDIATE"]:
                assert not inside
                inside, begun = True, begun + 1
            elif words[0] in {"COMMIT", "ROLLBACK"} and len(words) == 1:
                inside = False
            elif words[0] in {"INSERT", "UPDATE", "DELETE"} or (words[0] == "WITH" and "UPDATE" in words):
                assert inside, text
            elif words[0] == "BEGIN":
                raise AssertionError("a deferred begin on a road that writes")
        assert begun == 9


def breaks_after_writing(session: Session) -> None:
    session.ledger.add([entry("paused")])
    raise ZeroDivisionError


def test_what_raises_inside_a_write_undoes_all_of_it(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        with pytest.raises(ZeroDivisionError), s.store.write() as session:
            breaks_after_writing(session)
        assert s.entries() == []
        write_one(s.store)
        assert len(s.entries()) == 1


def test_a_savepoint_undoes_only_what_was_inside_it(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        with s.store.write() as session:
            session.ledger.add([entry("defined")])
            with pytest.raises(ZeroDivisionError), session.line.savepoint():
                breaks_after_writing(session)
            with session.line.savepoint():
                session.ledger.add([entry("removed")])
        assert s.kinds() == ["defined", "removed"]


# A full disk


def fill(store: Store, s: Scene) -> None:
    """Open rows until the disk is full, in one transaction."""
    with store.write() as session:
        session.ledger.add([entry("paused")])
        for _ in range(2000):
            session.ledger.add([Entry(kind="defined", at=NINE, details={"long": "x" * 2000})] * 8)


def test_a_full_disk_undoes_the_whole_write_and_the_store_goes_on_when_there_is_room(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        won = s.held()
        before = (s.entries(), s.runs())
        raw = s.store._line.raw
        pages = raw.execute("PRAGMA page_count").fetchone()[0]
        raw.execute(f"PRAGMA max_page_count = {pages + 20}")
        for _ in range(2):
            with pytest.raises(StoreAway, match="full"):
                fill(s.store, s)
            assert not raw.in_transaction
            assert (s.entries(), s.runs()) == before
        raw.execute("PRAGMA max_page_count = 1000000")
        s.settle(won)
        assert s.run(won.run.id).outcome == "succeeded"
        assert s.store.quick_check() == "ok"
        assert s.faults() == []


@pytest.mark.parametrize("room", range(0, 24, 4))
def test_a_plan_that_meets_a_full_disk_is_made_whole_later_or_was_not_made_at_all(tmp_path: Path, room: int) -> None:
    with scene(tmp_path) as s:
        for number in range(60):
            s.add(f"task {number}", hourly(), on_missed="skip" if number % 3 else "run")
        s.at(NINE + 3 * HOUR + MINUTE / 2)
        raw = s.store._line.raw
        pages = raw.execute("PRAGMA page_count").fetchone()[0]
        before = (s.sql("SELECT * FROM tasks"), s.entries(), s.runs(), s.sql("SELECT * FROM missed"))
        raw.execute(f"PRAGMA max_page_count = {pages + room}")
        try:
            s.plan()
        except StoreAway:
            assert (s.sql("SELECT * FROM tasks"), s.entries(), s.runs(), s.sql("SELECT * FROM missed")) == before
        raw.execute("PRAGMA max_page_count = 1000000")
        s.plan()
        assert len(s.runs()) == 60
        assert s.faults() == []


def write_through_a_full_disk(s: Scene, session: Session) -> None:
    """Go on after the disk was full inside a savepoint, without asking whether the transaction still stands."""
    session.ledger.add([entry("paused")])
    with contextlib.suppress(sqlite3.Error), session.line.savepoint():
        for _ in range(200):
            session.ledger.add([Entry(kind="defined", at=NINE, details={"long": "x" * 4000})])
    session.line.raw.execute("PRAGMA max_page_count = 1000000")
    session.ledger.add([entry("removed")])


def test_a_transaction_that_the_full_disk_ended_is_reported_even_to_who_did_not_ask(tmp_path: Path) -> None:
    """SQLite ends the whole transaction, not the savepoint alone: what follows commits by itself, so it is told."""
    with scene(tmp_path) as s:
        raw = s.store._line.raw
        pages = raw.execute("PRAGMA page_count").fetchone()[0]
        raw.execute(f"PRAGMA max_page_count = {pages + 4}")
        with pytest.raises(StoreAway), s.store.write() as session:
            write_through_a_full_disk(s, session)
        assert s.kinds().count("paused") == 0
        write_one(s.store)


# A lost answer


@pytest.mark.parametrize("kept", [True, False], ids=["kept", "not kept"])
def test_an_end_whose_answer_was_lost_is_told_again_without_a_double(tmp_path: Path, kept: bool) -> None:
    with scene(tmp_path) as s:
        won = s.held()
        with losing(s.store, before=not kept), pytest.raises(StoreUnknown):
            s.settle(won)
        assert (s.run(won.run.id).state == "ended") == kept
        settled = s.settle(won)
        assert settled.run is not None
        assert settled.run == s.run(won.run.id)
        assert s.run(won.run.id).outcome == "succeeded"
        assert s.kinds().count("ended") == 1
        assert "fence_lost" not in s.kinds()
        assert s.task(won.run.task).runs == 1
        assert s.faults() == []


def test_a_claim_whose_answer_was_lost_is_held_by_its_holder_and_by_nobody_else(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.add("one", hourly())
        s.at(NINE + HOUR)
        (run,) = s.plan()
        with losing(s.store), pytest.raises(StoreUnknown):
            s.claim()
        assert s.claim(s.connect(), "hld_b") == []
        stands = s.run(run.id)
        assert (stands.state, stands.holder) == ("held", "hld_a")
        with s.store.write() as session:
            assert [one.id for one in session.runs.held_by("hld_a")] == [run.id], "a beat names it as a stray"
        assert s.faults() == []


def test_a_giving_back_whose_answer_was_lost_is_not_taken_for_a_lost_fence_of_another(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        won = s.held()
        with losing(s.store), pytest.raises(StoreUnknown):
            s.settle(won, Returned(why="x"))
        s.settle(won, Returned(why="x"))
        run = s.run(won.run.id)
        assert (run.state, run.attempt) == ("waiting", 1)
        assert s.kinds().count("returned") == 1
        assert "fence_lost" not in s.kinds(), "nobody took it away"
        assert s.faults() == []


def test_a_plan_whose_answer_was_lost_is_not_made_again(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.add("one", minutely())
        s.at(NINE + 3 * MINUTE)
        with losing(s.store), pytest.raises(StoreUnknown):
            s.plan()
        assert s.plan() == []
        assert len(s.runs()) == 1
        assert s.faults() == []


def test_an_ask_by_hand_whose_answer_was_lost_is_safe_to_repeat_with_its_key(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.add("one", hourly())
        with losing(s.store), pytest.raises(StoreUnknown):
            run_operations.run_now(s.store, "one", by="ann", key="k")
        run_operations.run_now(s.store, "one", by="ann", key="k")
        assert len(s.runs()) == 1
        assert s.kinds().count("opened") == 1


# A store that is gone, replaced, damaged, foreign


def test_a_store_that_vanished_under_an_open_one_is_an_error_and_nothing_is_made_in_its_place(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.add("one", hourly())
        s.address.path.rename(tmp_path / "elsewhere.db")
        with pytest.raises(StoreAway, match="gone"):
            write_one(s.store)
        with pytest.raises(StoreAway, match="gone"):
            s.store.another()
        for create in (False, True):
            with pytest.raises(StoreAway, match="gone"):
                Store.open(s.address, s.environ, create=create)
        with pytest.raises(StoreAway, match="gone"):
            Store.find(s.address, s.environ)
        assert not s.address.path.exists()
        (tmp_path / "elsewhere.db").rename(s.address.path)
        write_one(s.store)
        assert len(s.entries()) == 2, "brought back, it goes on"


def test_a_vanished_store_is_made_anew_only_where_that_was_asked_for(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.address.path.unlink()
        assert making.make(s.address, s.environ, again=True)
        assert not making.make(s.address, s.environ, again=True), "on a standing one it changes nothing"
        with pytest.raises(StoreAway, match="gone"):
            write_one(s.store)


def test_a_store_replaced_by_another_file_is_not_written(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.add("one", hourly())
        other = tmp_path / "other.db"
        making.make(Address(path=other), s.environ)
        replaced = other.read_bytes()
        other.rename(s.address.path)
        with pytest.raises(StoreAway):
            write_one(s.store)
        assert s.address.path.read_bytes() == replaced


def closed_store(folder: Path) -> Scene:
    """A store with some rows, all of it in the one file."""
    with scene(folder) as s:
        for number in range(40):
            s.add(f"task {number}", hourly())
    assert not (folder / "duly.db-wal").exists()
    return s


def uses(s: Scene) -> None:
    """Open it every way and read all of it."""
    for opens in (Store.find, Store.open):
        store = opens(s.address, s.environ)
        assert store is not None
        try:
            read_all(store)
        finally:
            store.close()


def read_all(store: Store) -> None:
    with store.read() as session:
        session.tasks.page()
        session.ledger.after(0, most=10_000)


@pytest.mark.parametrize("size", [0, 50, 100, 4096, 9000])
def test_a_truncated_store_is_an_error_and_is_left_as_it_is(tmp_path: Path, size: int) -> None:
    s = closed_store(tmp_path)
    whole = s.address.path.read_bytes()
    s.address.path.write_bytes(whole[:size])
    with pytest.raises(StoreAway):
        uses(s)
    with pytest.raises(StoreAway):
        Store.open(s.address, s.environ, create=True)
    assert s.address.path.read_bytes() == whole[:size]


def test_a_store_truncated_under_an_open_one_is_an_error_told_as_one(tmp_path: Path) -> None:
    s = closed_store(tmp_path)
    store = Store.open(s.address, s.environ)
    os.truncate(s.address.path, 4096)
    with pytest.raises(StoreAway):
        read_all(store)
    with pytest.raises(StoreAway):
        write_one(store)
    store.close()


def test_a_damaged_page_is_told_as_damage_and_never_mended_by_guessing(tmp_path: Path) -> None:
    s = closed_store(tmp_path)
    whole = bytearray(s.address.path.read_bytes())
    for page in range(1, len(whole) // 4096):
        whole[page * 4096 : page * 4096 + 200] = b"\xff" * 200
    s.address.path.write_bytes(whole)
    with pytest.raises(StoreAway, match="damaged") as caught:
        uses(s)
    assert caught.value.hint
    assert s.address.path.read_bytes() == whole


def every_road(address: Address, environ: dict[str, str]) -> list[Callable[[], object]]:
    return [
        lambda: Store.find(address, environ),
        lambda: Store.open(address, environ),
        lambda: Store.open(address, environ, create=True),
        lambda: Store.open(address, environ, create=True, migrate=True),
    ]


@pytest.mark.parametrize("kind", ["text", "noise", "foreign", "foreign in wal", "our id without tables"])
def test_a_file_that_is_no_store_of_ours_is_left_byte_for_byte(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "duly.db"
    if kind == "text":
        path.write_text("dear diary\n" * 500)
    elif kind == "noise":
        path.write_bytes(os.urandom(20_000))
    else:
        with closing(sqlite3.connect(path, isolation_level=None)) as raw:
            if kind == "foreign in wal":
                raw.execute("PRAGMA journal_mode=WAL")
            if kind == "our id without tables":
                raw.execute(f"PRAGMA application_id={engine.APPLICATION_ID}")
            raw.execute("CREATE TABLE tasks (id TEXT, note TEXT)")
            raw.execute("CREATE TABLE alembic_version (version_num TEXT)") if kind.startswith("foreign") else None
    before = path.read_bytes()
    address = Address(path=path)
    environ = {"HOME": str(tmp_path / "home")}
    for opens in every_road(address, environ):
        with pytest.raises(StoreAway, match=r"not a|left as it is"):
            opens()
    assert path.read_bytes() == before
    assert not is_remembered(address, environ), "what is not ours is not remembered as ours"


def test_looking_at_a_foreign_database_in_use_leaves_nothing_beside_it_and_breaks_nothing(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as raw:
        raw.execute("PRAGMA journal_mode=WAL")
        raw.execute("CREATE TABLE notes (text TEXT)")
        raw.execute("BEGIN IMMEDIATE")
        raw.execute("INSERT INTO notes VALUES ('mine')")
        before = {one.name: one.read_bytes() for one in tmp_path.iterdir() if not one.name.endswith("-shm")}
        for opens in every_road(Address(path=path), {"HOME": str(tmp_path / "home")}):
            with pytest.raises(StoreAway, match="not a store"):
                opens()
        after = {one.name: one.read_bytes() for one in tmp_path.iterdir() if not one.name.endswith("-shm")}
        assert after == before
        raw.execute("COMMIT")
        assert raw.execute("SELECT * FROM notes").fetchall() == [("mine",)]


def test_a_store_has_one_run_folder_by_whatever_path_it_is_reached(tmp_path: Path) -> None:
    """Two run folders would be two places: neither holder would find the other's lock nor its keepers."""
    with scene(tmp_path) as s:
        (tmp_path / "elsewhere").mkdir()
        link = tmp_path / "elsewhere" / "link.db"
        link.symlink_to(s.address.path)
        other = Store.open(resolve(str(link), {}), s.environ)
        assert other.address.run_folder.resolve() == s.address.run_folder.resolve()
        other.close()


def test_a_directory_a_missing_folder_and_an_unreadable_place_are_refused_in_words(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path / "home")}
    folder = tmp_path / "folder"
    folder.mkdir()
    for path, words in [(folder, "directory"), (tmp_path / "no" / "duly.db", "does not exist")]:
        for create in (False, True):
            with pytest.raises(StoreAway, match=words):
                Store.open(Address(path=path), environ, create=create)
        with pytest.raises(StoreAway, match=words):
            Store.find(Address(path=path), environ)
    assert list(folder.iterdir()) == []


# Newer stores


def set_version(s: Scene, text: str) -> None:
    s.sql("UPDATE meta SET value = ? WHERE key = 'lowest_version'", text)


def test_a_store_for_newer_versions_only_is_refused_by_every_road_and_left_as_it_is(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.store.check_version()
        set_version(s, "99.0.0")
        with pytest.raises(StoreNewer, match=r"99\.0\.0"):
            s.store.check_version()
        before = snapshot(s)
        for opens in every_road(s.address, s.environ):
            with pytest.raises(StoreNewer):
                opens()
        assert snapshot(s) == before


@pytest.mark.parametrize("text", ["0.1.0", "0.0.9", "0.1"])
def test_a_later_revision_that_still_allows_this_version_is_used_as_it_is(tmp_path: Path, text: str) -> None:
    with scene(tmp_path) as s:
        set_version(s, text)
        s.sql("UPDATE alembic_version SET version_num = '0999'")
        s.sql("ALTER TABLE runs ADD COLUMN hue TEXT")
        s.sql("CREATE TABLE later (id TEXT)")
        other = s.connect()
        s.add("one", hourly())
        s.at(NINE + HOUR)
        s.plan(other)
        (won,) = s.claim(other)
        s.settle(won, SUCCEEDED)
        assert s.faults() == []


# Remembered stores


def test_stores_seen_are_remembered_once_and_only_by_those_who_may_write(tmp_path: Path) -> None:
    address = Address(path=tmp_path / "duly ☂ 1.db")
    environ = {"HOME": str(tmp_path / "home")}
    assert Store.find(address, environ) is None
    assert not is_remembered(address, environ)
    assert not (tmp_path / "home").exists(), "reading makes nothing"
    for _ in range(3):
        Store.open(address, environ, create=True).close()
    memory = tmp_path / "home" / ".local" / "state" / "duly" / "stores"
    assert memory.read_text() == f"{address.path}\n"
    assert is_remembered(address, environ)
    assert not is_remembered(Address(path=tmp_path / "duly ☂"), environ), "no part of a path is taken for it"
    moved = {"HOME": "/nowhere", "XDG_STATE_HOME": str(tmp_path / "home" / ".local" / "state")}
    assert is_remembered(address, moved)


def test_a_copied_store_is_remembered_when_it_is_first_written(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        pass
    copy = Address(path=tmp_path / "copy.db")
    shutil.copy(s.address.path, copy.path)
    reader = Store.find(copy, s.environ)
    assert reader is not None
    reader.close()
    assert not is_remembered(copy, s.environ)
    Store.open(copy, s.environ).close()
    assert is_remembered(copy, s.environ)


def test_a_home_that_cannot_be_written_stops_no_store(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file, not a folder")
    address = Address(path=tmp_path / "duly.db")
    store = Store.open(address, {"HOME": str(tmp_path / "home")}, create=True)
    write_one(store)
    store.close()


def test_a_path_with_odd_characters_is_one_file_at_its_place(tmp_path: Path) -> None:
    for name in ("a b?c#d%e.db", "ünï ☂.db", "quote'\".db", "-dash.db"):
        address = resolve(str(tmp_path / name), {})
        environ = {"HOME": str(tmp_path / "home")}
        store = Store.open(address, environ, create=True)
        write_one(store)
        assert store.another().close() is None  # type: ignore[func-returns-value]
        store.close()
        assert (tmp_path / name).exists()
        found = Store.find(address, environ)
        assert found is not None
        found.close()
