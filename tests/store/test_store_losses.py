"""A full disk, and a commit whose answer is lost."""

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from store_disk import entry, write_one
from store_scene import HOUR, MINUTE, NINE, Scene, hourly, losing, minutely, scene

import databases
from by_hand import by_hand, file_line, locked
from duly.core.run import Entry
from duly.errors import StoreAway, StoreBusy, StoreFull, StoreUnknown
from duly.holder.settling import Returned
from duly.operations import runs as run_operations
from duly.store import Session, Store
from duly.store.address import ServerAddress

FULL_AFTER = """
CREATE SEQUENCE disk;
CREATE FUNCTION fill() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF nextval('disk') > {room} THEN RAISE EXCEPTION 'No space left on device' USING ERRCODE = 'disk_full'; END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER fill_ledger BEFORE INSERT ON ledger FOR EACH ROW EXECUTE FUNCTION fill();
CREATE TRIGGER fill_runs BEFORE INSERT ON runs FOR EACH ROW EXECUTE FUNCTION fill();
CREATE TRIGGER fill_tasks BEFORE UPDATE ON tasks FOR EACH ROW EXECUTE FUNCTION fill()
"""
"""What a server says when its disk is full, once so many rows were written; whatever is written after that too."""


@contextlib.contextmanager
def almost_full(s: Scene, room: int) -> Iterator[None]:
    """Let a store's disk have room for so many pages more, or on a server for 16 times as many rows, for a while."""
    if isinstance(s.address, ServerAddress):
        s.sql(FULL_AFTER.format(room=16 * room))
        yield
        s.sql("DROP FUNCTION fill CASCADE; DROP SEQUENCE disk")
        return
    raw = file_line(s.store).raw
    pages = raw.execute("PRAGMA page_count").fetchone()[0]
    raw.execute(f"PRAGMA max_page_count = {pages + room}")
    yield
    raw.execute("PRAGMA max_page_count = 1000000")


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
        with almost_full(s, 20):
            for _ in range(2):
                with pytest.raises(StoreFull, match="full"):
                    fill(s.store, s)
                assert not s.store._line.stands
                assert (s.entries(), s.runs()) == before
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
        before = (s.sql("SELECT * FROM tasks"), s.entries(), s.runs(), s.sql("SELECT * FROM missed"))
        with almost_full(s, room):
            try:
                s.plan()
            except StoreFull:
                assert (s.sql("SELECT * FROM tasks"), s.entries(), s.runs(), s.sql("SELECT * FROM missed")) == before
        s.plan()
        assert len(s.runs()) == 60
        assert s.faults() == []


def write_through_a_full_disk(s: Scene, session: Session) -> None:
    """Go on after the disk was full inside a savepoint, without asking whether the transaction still stands."""
    session.ledger.add([entry("paused")])
    with contextlib.suppress(sqlite3.Error), session.line.savepoint():
        for _ in range(200):
            session.ledger.add([Entry(kind="defined", at=NINE, details={"long": "x" * 4000})])
    by_hand(session.line, "PRAGMA max_page_count = 1000000")
    session.ledger.add([entry("removed")])


@pytest.mark.file("full")
def test_a_transaction_that_the_full_disk_ended_is_reported_even_to_who_did_not_ask(tmp_path: Path) -> None:
    """SQLite ends the whole transaction, not the savepoint alone: what follows commits by itself, so it is told."""
    with scene(tmp_path) as s:
        with almost_full(s, 4), pytest.raises(StoreAway), s.store.write() as session:
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


def test_a_turn_that_did_not_come_in_time_leaves_the_connection_as_good_as_it_was(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        with locked(s.address):
            for _ in range(2):
                with pytest.raises(StoreBusy, match="is locked by another process"), s.store.write(patience_s=0.05):
                    raise AssertionError("it was locked")
            assert s.entries() == []
        write_one(s.store)
        assert len(s.entries()) == 1


def test_a_connection_that_ended_while_nobody_used_it_is_opened_anew_and_nobody_is_told(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        idle = s.connect()
        databases.cut(s.address)
        write_one(idle)
        databases.cut(s.address)
        with idle.read() as session:
            assert session.ledger.last() == 1
        assert len(s.entries()) == 1
