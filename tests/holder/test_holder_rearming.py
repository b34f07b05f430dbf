"""Safe retry under holders: waiting without a seat, over restarts, until it works or is overtaken (G10)."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from holder_scene import WITHIN_S, Stage, until_idle

from duly.clock import monotonic_s, pause
from duly.core.reasons import Refusal
from duly.holder.holder import Holder
from duly.operations import tasks
from duly.operations.audit import verify
from duly.ports import Assignment, How, Outcome

MINUTE = timedelta(minutes=1)
AGENT = {"kind": "agent", "agent": "scripted", "prompt": "Do it."}
UNSEEN = Outcome(word="failed", reason="agent_error", error="529 overloaded", unseen=True)


class Ends:
    """Work that ends at once as the next line of a script says; the last line holds on."""

    kept = False

    def __init__(self, stage: Stage, lines: list[Outcome]) -> None:
        self._stage = stage
        self._lines = lines

    def check(self, action: Mapping[str, object]) -> Refusal | None:
        return None

    def perform(self, assignment: Assignment, checkpoint: Mapping[str, object] | None) -> Outcome:
        self._stage.script.starts.append(assignment)
        return self._lines.pop(0) if len(self._lines) > 1 else self._lines[0]

    def stop(self, how: How) -> None:
        return


def holder_of(stage: Stage, *lines: Outcome) -> Holder:
    script = list(lines)
    return stage.holder(runner=lambda: Ends(stage, script))


def turn(stage: Stage, holder: Holder, span: timedelta) -> None:
    stage.clock.pass_(span)
    until = monotonic_s() + WITHIN_S
    until_idle(holder)
    while any(run.state == "held" for run in stage.read().runs):
        assert monotonic_s() < until, stage.read().runs
        pause(0.005)
        until_idle(holder)


def only(stage: Stage) -> Any:
    [run] = stage.read().runs
    return run


def test_a_run_that_failed_unseen_is_tried_again_by_another_holder_and_succeeds(stage: Stage) -> None:
    stage.add("a", "once in 1m")
    first = holder_of(stage, UNSEEN)
    turn(stage, first, MINUTE)
    run = only(stage)
    assert (run.state, run.seat, run.attempt, run.tried) == ("waiting", None, 1, "failed")
    assert timedelta(minutes=5) <= run.not_before - stage.clock.now() <= timedelta(minutes=6)
    first.die()
    stage.holders.remove(first)
    second = holder_of(stage, UNSEEN, Outcome(word="succeeded"))
    turn(stage, second, timedelta(minutes=4))
    assert only(stage).attempt == 1, "its time has not come"
    turn(stage, second, timedelta(minutes=2))
    assert (only(stage).state, only(stage).attempt) == ("waiting", 2)
    turn(stage, second, timedelta(minutes=18))
    run = only(stage)
    assert (run.state, run.outcome, run.attempt) == ("ended", "succeeded", 3)
    assert len(stage.script.starts) == 3
    assert list(verify(stage.store)) == []


def test_after_four_further_attempts_it_ends(stage: Stage) -> None:
    stage.add("a", "once in 1m")
    holder = holder_of(stage, UNSEEN)
    for minutes in (1, 6, 18, 36, 72):
        turn(stage, holder, timedelta(minutes=minutes))
    run = only(stage)
    assert (run.state, run.outcome, run.reason, run.attempt) == ("ended", "failed", "agent_error", 5)
    assert list(verify(stage.store)) == []


def test_a_newer_occurrence_ends_it_without_another_try(stage: Stage) -> None:
    stage.add("a", "every 3m", action=AGENT)
    holder = holder_of(stage, UNSEEN, Outcome(word="succeeded"))
    turn(stage, holder, timedelta(minutes=3))
    assert stage.read().runs[0].state == "waiting"
    turn(stage, holder, timedelta(minutes=3))
    first, newer = stage.read().runs
    assert first.not_before > stage.clock.now(), "it is not waited for until its try is due"
    assert (first.state, first.outcome, first.reason, first.attempt) == ("ended", "failed", "agent_error", 1)
    [ended] = [entry for entry in stage.read().entries if entry.kind == "ended" and entry.run == first.id]
    assert (ended.details["refused"], ended.details["by_run"]) == ("superseded", newer.id)
    assert newer.outcome == "succeeded"
    assert list(verify(stage.store)) == []


@pytest.mark.parametrize("how", ["disable", "pause", "remove"])
def test_a_switch_a_hold_or_a_removal_ends_it(stage: Stage, how: str) -> None:
    stage.add("a", "once in 1m")
    holder = holder_of(stage, UNSEEN)
    turn(stage, holder, MINUTE)
    if how == "pause":
        tasks.pause(stage.store, "task", "a", until=None, note=None, by="me")
    elif how == "disable":
        tasks.disable(stage.store, "a", by="me")
    else:
        tasks.remove(stage.store, "a", by="me")
    run = only(stage)
    assert run.not_before > stage.clock.now(), "it is not waited for until its try is due"
    assert (run.state, run.outcome, run.attempt) == ("ended", "failed", 1)


def test_a_seen_failure_is_not_tried_again(stage: Stage) -> None:
    stage.add("a", "once in 1m")
    holder = holder_of(stage, Outcome(word="failed", reason="agent_error", error="half done"))
    turn(stage, holder, MINUTE)
    assert only(stage).state == "ended"


def test_a_tasks_own_retries_come_first(stage: Stage) -> None:
    stage.add("a", "once in 1m", retries=1, retry_after=timedelta(seconds=10))
    holder = holder_of(stage, UNSEEN)
    turn(stage, holder, MINUTE)
    assert only(stage).not_before - stage.clock.now() <= timedelta(seconds=12)
    turn(stage, holder, timedelta(seconds=15))
    run = only(stage)
    assert (run.state, run.attempt, run.retries) == ("waiting", 2, 1)
    assert run.not_before - stage.clock.now() >= timedelta(minutes=5)
