"""Retries and what follows from failures, as the store keeps them: one write, one count a run, a pause in time."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from store_failing import again, fail, shown
from store_scene import DAY, HOUR, MINUTE, NINE, SECOND, SUCCEEDED, TICK, Scene, hourly, losing, scene
from store_walk import FAILED

from duly.core.run import Run
from duly.errors import StoreUnknown
from duly.holder.dispatcher import Won
from duly.holder.settling import Interrupted
from duly.operations import edits
from duly.operations import runs as asks
from duly.operations import tasks as changes
from duly.operations.telling import waiting_for
from duly.ports import Outcome

TIMED_OUT = Outcome(word="timed_out", reason="timeout", error="ran longer than its timeout")


def by_hand(s: Scene) -> Won:
    run = asks.run_now(s.store, "one", by="ann")
    [won] = [one for one in s.claim() if one.run.id == run.id]
    return won


def test_a_failed_attempt_goes_back_to_waiting_in_the_one_write_that_settles_it(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        won = s.held(retries=1, limits={"gpu": 1})
        writes = s.sql("SELECT version FROM runs")[0][0]
        run = fail(s, won)
        assert (run.state, run.version, run.retries, run.tried) == ("waiting", writes + 1, 1, "failed")
        assert run == s.run(run.id)
        assert s.sql("SELECT used FROM limits WHERE key = 'gpu'") == [(0,)]
        assert timedelta(seconds=30) <= run.not_before - s.clock.moment <= timedelta(seconds=36)
        assert s.kinds()[-2:] == ["claimed", "returned"]
        assert s.task(run.task).failures_in_a_row == 0
        assert s.faults() == []


def test_nobody_claims_a_retry_before_its_time_and_somebody_does_then(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        run = fail(s, s.held(retries=1))
        s.at(run.not_before - TICK)
        assert s.claim() == []
        s.at(run.not_before)
        [won] = s.claim(holder="hld_b")
        assert (won.run.id, won.run.attempt, won.run.tried) == (run.id, 2, "failed")


def test_a_run_that_fails_to_the_last_counts_as_one_failure(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        run = fail(s, s.held(retries=2))
        fail(s, again(s), TIMED_OUT)
        assert s.task(run.task).failures_in_a_row == 0
        ended = fail(s, again(s))
        assert (ended.state, ended.outcome, ended.attempt, ended.retries) == ("ended", "failed", 3, 2)
        task = s.task(run.task)
        assert (task.failures_in_a_row, task.runs, task.last_run) == (1, 1, run.id)
        assert s.faults() == []


def test_a_success_after_retries_is_a_success(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        run = fail(s, s.held(retries=2))
        ended = s.settle(again(s), SUCCEEDED).run
        assert ended is not None
        assert (ended.outcome, ended.reason, ended.error, ended.tried) == ("succeeded", None, None, None)
        assert (s.task(run.task).failures_in_a_row, s.task(run.task).runs) == (0, 1)


def test_an_interruption_of_a_retry_is_judged_by_its_own_rule_and_leaves_its_retries(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        fail(s, s.held(retries=1, on_interrupt="retry"))
        cut = s.settle(again(s), Interrupted(why="holder_died", ended_at=s.clock.moment)).run
        assert cut is not None
        assert (cut.state, cut.retries, cut.interruptions) == ("waiting", 1, 1)
        assert fail(s, again(s)).state == "ended"
        assert s.faults() == []


@pytest.mark.parametrize("before", [True, False])
def test_a_retry_whose_answer_was_lost_is_written_once(tmp_path: Path, before: bool) -> None:
    with scene(tmp_path) as s:
        won = s.held(retries=3)
        with losing(s.store, before=before), pytest.raises(StoreUnknown):
            s.settle(won, FAILED)
        run = fail(s, won)
        assert (run.state, run.retries) == ("waiting", 1)
        assert s.kinds().count("returned") == 1
        assert s.faults() == []


def test_a_loser_makes_no_retry_of_what_was_taken_away(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        won = s.held(retries=3)
        s.sql("UPDATE runs SET holder = 'hld_b', claim_token = 'other', version = version + 1")
        assert s.settle(won, FAILED).run is None
        assert (s.run(won.run.id).state, s.run(won.run.id).retries) == ("held", 0)
        assert s.kinds()[-1] == "fence_lost"


# What else happens while a retry waits


def test_a_newer_occurrence_runs_before_a_retry_and_takes_nothing_from_it(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        first = fail(s, s.held(retries=1, retry_after=2 * HOUR, retry_up_to=4 * HOUR))
        s.at(NINE + 2 * HOUR)
        s.plan()
        [newer] = s.claim()
        assert newer.run.id != first.id
        s.at(first.not_before)
        s.plan()
        assert s.claim() == [], "its seat is taken"
        assert s.run(first.id).state == "waiting"
        s.settle(newer)
        assert again_of(s, first).run.attempt == 2


def again_of(s: Scene, run: Run) -> Won:
    won = [one for one in s.claim() if one.run.id == run.id]
    assert len(won) == 1
    return won[0]


def test_a_run_by_hand_does_not_end_a_retry(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        first = fail(s, s.held(retries=1))
        s.settle(by_hand(s))
        assert s.run(first.id).state == "waiting"
        assert again(s).run.id == first.id


@pytest.mark.parametrize(
    ("change", "refused"),
    [
        (lambda s: changes.pause(s.store, "task", "one", until=None, note=None, by="ann"), "paused"),
        (lambda s: changes.pause(s.store, "store", "", until=None, note=None, by="ann"), "paused"),
        (lambda s: changes.disable(s.store, "one", by="ann"), "disabled"),
        (lambda s: changes.remove(s.store, "one", by="ann"), "task_removed"),
    ],
)
def test_what_takes_its_task_out_ends_a_waiting_retry_with_the_outcome_of_its_last_attempt(
    tmp_path: Path, change: Callable[[Scene], object], refused: str
) -> None:
    with scene(tmp_path) as s:
        run = fail(s, s.held(retries=1))
        change(s)
        ended = s.run(run.id)
        assert (ended.state, ended.outcome, ended.reason, ended.error) == (
            "ended", "failed", "exit_status", "exit status 1",
        )  # fmt: skip
        [told] = [one for one in s.entries() if one.kind == "ended"]
        assert (told.details["refused"], told.by) == (refused, "ann")
        task = s.task(run.task)
        assert (task.failures_in_a_row, task.runs, task.last_run) == (1, 1, run.id)
        assert s.faults() == []


@pytest.mark.parametrize("refused", ["paused", "disabled", "task_removed"])
def test_an_attempt_that_fails_after_its_task_was_taken_out_is_not_tried_again(tmp_path: Path, refused: str) -> None:
    with scene(tmp_path) as s:
        won = s.held(retries=3)
        match refused:
            case "paused":
                changes.pause(s.store, "project", "default", until=None, note=None, by="ann")
            case "disabled":
                changes.disable(s.store, "one", by="ann")
            case _:
                changes.remove(s.store, "one", by="ann")
        if refused == "task_removed":  # what runs is cancelled by that, and a wish on record forbids retries anyway
            s.sql("UPDATE runs SET cancel_asked_us = NULL")
        ended = fail(s, won)
        assert (ended.state, ended.outcome) == ("ended", "failed")
        [told] = [one for one in s.entries() if one.kind == "ended"]
        assert told.details["refused"] == refused


def test_another_schedule_ends_a_retry_that_waits_with_the_outcome_of_its_last_attempt(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        run = fail(s, s.held(retries=2))
        edits.edit(s.store, "one", {"triggers": ["daily 12:00"]}, by="ann")
        ended = s.run(run.id)
        assert (ended.state, ended.outcome, ended.reason) == ("ended", "failed", run.reason)
        [told] = [one for one in s.entries() if one.kind == "ended"]
        assert (told.details["refused"], told.by) == ("schedule_changed", "ann")
        assert s.faults() == []


def test_another_schedule_leaves_a_retry_of_a_run_by_hand_and_one_whose_attempt_runs(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.add("one", hourly(), retries=2)
        won = by_hand(s)
        edits.edit(s.store, "one", {"triggers": ["daily 12:00"]}, by="ann")
        run = fail(s, won)
        assert run.state == "waiting"
        edits.edit(s.store, "one", {"triggers": ["daily 13:00"]}, by="ann")
        assert s.run(run.id) == run


def test_an_edit_of_the_retries_leaves_a_run_that_was_tried_as_it_was(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        run = fail(s, s.held(retries=2))
        edits.edit(s.store, "one", {"rules": {"retries": 0}, "description": "other"}, by="ann")
        assert s.run(run.id) == run
        won = again(s)
        assert won.run.definition_version == run.definition_version
        assert fail(s, won).state == "waiting", "it has the retries it began with"
        assert s.faults() == []


def test_a_retry_of_a_run_by_hand_waits_out_a_pause_and_passes_a_switched_off_task(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.add("one", hourly(), retries=2)
        won = by_hand(s)
        changes.disable(s.store, "one", by="ann")
        assert fail(s, won).state == "waiting"
        won = again(s)
        changes.pause(s.store, "task", "one", until=None, note=None, by="ann")
        run = fail(s, won)
        assert run.state == "waiting"
        s.at(run.not_before)
        assert s.claim() == []
        changes.unpause(s.store, "task", "one", by="ann")
        assert again(s).run.attempt == 3


def test_a_retry_that_waited_past_its_ceiling_ends_stale_with_its_error(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        run = fail(s, s.held(retries=1, max_age=HOUR))
        s.at(run.due_at + run.worked_for + HOUR + TICK)
        assert s.claim() == []
        ended = s.run(run.id)
        assert (ended.outcome, ended.reason, ended.error, ended.exit_code) == ("failed", "stale", "exit status 1", 1)
        assert s.task(run.task).failures_in_a_row == 1
        assert s.faults() == []


def test_a_retry_by_hand_is_never_too_late(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.add("one", hourly(), retries=1, max_age=MINUTE)
        run = fail(s, by_hand(s))
        s.at(run.not_before + 30 * DAY)
        assert [one.run.id for one in s.claim()] == [run.id]


def test_a_waiting_retry_says_since_when_and_until_when_it_backs_off(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        won = s.held(retries=1)
        s.at(s.clock.moment + 10 * SECOND)
        failed_at = s.clock.moment
        run = fail(s, won)
        s.at(failed_at + SECOND)
        with s.store.read() as session:
            told = waiting_for(session, run)
        assert told is not None
        assert (told["what"], told["since"]) == ("backoff", shown(failed_at))
        assert told["until"] == shown(run.not_before)
        s.at(run.not_before)
        with s.store.read() as session:
            told = waiting_for(session, run)
        assert told is not None
        assert told["what"] != "backoff"
