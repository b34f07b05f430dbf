"""Gates under a holder: asked by a carrier before the work, with real programs; the work itself is scripted."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from holder_scene import Stage, until_idle
from test_holder_planning import settle_all

from duly.clock import monotonic_s, pause
from duly.core.run import Run
from duly.core.task import Gate
from duly.holder.holder import Holder
from duly.operations import runs as asks
from duly.operations.audit import verify
from duly.runners import processes

MINUTE = timedelta(minutes=1)
TICK = timedelta(microseconds=1)
WITHIN_S = 20.0
DEAF = "trap '' TERM; echo $$ > asked; while ! test -e go; do sleep 0.02; done"


def gate(line: str, **more: Any) -> Gate:
    return Gate(argv=("sh", "-c", line), **more)


def folder(stage: Stage) -> Path:
    return stage.folder


def add(stage: Stage, line: str, **rules: Any) -> None:
    action = {"kind": "command", "argv": ["scripted"], "cwd": str(folder(stage))}
    stage.add("a", "once in 1m", action=action, gate=gate(line), **rules)


def start(stage: Stage, line: str, **rules: Any) -> Holder:
    """A holder that has just claimed a run with this gate."""
    holder = stage.holder()
    add(stage, line, **rules)
    stage.clock.pass_(MINUTE)
    until_idle(holder)
    return holder


def asked(stage: Stage) -> int:
    """Wait until the gate is being asked, and give its process."""
    told = folder(stage) / "asked"
    wait_for(lambda: told.exists() and told.read_text().endswith("\n"))
    return int(told.read_text())


def wait_for(condition: Any, holder: Holder | None = None) -> None:
    until = monotonic_s() + WITHIN_S
    while not condition():
        assert monotonic_s() < until
        if holder is not None:
            holder.step()
        pause(0.005)


def only(stage: Stage) -> Run:
    [run] = stage.read().runs
    return run


def lives(pid: int) -> bool:
    found = processes.read(pid)
    return found is not None and found.state not in processes.DEAD


def test_work_begins_when_its_gate_has_said_go_and_the_ledger_tells_so(stage: Stage) -> None:
    holder = start(stage, "echo green; exit 0")
    stage.script.wait_for_starts(1)
    stage.script.over.set()
    wait_for(lambda: only(stage).state == "ended", holder)
    assert only(stage).outcome == "succeeded"
    assert stage.read().kinds(only(stage).id) == ["opened", "claimed", "began", "ended"]
    [began] = [one for one in stage.read().entries if one.kind == "began"]
    assert (began.details["gate"], began.details["said"]) == ("open", "green")
    assert verify(stage.store) == []


@pytest.mark.parametrize(
    ("line", "reason", "told"),
    [
        ("echo red; exit 75", "gate_closed", "the gate said not now (exit status 75): red"),
        ("echo broken; exit 2", "gate_failed", "the gate could not be asked: exit status 2: broken"),
    ],
)
def test_work_whose_gate_does_not_open_never_begins_and_its_slot_is_free(
    stage: Stage, line: str, reason: str, told: str
) -> None:
    holder = start(stage, line)
    wait_for(lambda: only(stage).state == "ended", holder)
    run = only(stage)
    assert (run.outcome, run.reason, run.error) == ("skipped", reason, told)
    assert stage.script.starts == []
    assert len(holder.holdings) == 0
    assert stage.read().kinds(run.id) == ["opened", "claimed", "returned", "skipped"]
    assert verify(stage.store) == []


def test_a_gate_that_cannot_be_asked_lets_go_where_its_task_says_so(stage: Stage) -> None:
    holder = stage.holder()
    stage.add("a", "once in 1m", gate=Gate(argv=("no-such-gate",), on_error="go"))
    stage.clock.pass_(MINUTE)
    until_idle(holder)
    stage.script.wait_for_starts(1)
    wait_for(lambda: "began" in stage.read().kinds(), holder)
    [began] = [one for one in stage.read().entries if one.kind == "began"]
    assert began.details["gate"] == "failed"
    assert "no-such-gate was not found" in str(began.details["said"])


def test_a_gate_takes_its_time_while_leases_are_extended_and_its_slot_is_taken(stage: Stage) -> None:
    holder = stage.holder(slots=1)
    add(stage, DEAF)
    stage.clock.pass_(MINUTE)
    until_idle(holder)
    asked(stage)
    stage.add("b", "manual")
    asks.run_now(stage.store, "b", by="ann")
    [held] = [run for run in stage.read().runs if run.state == "held"]
    stage.clock.pass_(timedelta(seconds=70))
    assert holder.heart.step().ours == 1
    [now] = [run for run in stage.read().runs if run.state == "held"]
    assert (now.id, now.lease_end_us) == (held.id, stage.clock.lease + 100_000_000)
    until_idle(holder)
    assert [run.state for run in stage.read().runs if run.id != held.id] == ["waiting"], "one slot, and it is taken"
    (folder(stage) / "go").touch()
    stage.script.wait_for_starts(1)


def test_a_run_that_is_cancelled_while_its_gate_is_asked_never_begins(stage: Stage) -> None:
    holder = start(stage, "echo $$ > asked; exec sleep 600")
    pid = asked(stage)
    asks.cancel(stage.store, only(stage).id, by="ann")
    wait_for(lambda: only(stage).state == "ended", holder)
    run = only(stage)
    assert (run.outcome, run.reason) == ("cancelled", "cancelled_by_hand")
    assert stage.script.starts == []
    assert not lives(pid)
    assert verify(stage.store) == []


def test_a_gate_is_ended_at_the_end_of_trust_and_its_claim_given_back(stage: Stage) -> None:
    holder = start(stage, "echo $$ > asked; exec sleep 600")
    pid = asked(stage)
    [holding] = holder.holdings.all()
    stage.clock.lease = holding.trust_end_us
    holder.guard.step()
    wait_for(lambda: not lives(pid))
    wait_for(lambda: "returned" in stage.read().kinds(), holder)
    assert stage.script.starts == []
    assert only(stage).interruptions == 0
    assert verify(stage.store) == []


def test_work_does_not_begin_after_a_gate_that_left_too_little_of_its_lease(stage: Stage) -> None:
    holder = start(stage, DEAF)
    asked(stage)
    [holding] = holder.holdings.all()
    stage.clock.lease = holding.trust_end_us - 1
    (folder(stage) / "go").touch()
    wait_for(lambda: "returned" in stage.read().kinds(), holder)
    [back] = [one for one in stage.read().entries if one.kind == "returned"]
    assert back.details["why"] == "too little of the lease was left to begin"
    # Its next attempt may have begun by now, with a lease of its own.
    assert 1 not in [one.attempt for one in stage.script.starts]


def test_a_stopping_holder_ends_the_gate_and_gives_the_claim_to_the_next(stage: Stage) -> None:
    stage.kept = True
    holder = start(stage, "echo $$ > asked; exec sleep 600")
    pid = asked(stage)
    holder.stop()
    holder.run()
    stage.holders.remove(holder)
    assert not lives(pid)
    run = only(stage)
    assert (run.state, run.attempt, run.handed_to) == ("waiting", 1, None)
    assert stage.read().kinds(run.id) == ["opened", "claimed", "returned"]


def test_a_gate_is_asked_again_before_a_retry_and_by_hand_too_but_not_anyway(stage: Stage) -> None:
    holder = stage.holder()
    add(stage, "echo once >> log; exit 1")
    for anyway in (False, True):
        asks.run_now(stage.store, "a", by="ann", anyway=anyway)
        until_idle(holder)
        if not anyway:
            wait_for(lambda: only(stage).state == "ended", holder)
    stage.script.wait_for_starts(1)
    assert [run.outcome for run in stage.read().runs] == ["skipped", None]
    assert (folder(stage) / "log").read_text() == "once\n"
    assert "began" not in stage.read().kinds()


@pytest.mark.parametrize("kept", [True, False])
def test_a_run_whose_holder_died_while_its_gate_was_asked_never_began(stage: Stage, kept: bool) -> None:
    stage.kept = kept
    first = start(stage, f"{DEAF}; touch answered")
    pid = asked(stage)
    first.die()
    stage.holders.remove(first)
    second = stage.holder()
    wait_for(lambda: only(stage).attempt == 2, second)
    assert not lives(pid)
    assert only(stage).interruptions == 0
    kinds = stage.read().kinds(only(stage).id)
    assert kinds[:5] == ["opened", "claimed", "taken_over", "returned", "claimed"]
    (folder(stage) / "go").touch()
    stage.script.wait_for_starts(1)
    wait_for(lambda: "began" in stage.read().kinds(), second)
    stage.script.over.set()
    settle_all(stage, 1)
    assert only(stage).outcome == "succeeded"
    assert len(stage.script.starts) == 1
    assert verify(stage.store) == []
