"""Runs that do harm to whoever holds them come to an end, and keep nobody else from their work."""

import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

from holder_scene import START, WITHIN_S, Scripted, Stage, until_idle

from duly.clock import monotonic_s, pause
from duly.core.lifecycle import DEATHS_MOST, deaths_of
from duly.core.run import Entry, Run
from duly.holder.dispatcher import Won
from duly.holder.figures import figures
from duly.holder.holder import Holder
from duly.holder.holdings import Holding
from duly.holder.wish import Wish
from duly.operations import runs
from duly.ports import Assignment, Outcome
from duly.runners import processes
from duly.runners.registry import Registry

SECOND = timedelta(seconds=1)
CALL = {"kind": "call", "function": "somewhere:something"}


def wait_until(what: Callable[[], bool]) -> None:
    """Ask until it is so: what is looked at in threads comes to its end in their time."""
    until = monotonic_s() + WITHIN_S
    while not what():
        assert monotonic_s() < until
        pause(0.01)


def the_run(stage: Stage) -> Run:
    (run,) = stage.read().runs
    return run


def test_a_run_whose_holders_die_before_it_begins_is_given_back_a_few_times_and_then_ends(stage: Stage) -> None:
    stage.kept = True
    stage.add("poison", "manual")
    runs.run_now(stage.store, "poison", by="test")
    for number in range(1, DEATHS_MOST + 1):
        holder = stage.holder()
        wait_until(lambda: holder.step() is not None and the_run(stage).attempt == number)  # noqa: B023
        stage.holders.remove(holder)
        holder.die()
    last = stage.holder()
    wait_until(lambda: last.step() is not None and the_run(stage).state == "ended")
    run = the_run(stage)
    assert (run.outcome, run.reason, run.attempt) == ("abandoned", "holder_died", DEATHS_MOST)
    assert run.error is not None
    assert "it may be what kills them" in run.error
    kinds = stage.read().kinds(run.id)
    assert kinds.count("returned") == DEATHS_MOST - 1
    until_idle(last)
    assert the_run(stage).attempt == DEATHS_MOST


def test_what_is_given_back_for_another_reason_than_a_death_is_never_counted(stage: Stage) -> None:
    stage.add("late", "manual")
    runs.run_now(stage.store, "late", by="test")
    holder = stage.holder()
    real, tries = holder.writer.hold, iter(range(DEATHS_MOST + 2))

    def late_at_first(won: Won, sent_us: int, *more: Any, **others: Any) -> Holding:
        """The first few claims have too little of their lease left to begin."""
        return real(won, sent_us - (10**12 if next(tries, None) is not None else 0), *more, **others)

    holder.writer.hold = late_at_first  # type: ignore[method-assign]
    stage.script.over.set()
    wait_until(lambda: holder.step() is not None and the_run(stage).state == "ended")
    assert (the_run(stage).outcome, the_run(stage).attempt) == ("succeeded", DEATHS_MOST + 3)


class Unwritable(Scripted):
    """Work whose end cannot be written: its error is no text that any database takes."""

    def perform(self, assignment: Assignment, checkpoint: object) -> Outcome:
        return Outcome(word="failed", reason="exit_status", error="half a letter: \udc80")


def holder_with(stage: Stage, registry: Registry) -> Holder:
    wish = Wish(slots=4, figures=figures(), drain=timedelta(0))
    holder = Holder(stage.open(), wish, registry, tell=lambda event, told: stage.told.append((event, told)))
    holder.register()
    stage.holders.append(holder)
    return holder


def test_an_end_that_cannot_be_written_ends_its_run_with_the_fault_and_keeps_no_other_from_its_end(
    stage: Stage,
) -> None:
    stage.script.over.set()
    kinds = {
        "command": lambda: Scripted(stage.script, kept=False, at_once=True),
        "call": lambda: Unwritable(stage.script, kept=False, at_once=True),
    }
    holder = holder_with(stage, Registry(kinds))
    stage.add("odd", "manual", action=CALL)
    stage.add("good", "manual")
    for name in ("odd", "good"):
        runs.run_now(stage.store, name, by="test")
    wait_until(lambda: holder.step() is not None and all(run.state == "ended" for run in stage.read().runs))
    ends = {run.outcome: (run.reason, run.error) for run in stage.read().runs}
    assert ends["succeeded"] == (None, None)
    reason, error = ends["abandoned"]
    assert reason == "end_not_confirmed"
    assert error is not None
    assert error.startswith("its end could not be written: UnicodeEncodeError")
    assert len(holder.holdings) == 0


