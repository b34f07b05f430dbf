"""Failures in a row: counted once a run, and their task paused in time."""

from pathlib import Path

import pytest
from store_failing import again, fail
from store_scene import DAY, HOUR, MINUTE, NINE, SUCCEEDED, Scene, hourly, losing, minutely, scene
from store_walk import FAILED, failures_told

from duly.errors import Refused, StoreUnknown
from duly.operations import runs as asks
from duly.operations import tasks as changes
from duly.ports import Outcome
from duly.store.rows import Pause

# After so many failures in a row


def test_a_task_is_paused_by_its_last_allowed_failure_before_anything_else_of_it_starts(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", hourly(), minutely(NINE + HOUR + 30 * MINUTE), pause_after=2, overlap="queue")
        for hour in (1, 2):
            s.at(NINE + hour * HOUR)
            s.plan()
            [won] = s.claim()
            if hour == 2:
                waits = [run.id for run in s.runs() if run.state == "waiting"]
            fail(s, won)
        [pause] = pauses(s)
        assert (pause.scope, pause.target, pause.by, pause.note) == ("task", task.id, "duly", "2 failures in a row")
        assert (pause.since, pause.until) == (s.clock.moment, None)
        assert s.task(task.id).next_start_at is None
        assert [s.run(id_).reason for id_ in waits] == ["paused"] * len(waits)
        assert not [run for run in s.runs() if run.state != "ended"]
        [told] = [one for one in s.entries() if one.kind == "paused"]
        assert (told.by, told.task, told.details["failures_in_a_row"], told.details["pause_after"]) == (
            "duly", task.id, 2, 2,
        )  # fmt: skip
        assert told.details["run"] == won.run.id
        s.at(NINE + 5 * HOUR)
        assert s.plan() == []
        assert s.faults() == []


def pauses(s: Scene) -> list[Pause]:
    with s.store.read() as session:
        return list(session.pauses.all())


def test_retries_come_before_a_pause_and_a_run_counts_once(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        fail(s, s.held(retries=2, pause_after=1))
        assert pauses(s) == []
        fail(s, again(s))
        assert pauses(s) == []
        fail(s, again(s))
        assert len(pauses(s)) == 1


def test_a_success_between_failures_begins_the_count_anew(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.add("one", hourly(), pause_after=2)
        for hour, outcome in enumerate((FAILED, SUCCEEDED, FAILED, Outcome(word="cancelled")), 1):
            s.at(NINE + hour * HOUR)
            s.plan()
            [won] = s.claim()
            s.settle(won, outcome)
            assert pauses(s) == [], hour
        s.at(NINE + 5 * HOUR)
        s.plan()
        fail(s, s.claim()[0])
        assert len(pauses(s)) == 1, "what was cancelled is neither a success nor a failure"


def test_after_it_was_let_go_on_a_task_has_all_its_failures_before_it(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        won = s.held(pause_after=2)
        fail(s, won)
        s.at(NINE + 2 * HOUR)
        s.plan()
        fail(s, s.claim()[0])
        assert s.task(won.task.id).failures_in_a_row == 2
        with pytest.raises(Refused, match="2 failures in a row"):
            asks.run_now(s.store, "one", by="ann")
        changes.unpause(s.store, "task", "one", by="ann")
        assert s.task(won.task.id).failures_in_a_row == 0
        s.at(NINE + 3 * HOUR)
        s.plan()
        fail(s, s.claim()[0])
        assert pauses(s) == []
        assert s.task(won.task.id).failures_in_a_row == 1
        assert s.faults() == []


def test_the_end_of_a_hold_of_its_project_forgets_no_failure(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        won = s.held(pause_after=2)
        fail(s, won)
        changes.pause(s.store, "project", "default", until=None, note=None, by="ann")
        changes.unpause(s.store, "project", "default", by="ann")
        assert s.task(won.task.id).failures_in_a_row == 1


def test_a_persons_hold_is_left_as_it_is(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        won = s.held(pause_after=1)
        changes.pause(s.store, "task", "one", until=NINE + DAY, note="moving house", by="ann")
        before = pauses(s)
        fail(s, won)
        assert pauses(s) == before


def test_a_task_is_held_by_the_end_of_a_retry_that_came_too_late(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        fail(s, s.held(retries=1, pause_after=1, max_age=HOUR))
        s.at(NINE + 4 * HOUR)
        assert s.claim() == []
        assert len(pauses(s)) == 1
        assert s.faults() == []


def test_a_removed_or_finished_task_is_not_held(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        won = s.held(pause_after=1)
        changes.remove(s.store, "one", by="ann")
        fail(s, won)
        assert pauses(s) == []


@pytest.mark.parametrize("lost", ["before the write", "after it"])
def test_a_pause_comes_with_the_end_that_brings_it_or_not_at_all(tmp_path: Path, lost: str) -> None:
    with scene(tmp_path) as s:
        won = s.held(pause_after=1)
        with losing(s.store, before=lost == "before the write"), pytest.raises(StoreUnknown):
            s.settle(won, FAILED)
        stands = (s.run(won.run.id).state, len(pauses(s)))
        assert stands == (("held", 0) if lost == "before the write" else ("ended", 1))
        fail(s, won)
        assert (s.run(won.run.id).state, len(pauses(s))) == ("ended", 1)
        assert s.task(won.task.id).failures_in_a_row == 1


def test_the_counts_are_those_that_the_ledger_tells(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        won = s.held(retries=1, pause_after=5)
        fail(s, won)
        changes.disable(s.store, "one", by="ann")
        changes.enable(s.store, "one", by="ann")
        s.at(s.clock.moment + HOUR)
        s.plan()
        fail(s, s.claim()[0])
        asks.cancel(s.store, next(run.id for run in s.runs() if run.state == "waiting"), by="ann")
        task = s.task(won.task.id)
        assert failures_told(s, task.id) == task.failures_in_a_row == 1
