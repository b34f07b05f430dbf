"""New zone data: tasks are taken over to the data of this process, each with a new era where it makes a difference.

The next instants are computed anew from the cursor, which moves on where the local time that was planned last comes
later by these data: no local time has two fates. What the new data place before the cursor is not opened any more.
"""

from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy import update
from sqlalchemy.sql.elements import CompilerElement

from duly import zones
from duly.clock import to_us
from duly.core.rezoning import cursor_by
from duly.core.run import Entry
from duly.core.schedule import asks_the_wall, is_over, next_due
from duly.core.spreading import start_of
from duly.core.task import Task
from duly.store.rows import us
from duly.store.sql import Batch, rows_of
from duly.store.store import Session
from duly.store.tables import tasks

_MOVED: dict[str, type] = {
    "id": str,
    "was_definition_version": int,
    "was_planned_until_us": int,
    "definition_version": int,
    "planned_until_us": int,
    "next_due_us": int,
    "next_start_us": int,
    "done": int,
    "zone_data": str,
}


def _moved(size: int) -> CompilerElement:
    v = rows_of(size, _MOVED)
    return (
        update(tasks)
        .where(
            tasks.c.id == v.c.id,
            tasks.c.definition_version == v.c.was_definition_version,
            tasks.c.planned_until_us == v.c.was_planned_until_us,
        )
        .values(
            definition_version=v.c.definition_version,
            planned_until_us=v.c.planned_until_us,
            next_due_us=v.c.next_due_us,
            next_start_us=v.c.next_start_us,
            done=v.c.done,
            zone_data=v.c.zone_data,
        )
        .returning(tasks.c.id)
    )


MOVED = Batch(_moved, tuple(_MOVED))


def take_over_others(session: Session, most: int) -> int:
    """Take over up to so many tasks that were computed by other zone data; gives how many."""
    return len(take_over(session, session.tasks.of_other_zone_data(zones.zone_data_version(), most)))


def take_over(session: Session, found: Sequence[Task]) -> dict[str, Task]:
    """Take these tasks over to the zone data of this process; gives them as they stand, by their ids.

    A task whose cursor or definition was moved by somebody else is not among them.
    """
    version = zones.zone_data_version()
    made = [(task, task if task.zone_data == version else _by_these_data(task, version)) for task in found]
    changed = [(task, after) for task, after in made if after is not task]
    if not changed:
        return {task.id: task for task in found}
    won = {row[0] for row in session.line.many(MOVED, [_cells(task, after) for task, after in changed])}
    for task, after in changed:
        if task.id in won and after.definition_version > task.definition_version:
            session.versions.insert(replace(after, updated_at=session.now), era_from_us=to_us(after.planned_until))
            session.ledger.add([_told(session, task, after)])
    return {after.id: after for task, after in made if after is task or task.id in won}


def by_these_data(session: Session, task: Task) -> Task:
    """Take one task over to the zone data of this process; gives it as it was where somebody else was faster."""
    return take_over(session, [task]).get(task.id, task)


def _by_these_data(task: Task, version: str) -> Task:
    after = replace(task, zone_data=version)
    definition = task.definition
    known = task.zone_data is not None and task.broken is None
    if not known or not asks_the_wall(definition.triggers) or zones.stands_still(definition.zone):
        return after
    try:
        zone = zones.zone(definition.zone)
        cursor = cursor_by(task, zone)
        due = next_due(definition, zone, cursor) if task.next_due_at is not None else None
        start = None if due is None else start_of(task.id, definition, zone, due)
    except Exception:  # noqa: BLE001 - whatever is wrong with it, planning says so and puts it aside
        return after
    return replace(
        after,
        definition_version=task.definition_version + 1,
        planned_until=cursor,
        next_due_at=due,
        next_start_at=start,
        done=task.done or (task.next_due_at is not None and is_over(definition, due)),
    )


def _cells(before: Task, after: Task) -> tuple[object, ...]:
    return (
        before.id,
        before.definition_version,
        to_us(before.planned_until),
        after.definition_version,
        to_us(after.planned_until),
        us(after.next_due_at),
        us(after.next_start_at),
        int(after.done),
        after.zone_data,
    )


def _told(session: Session, before: Task, after: Task) -> Entry:
    return Entry(
        kind="defined",
        at=session.now,
        task=after.id,
        by="duly",
        details={"version": after.definition_version, "zone_data": after.zone_data, "before": before.zone_data},
    )
