"""Plans written down: the fates of due occurrences, in one transaction with the cursors that say so.

Used by the planner at its turn, and by every edit that must plan up to now before it changes anything.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from duly import ids, zones
from duly.core import lifecycle
from duly.core.occurrences import at_key
from duly.core.planning import Plan, plan
from duly.core.run import Entry, Missed, Run
from duly.core.task import Broken, Task
from duly.errors import DulyError
from duly.store.store import Session
from duly.store.tasks import CursorMove

OPEN_AGAIN = 1000
"""Turns of planning that an edit makes to bring one task up to now; each opens as many as one plan may."""


def write_plans(session: Session, due: Sequence[Task], *, holder: str | None) -> list[Run]:
    """Plan these tasks at the session's moment and write what becomes of them; gives the runs that were opened.

    A task that cannot be planned is put aside with what is wrong, and never keeps another from its plan.
    """
    planned: list[tuple[Task, Plan]] = []
    for task in due:
        judged = _judge(task, session.now)
        if isinstance(judged, Broken):
            session.tasks.set_trouble(task.id, judged)
        else:
            planned.append((task, judged))
    won = session.tasks.move_cursors([_move(task, made) for task, made in planned])
    runs: list[Run] = []
    missed: list[Missed] = []
    entries: list[Entry] = []
    for task, made in planned:
        if task.id not in won:
            continue
        if made.stretch is not None:
            one = _missed(task, made, session.now, holder)
            missed.append(one)
            entries.append(_missed_entry(one))
        for opening in made.openings:
            run, entry = lifecycle.opened(task, opening, id_=ids.new("run"), now=session.now, holder=holder)
            runs.append(run)
            entries.append(entry)
    session.missed.insert(missed)
    session.runs.insert(runs)
    session.ledger.add(entries)
    return runs


def bring_up_to_now(session: Session, task: Task) -> Task:
    """Give every occurrence of this task up to now its fate, under the definition in force; gives it as it stands."""
    for _ in range(OPEN_AGAIN):
        if task.broken is not None or task.next_due_at is None or task.next_due_at > session.now:
            return task
        write_plans(session, [task], holder=None)
        again = session.tasks.by_id(task.id)
        assert again is not None
        task = again
    return task


def arm(task: Task, cursor: datetime) -> Task:
    """The task with its cursor at this instant and its next start computed from there."""
    zone = zones.zone(task.definition.zone)
    made = plan(replace(task, planned_until=cursor), zone, cursor)
    return replace(
        task, planned_until=cursor, next_due_at=made.next_due_at, next_start_at=made.next_due_at, done=made.done
    )


def disarm(task: Task) -> Task:
    """The task without a next start: nothing opens it by time."""
    return replace(task, next_due_at=None, next_start_at=None)


def _judge(task: Task, now: datetime) -> Plan | Broken:
    if task.broken is not None:
        return task.broken
    try:
        return plan(task, zones.zone(task.definition.zone), now)
    except DulyError as error:
        return Broken(field="zone", message=error.message)
    except Exception as error:  # noqa: BLE001 - a trigger's fault must stay its own task's
        return Broken(field="triggers", message=f"planning failed: {type(error).__name__}: {error}")


def _move(task: Task, made: Plan) -> CursorMove:
    return CursorMove(
        task=task,
        planned_until=made.planned_until,
        next_due_at=made.next_due_at,
        next_start_at=made.next_due_at,
        done=made.done,
    )


def _missed(task: Task, made: Plan, now: datetime, holder: str | None) -> Missed:
    stretch = made.stretch
    assert stretch is not None
    return Missed(
        id=ids.new("mis"),
        task=task.id,
        occurrence=at_key(stretch.first),
        due_at=stretch.first,
        until_at=stretch.last,
        count=stretch.count,
        reason=stretch.reason,
        noticed_at=now,
        holder=holder,
    )


def _missed_entry(one: Missed) -> Entry:
    return Entry(
        kind="missed",
        at=one.noticed_at,
        task=one.task,
        occurrence=one.occurrence,
        reason=one.reason,
        holder=one.holder,
        count=one.count,
        until_at=one.until_at,
        details={"missed": one.id},
    )