def test_a_runner_that_cannot_be_made_fails_its_own_run_and_no_other_of_its_batch(stage: Stage) -> None:
    def broken() -> Scripted:
        raise OSError("its library is missing")

    stage.script.over.set()
    holder = holder_with(
        stage, Registry({"command": lambda: Scripted(stage.script, kept=False, at_once=True), "call": broken})
    )
    stage.add("broken", "every 1m", action=CALL)
    stage.add("good", "every 1m")
    stage.clock.pass_(60 * SECOND)
    wait_until(lambda: holder.step() is not None and [run.state for run in stage.read().runs] == ["ended"] * 2)
    assert {run.outcome: run.reason for run in stage.read().runs} == {"failed": "preflight", "succeeded": None}
    (failed,) = [run for run in stage.read().runs if run.outcome == "failed"]
    assert failed.error == "its runner could not be made: OSError: its library is missing"


# Outcomes that come too late


def given_up(stage: Stage, **more: Any) -> tuple[Run, Path]:
    """A run that was given up when its holder died, and the folder of its attempt."""
    stage.add("slow", "manual", **more)
    runs.run_now(stage.store, "slow", by="test")
    first = stage.holder()
    until_idle(first)
    stage.script.wait_for_starts(1)
    stage.holders.remove(first)
    first.die()
    second = stage.holder()
    wait_until(lambda: second.step() is not None and the_run(stage).state == "ended")
    run = the_run(stage)
    assert run.outcome == "abandoned"
    folder = stage.store.run_folder / "attempts" / f"{run.id}.{run.fence}"
    folder.mkdir(parents=True, exist_ok=True)
    return run, folder


def write_exit(folder: Path, **told: object) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    fields = {"exit_code": 0, "signal": None, "ended_by": "self", "ended_at_us": 1_800_000_000_000_000}
    processes.write_whole(descriptor, "exit", {**fields, **told})
    os.close(descriptor)


def late(stage: Stage) -> list[Entry]:
    return [entry for entry in stage.read().entries if entry.kind == "outcome_late"]


def start_another(stage: Stage, folder: Path) -> None:
    """Let a holder begin, which clears up once, and wait until it has."""
    holder = stage.holder()
    wait_until(lambda: holder.step() is not None and not (folder / "exit").exists())


def test_an_outcome_found_for_an_attempt_that_was_given_up_is_told_once_and_changes_nothing(stage: Stage) -> None:
    run, folder = given_up(stage)
    write_exit(folder)
    start_another(stage, folder)
    (one,) = late(stage)
    assert (one.run, one.attempt, one.details["outcome"], one.details["exit_code"]) == (run.id, 1, "succeeded", 0)
    assert one.details["ended_at"] == "2027-01-15T08:00:00Z"
    assert the_run(stage) == run
    folder.mkdir(exist_ok=True)
    write_exit(folder)
    start_another(stage, folder)
    assert len(late(stage)) == 1


def test_an_end_that_our_own_order_brought_is_no_outcome_that_came_late(stage: Stage) -> None:
    _, folder = given_up(stage)
    write_exit(folder, ended_by="kill", exit_code=None, signal=9)
    start_another(stage, folder)
    assert late(stage) == []


def test_the_known_outcome_of_a_settled_attempt_is_not_told_again(stage: Stage) -> None:
    stage.script.over.set()
    stage.add("quick", "manual")
    runs.run_now(stage.store, "quick", by="test")
    holder = stage.holder()
    wait_until(lambda: holder.step() is not None and the_run(stage).state == "ended")
    folder = stage.store.run_folder / "attempts" / f"{the_run(stage).id}.1"
    folder.mkdir(parents=True, exist_ok=True)
    write_exit(folder)
    start_another(stage, folder)
    assert late(stage) == []


def test_only_what_was_given_back_by_a_death_counts_as_one() -> None:
    back = [Entry(kind="returned", at=START, details={"why": "too little of the lease was left to begin"})] * 7
    death = Entry(kind="returned", at=START, details={"why": "it had not begun", "died": True})
    assert deaths_of([*back, death, Entry(kind="swept", at=START, details={"died": True})]) == 1
