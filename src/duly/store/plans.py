"""Plans written down: the fates of due occurrences, in one transaction with the cursors that say so.

Used by the planner at its turn, and by every edit that must plan up to now before it changes anything.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from duly import ids, zones
from duly.core import lifecycle
from duly.core.fates import Stretch
from duly.core.occurrences import at_key
from duly.core.planning import Plan, plan
from duly.core.rezoning import wall_of
from duly.core.run import Entry, Missed, Run
from duly.core.skips import Range
from duly.core.spans import write_instant
from duly.core.task import Broken, Task
from duly.errors import DulyError
from duly.store.rezoning import by_these_data, take_over
from duly.store.store import Session
from duly.store.tasks import CursorMove

OPEN_AGAIN = 1000
"""Turns of planning that an edit makes to bring one task up to now; each opens as many as one plan may."""

Pace = Callable[[Task, Run], Run]
"""When a run that catches up may start at the earliest: the run as it shall be opened."""


def write_plans(session: Session, due: Sequence[Task], *, holder: str | None, pace: Pace | None = None) -> list[Run]:
    """Plan these tasks at the session's moment and write what becomes of them; gives the runs that were opened.

    A task that cannot be planned is put aside with what is wrong, and never keeps another from its plan.
    """
    planned: list[tuple[Task, Plan]] = []
    due = list(take_over(session, due).values())
    skipped = session.skips.ahead([task.id for task in due])
    for task in due:
        judged = _judge(task, session.now, skipped.get(task.id, ()))
        if isinstance(judged, Broken):
            session.tasks.set_trouble(task.id, judged)
        else:
            planned.append((task, judged))
    won = session.tasks.move_cursors([_move(task, made) for task, made in planned])
    runs: list[Run] = []
    missed: list[Missed] = []
    entries: list[Entry] = []
    kept = [(task, made) for task, made in planned if task.id in won]
    fresh = iter(ids.several("run", sum(len(made.openings) for _, made in kept)))
    for task, made in kept:
        records, told = _not_started(task, made, session.now, holder)
        missed += records
        entries += told
        for opening in made.openings:
            run, entry = lifecycle.opened(task, opening, id_=next(fresh), now=session.now, holder=holder)
            runs.append(pace(task, run) if pace is not None and run.opened_by == "catch_up" else run)
            entries.append(entry)
    session.missed.insert(missed)
    session.runs.insert(runs)
    session.ledger.add(entries)
    return runs


def bring_up_to_now(session: Session, task: Task) -> Task:
    """Give every occurrence of this task up to now its fate, under the definition in force; gives it as it stands."""
    task = by_these_data(session, task)
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
        task,
        planned_until=cursor,
        next_due_at=made.next_due_at,
        next_start_at=made.next_start_at,
        done=made.done,
        zone_data=zones.zone_data_version(),
    )


def disarm(task: Task) -> Task:
    """The task without a next start: nothing opens it by time."""
    return replace(task, next_due_at=None, next_start_at=None)


def _judge(task: Task, now: datetime, skipped: Sequence[Range]) -> Plan | Broken:
    if task.broken is not None:
        return task.broken
    try:
        return plan(task, zones.zone(task.definition.zone), now, skipped)
    except DulyError as error:
        return Broken(field="zone", message=error.message)
    except Exception as error:  # noqa: BLE001 - a trigger's fault must stay its own task's
        return Broken(field="triggers", message=f"planning failed: {type(error).__name__}: {error}")


def _move(task: Task, made: Plan) -> CursorMove:
    moved = made.planned_until > task.planned_until
    zone = zones.zone(task.definition.zone)
    return CursorMove(
        task=task,
        planned_until=made.planned_until,
        planned_wall=wall_of(made.planned_until, zone) if moved else task.planned_wall,
        next_due_at=made.next_due_at,
        next_start_at=made.next_start_at,
        done=made.done,
        opened=len(made.openings),
    )


def _not_started(task: Task, made: Plan, now: datetime, holder: str | None) -> tuple[list[Missed], list[Entry]]:
    """Make the records of what was missed, and the entries of all that was not opened; what is offered is one offer."""
    offered = [stretch for stretch in made.stretches if stretch.reason == "missed_offer"]
    offer = _record(task, offered, now, holder) if offered else None
    missed = [] if offer is None else [offer]
    entries = []
    for stretch in made.stretches:
        if stretch.reason == "skipped_by_hand":
            entries.append(_entry(task, stretch, now, holder, kind="stretch"))
            continue
        one = offer
        if one is None or stretch.reason != "missed_offer":
            one = _record(task, [stretch], now, holder)
            missed.append(one)
        told = {"missed": one.id, **stretch.details}
        if one.expires_at is not None:
            told["expires_at"] = write_instant(one.expires_at)
        entries.append(_entry(task, replace(stretch, details=told), now, holder, kind="missed"))
    return missed, entries


def _record(task: Task, stretches: Sequence[Stretch], now: datetime, holder: str | None) -> Missed:
    first, last = stretches[0], stretches[-1]
    offered = first.reason == "missed_offer"
    return Missed(
        id=ids.new("mis"),
        task=task.id,
        occurrence=at_key(first.first),
        due_at=first.first,
        until_at=last.last,
        count=sum(stretch.count for stretch in stretches),
        reason=first.reason,
        noticed_at=now,
        holder=holder,
        state="open" if offered else "closed",
        expires_at=now + task.definition.rules.offer_for if offered else None,
    )


def _entry(task: Task, stretch: Stretch, now: datetime, holder: str | None, *, kind: str) -> Entry:
    return Entry(
        kind=kind,
        at=now,
        task=task.id,
        occurrence=at_key(stretch.first),
        reason=stretch.reason,
        holder=holder,
        by=stretch.by,
        count=stretch.count,
        until_at=stretch.last,
        details=stretch.details,
    )
