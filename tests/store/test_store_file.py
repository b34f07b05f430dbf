"""The database: durable, left alone by readers, waited for by writers."""

import os
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest
from store_disk import entry, locked, snapshot, write_one
from store_scene import HOUR, NINE, hourly, minutely, scene

import databases
from by_hand import file_line, rows_at, statements, takes_the_lock
from duly import clock
from duly.errors import StoreAway, StoreBusy
from duly.operations import runs as run_operations
from duly.operations import tasks as task_operations
from duly.store import Session, Store, making
from duly.store.address import Address
from duly.store.engine import FileLine
from duly.store.postgres import ServerLine

DURABLE = {FileLine: ("PRAGMA synchronous", 2), ServerLine: ("SHOW synchronous_commit", "on")}


@pytest.mark.parametrize("first", [False, True], ids=["a write", "a beat"])
def test_what_is_answered_is_durable_on_every_connection(tmp_path: Path, first: bool) -> None:
    with scene(tmp_path) as s:
        for store in (s.store, s.connect(), s.store.another()):
            with store.write(first=first) as session:
                ask, wanted = DURABLE[type(session.line)]
                assert session.line.scalar(ask) == wanted
            store.close()


@pytest.mark.file("settings")
def test_the_write_ahead_log_is_in_force_on_every_connection(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        for store in (s.store, s.connect(), s.store.another()):
            assert file_line(store).scalar("PRAGMA journal_mode") == "wal"
            store.close()


@pytest.mark.file("place")
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


def test_each_store_has_an_id_of_its_own(tmp_path: Path) -> None:
    seen = set()
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        place = databases.unmade(tmp_path / name)
        Store.open(place, {"HOME": str(tmp_path)}, create=True).close()
        [(id_,)] = rows_at(place, "SELECT value FROM meta WHERE key = 'store_id'")
        seen.add(id_)
    assert len(seen) == 2


@pytest.mark.file("settings")
def test_an_id_marks_the_file_as_ours(tmp_path: Path) -> None:
    making.make(Address(path=tmp_path / "a.db"), {"HOME": str(tmp_path)})
    with closing(sqlite3.connect(tmp_path / "a.db")) as raw:
        assert raw.execute("PRAGMA application_id").fetchone() == (0x44756C79,)


# Reading


def test_reading_changes_no_byte_and_needs_no_lock(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        won = s.held()
        s.add("two", minutely())
        s.at(NINE + 5 * HOUR)
        before = snapshot(s)
        reader = Store.find(s.address, s.environ, clock=s.clock)
        assert reader is not None
        with locked(s.address):
            for _ in range(20):
                with reader.read() as session:
                    assert len(session.tasks.page()) == 2
                    assert session.runs.by_id(won.run.id) == won.run
                    session.tasks.due(session.now, 10)
                    session.ledger.after(0)
                assert s.faults() == []
        reader.close()
        assert snapshot(s) == before


def test_reading_alone_leaves_the_store_as_it_was_when_all_have_gone(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.add("one", hourly())
    before = snapshot(s)
    reader = Store.find(s.address, s.environ)
    assert reader is not None
    with reader.read() as session:
        assert session.tasks.counts()[0] == 1
    reader.close()
    assert snapshot(s) == before


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
    with scene(tmp_path) as s, locked(s.address, seconds=1):
        began = clock.monotonic_s()
        write_one(s.store)
        waited = clock.monotonic_s() - began
        assert 0.5 < waited < 6
        assert len(s.entries()) == 1


@pytest.mark.file("lock")
def test_a_writer_that_waited_has_noticed_that_somebody_else_writes(tmp_path: Path) -> None:
    with scene(tmp_path) as s, locked(s.address, seconds=0.2):
        write_one(s.store)
        assert file_line(s.store).company.present()


def test_a_writer_says_busy_when_its_patience_is_over_and_has_written_nothing(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        with locked(s.address):
            began = clock.monotonic_s()
            with pytest.raises(StoreBusy):
                write_one(s.store, patience_s=0.3)
            assert 0.25 < clock.monotonic_s() - began < 5
        write_one(s.store)
        assert len(s.entries()) == 1


def test_a_write_sees_what_was_committed_while_it_waited_and_never_fails_for_having_read_before(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        one, two = s.store, s.connect()
        for n in range(20):
            with one.read() as session:
                assert session.ledger.last() == 2 * n
            write_one(two)
            with one.write() as session:
                assert session.ledger.last() == 2 * n + 1, "the lock comes first, then the look"
                session.ledger.add([entry()])


@pytest.mark.file("lock")
def test_what_the_house_does_not_do_to_begin_deferred_and_write_after_reading_is_refused(tmp_path: Path) -> None:
    with scene(tmp_path) as s, closing(sqlite3.connect(s.path, isolation_level=None, timeout=0)) as raw:
        raw.execute("BEGIN")
        raw.execute("SELECT count(*) FROM ledger").fetchone()
        write_one(s.store)
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            raw.execute("INSERT INTO meta VALUES ('a', 'b')")


def test_every_write_begins_with_the_lock_before_anything_is_read(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.held("busy")
        s.add("one", hourly())
        with statements(s.store._line) as sent:
            run = run_operations.run_now(s.store, "one", by="ann")
            run_operations.cancel(s.store, run.id, by="ann")
            task_operations.pause(s.store, "task", "one", until=None, note=None, by="ann")
            task_operations.unpause(s.store, "task", "one", by="ann")
            task_operations.disable(s.store, "one", by="ann")
            task_operations.enable(s.store, "one", by="ann")
            task_operations.remove(s.store, "one", by="ann")
            s.plan()
            s.claim()
        inside = False
        begun = 0
        for text in sent:
            words = text.split()
            if takes_the_lock(text):
                assert not inside
                inside, begun = True, begun + 1
            elif text.endswith("COMMIT") or text == "ROLLBACK":
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
