"""A gate's answer as the store keeps it: seat and limits are free again, nothing is counted, losers change nothing."""

from pathlib import Path

import pytest
from store_scene import HOUR, MINUTE, NINE, Scene, losing, scene
from store_walk import FAILED

from duly.core.run import Run
from duly.core.task import Gate
from duly.errors import StoreUnknown
from duly.holder.dispatcher import Won
from duly.holder.settling import Begun, NotNow
from duly.operations import runs as asks
from duly.operations.listing import run_shape
from duly.operations.telling import waiting_for

CLOSED = NotNow(reason="gate_closed", told="the gate said not now (exit status 1)", details={"exit_code": 1})
ASKED = Gate(argv=("false",))


def waits(s: Scene, run: Run) -> object:
    with s.store.read() as session:
        found = waiting_for(session, run)
    return None if found is None else found["what"]


def test_a_closed_gate_frees_seat_and_limits_and_counts_for_nothing(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        won = s.held(gate=ASKED, limits={"gpu": 1}, pause_after=1)
        assert s.sql("SELECT used FROM limits") == [(1,)]
        run = s.settle(won, CLOSED).run
        assert run == s.run(won.run.id)
        assert run is not None
        assert (run.outcome, run.reason, run.error) == ("skipped", "gate_closed", CLOSED.told)
        assert s.sql("SELECT used FROM limits") == [(0,)]
        task = s.task(run.task)
        assert (task.failures_in_a_row, task.runs, task.last_run) == (0, 0, None)
        with s.store.read() as session:
            assert session.pauses.all() == []
            shape = run_shape(session, run, task)
        assert (shape["started_at"], shape["late_by_s"], shape["waiting_for"]) == (None, None, None)
        s.at(NINE + 2 * HOUR)
        s.plan()
        assert len(s.claim()) == 1, "its seat is free"
        assert s.faults() == []


def test_a_retry_whose_gate_is_closed_is_a_failure_of_its_run(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        won = s.held(gate=ASKED, retries=1)
        again = s.settle(won, FAILED).run
        assert again is not None
        s.at(again.not_before)
        [won] = s.claim()
        ended = s.settle(won, CLOSED).run
        assert ended is not None
        assert (ended.outcome, ended.reason, ended.exit_code) == ("failed", "exit_status", 1)
        assert (s.task(ended.task).failures_in_a_row, s.task(ended.task).runs) == (1, 1)
        assert s.faults() == []


@pytest.mark.parametrize("before", [True, False])
def test_an_answer_of_a_gate_that_was_lost_is_written_once(tmp_path: Path, before: bool) -> None:
    with scene(tmp_path) as s:
        won = s.held(gate=ASKED)
        with losing(s.store, before=before), pytest.raises(StoreUnknown):
            s.settle(won, CLOSED)
        found = s.settle(won, CLOSED).run
        assert found is not None
        assert found.outcome == "skipped"
        assert s.kinds()[-3:] == ["claimed", "returned", "skipped"]
        assert s.faults() == []


def test_a_gate_of_a_run_that_was_taken_away_decides_nothing(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        won = s.held(gate=ASKED)
        s.sql("UPDATE runs SET holder = 'hld_b', claim_token = 'other', version = version + 1")
        assert s.settle(won, CLOSED).run is None
        tell_begun(s, won)
        assert s.run(won.run.id).state == "held"
        assert s.kinds()[-2:] == ["claimed", "fence_lost"]


def tell_begun(s: Scene, won: Won) -> None:
    with s.store.write() as session:
        told = s.settler().step(session, [s.delivery(won, Begun(details={"gate": "open", "said": "go on"}))])
    assert told == [], "its holding goes on"


def test_a_run_waits_for_its_gate_until_its_work_has_begun(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        won = s.held(gate=ASKED)
        assert waits(s, won.run) == "gate"
        tell_begun(s, won)
        assert waits(s, won.run) is None
        [entry] = [one for one in s.entries() if one.kind == "began"]
        assert dict(entry.details) == {"fence": won.run.fence, "gate": "open", "said": "go on"}
        s.settle(won)
        assert s.faults() == []


def test_a_retry_waits_for_its_gate_anew(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        won = s.held(gate=ASKED, retries=1)
        tell_begun(s, won)
        again = s.settle(won, FAILED).run
        assert again is not None
        s.at(again.not_before)
        [won] = s.claim()
        assert waits(s, won.run) == "gate"


def test_what_begins_and_ends_in_one_turn_is_told_in_that_order(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        won = s.held(gate=ASKED)
        begun = s.delivery(won, Begun(details={"gate": "open"}))
        with s.store.write() as session:
            done = s.settler().step(session, [begun, s.delivery(won)])
        assert [one.run.outcome for one in done if one.run] == ["succeeded"]
        assert s.kinds()[-2:] == ["began", "ended"]
        assert s.faults() == []


def test_neither_a_run_without_a_gate_nor_one_that_runs_anyway_waits_for_one(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        assert waits(s, s.held("one").run) is None
        s.add("two", gate=ASKED)
        run = asks.run_now(s.store, "two", by="ann", anyway=True)
        s.at(s.clock.moment + MINUTE)
        [won] = [one for one in s.claim() if one.run.id == run.id]
        assert waits(s, won.run) is None
