"""Removing tasks: by a person, or by themselves when they are done and say so. Their rows, runs and ledger stay.

All of it happens in the caller's transaction, so when it returns nothing of the task can start.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from sqlalchemy import exists, not_, select, text

from duly.core import lifecycle, parking
from duly.core.run import Entry
from duly.core.task import Task
from duly.errors import NOTHING
from duly.store import definitions_written
from duly.store.offers import withdraw
from duly.store.plans import disarm
from duly.store.sql import Statement
from duly.store.store import Session
from duly.store.switches import attempt, end_waiting, move, switch_off, switch_on, write
from duly.store.tables import missed, runs, tasks

DULY = "duly"
LEAVING_A_TURN = 100
"""Tasks that one look lets go; the rest is left to the next, so that the lock is never held for long."""
# In the very words of the indexes: SQLite uses them for no others.
LEAVING = Statement(
    lambda: (
        select(tasks.c.id)
        .where(
            text("tasks.leaves = 1 AND tasks.done = 1 AND tasks.removed_us IS NULL"),
            not_(exists(select(runs.c.id).where(runs.c.task == tasks.c.id, text("runs.state = 'waiting'")))),
            not_(exists(select(runs.c.id).where(runs.c.task == tasks.c.id, text("runs.state IN ('held', 'parked')")))),
            # An open offer is an occurrence that may still run.
            not_(exists(select(missed.c.id).where(missed.c.task == tasks.c.id, text("missed.state = 'open'")))),
        )
        .limit(LEAVING_A_TURN)
    )
)


def remove(session: Session, task: Task, *, by: str, details: Mapping[str, object] = NOTHING) -> Task:
    """Remove a task: what waits ends skipped, what is offered is closed, what runs is cancelled."""
    off = switch_off(session, _told_of_its_rest(session, task), reason="task_removed", by=by)
    end_waiting(session, task, reason="task_removed", by=by, by_hand_too=True)
    withdraw(session, task.id, reason="task_removed", by=by)
    live = session.runs.live_of(task.id)
    held = [run for run in live if run.state == "held" and run.cancel_asked_at is None]
    move(session, [lifecycle.ask_cancel(run, by=by, now=session.now) for run in held])
    move(session, [parking.cancelled(run, by=by, now=session.now) for run in live if run.state == "parked"])
    write(session, task, replace(off, removed_at=session.now))
    for pause in session.pauses.all():
        if pause.scope == "task" and pause.target == task.id:
            session.pauses.delete(pause.id)
    definitions_written.forget(session, task)
    session.ledger.add([Entry(kind="removed", at=session.now, task=task.id, by=by, details=details)])
    again = session.tasks.by_id(task.id)
    assert again is not None
    return again


def remove_done(session: Session) -> list[Task]:
    """Remove the tasks that are done, asked to be removed then, and have neither a run nor an offer left."""
    gone = [str(row[0]) for row in session.line.rows(LEAVING)]
    return [remove(session, task, by=DULY, details={"why": "done"}) for task in session.tasks.by_ids(gone).values()]


def _told_of_its_rest(session: Session, task: Task) -> Task:
    """The task with the fate of what it did not owe while it was off on record, and its cursor at now."""
    if task.next_start_at is not None or task.done or task.broken is not None or not task.definition.triggers:
        return task
    reason = "paused" if task.definition.enabled else "disabled"
    told = attempt(session, task, partial(switch_on, session, task, reason=reason, at=session.now))
    return disarm(told) if told is not None else task
