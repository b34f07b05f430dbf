"""Switching tasks on and off: what a pause, a switch or a removal does to cursors and waiting runs.

All of it happens in the caller's transaction, so when it returns nothing of the old state can start.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from duly import zones
from duly.core import lifecycle
from duly.core.names import key_of
from duly.core.occurrences import at_key
from duly.core.planning import owed
from duly.core.run import BY_TIME_OR_EVENT, Entry, Step
from duly.core.spans import write_instant
from duly.core.task import Broken, Task
from duly.errors import DulyError, Refused
from duly.store import endings
from duly.store.pauses import holding
from duly.store.plans import arm, bring_up_to_now, disarm
from duly.store.rezoning import by_these_data
from duly.store.rows import Pause
from duly.store.store import Session


def is_armed(task: Task, pauses: Sequence[Pause]) -> bool:
    """Time may open runs of this task."""
    return (
        task.definition.enabled
        and task.removed_at is None
        and task.broken is None
        and not holding(pauses, task=task.id, project_key=key_of(task.definition.project))
    )


def switch_off(session: Session, task: Task, *, reason: str, by: str) -> Task:
    """Plan up to now, then end the waiting runs that time or an event opened; the task has no next start."""
    task = bring_up_to_now(session, task)
    end_waiting(session, task, reason=reason, by=by, by_hand_too=False)
    return disarm(task)


def switch_on(session: Session, task: Task, *, reason: str, at: datetime) -> Task:
    """Owe nothing of the stretch while it was off: the cursor moves to `at`, with one counted entry."""
    task = by_these_data(session, task)
    zone = zones.zone(task.definition.zone)
    stretch = None if task.done else owed(task.definition, zone, task.planned_until, at)
    if stretch is not None:
        session.ledger.add(
            [
                Entry(
                    kind="stretch",
                    at=session.now,
                    task=task.id,
                    occurrence=at_key(stretch.first),
                    reason=reason,
                    count=stretch.count,
                    until_at=stretch.last,
                )
            ]
        )
    return arm(task, max(task.planned_until, at))


def end_waiting(session: Session, task: Task, *, reason: str, by: str, by_hand_too: bool) -> int:
    """End a task's waiting runs without a start, those asked by hand only where said so; gives how many."""
    steps = [
        lifecycle.skip(run, reason=reason, now=session.now, details={}, by=by)
        for run in session.runs.waiting_of(task.id)
        if by_hand_too or run.opened_by in BY_TIME_OR_EVENT
    ]
    return len(move(session, steps))


def move(session: Session, steps: Sequence[Step]) -> set[str]:
    """Write steps, with the entries and the counts of those that still stood as read; gives their runs' ids."""
    won = session.runs.move(steps)
    written = [step for step in steps if step.after.id in won]
    session.ledger.add([entry for step in written for entry in step.entries])
    endings.count(session, written)
    return won


def attempt(session: Session, task: Task, change: Callable[[], Task]) -> Task | None:
    """Make a change that needs the task's schedule; one whose schedule fails is put aside, its own fault."""
    try:
        return change()
    except DulyError as error:
        session.tasks.set_trouble(task.id, Broken(field="zone", message=error.message))
    except (ArithmeticError, AssertionError, LookupError, TypeError, ValueError) as error:
        told = f"planning failed: {type(error).__name__}: {error}"
        session.tasks.set_trouble(task.id, Broken(field="triggers", message=told))
    return None


def write(session: Session, before: Task, after: Task) -> None:
    """Write a task's switch and cursor; Refused when somebody changed it in between."""
    if not session.tasks.set_state(before, replace(after, updated_at=session.now)):
        raise Refused("version_conflict", f"{before.definition.name} was changed by somebody else", details={})


def lift_over(session: Session) -> None:
    """Lift every pause whose end has come, each at that end: it holds nothing any more, whoever looks first."""
    for pause in session.pauses.over(session.now):
        assert pause.until is not None
        lift(session, pause, by="duly", at=pause.until)


def lift(session: Session, pause: Pause, *, by: str, at: datetime) -> None:
    """Lift one pause; tasks that nothing else holds go on from `at`.

    A task that is let go on by itself has its failures in a row counted anew: one more failure does not hold it again.
    """
    session.pauses.delete(pause.id)
    if pause.scope == "task":
        session.tasks.forget_failures(pause.target)
    left = session.pauses.all()
    for task in session.tasks.in_scope(pause.scope, pause.target):
        if task.next_start_at is None and not task.done and is_armed(task, left):
            on = attempt(session, task, lambda task=task: switch_on(session, task, reason="paused", at=at))  # type: ignore[misc]
            if on is not None:
                write(session, task, on)
        elif task.next_start_at is None and task.broken is not None:
            session.tasks.set_trouble(task.id, task.broken)  # so that it is found again once it reads
    session.ledger.add(
        [
            Entry(
                kind="unpaused",
                at=session.now,
                task=pause.target if pause.scope == "task" else None,
                by=by,
                details={
                    "scope": pause.scope,
                    "target": pause.target,
                    "pause": pause.id,
                    "would_have_ended": None
                    if pause.until is None
                    else write_instant(pause.until.replace(microsecond=0)),
                },
            )
        ]
    )
