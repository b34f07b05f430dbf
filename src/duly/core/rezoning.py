"""What other zone data make of a task's cursor: a local time that had its fate has no second one at its new instant.

The cursor is an instant; beside it is kept how it stood on the wall of the task's zone when it was planned. Only local
times move with the data: `every`, exact instants and cron lines that follow the clock as it runs go on from the cursor.
"""

from dataclasses import replace
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from duly.core.schedule import fixed_of, last_due
from duly.core.task import Task
from duly.core.wallclock import instant_of, instants_of, law, offset_at, whole_seconds


def wall_of(instant: datetime, zone: ZoneInfo) -> str | None:
    """Write what the zone's wall shows at an instant, with offset and zone; None at the ends of the calendar."""
    try:
        return f"{instant.astimezone(zone).isoformat()}[{zone.key}]"
    except OverflowError:
        return None


def cursor_by(task: Task, zone: ZoneInfo) -> datetime:
    """Give the task's cursor by this zone's data: where it was, or later where its wall time comes later now."""
    fixed = fixed_of(task.definition.triggers)
    if task.planned_wall is None or not fixed:
        return task.planned_until
    text, _, key = task.planned_wall.rstrip("]").partition("[")
    if key != zone.key:
        return task.planned_until
    there = _instant_of_wall(datetime.fromisoformat(text), zone, task)
    if there is None or there <= task.planned_until:
        return task.planned_until
    # Beside local times a task may have others, which are passed over no farther than needed.
    last = last_due(replace(task.definition, triggers=fixed), zone, there)
    return task.planned_until if last is None else max(task.planned_until, last)


def _instant_of_wall(wall: datetime, zone: ZoneInfo, task: Task) -> datetime | None:
    """Find when this zone's wall shows that time, by the task's own rules; of two passes its own, else the later."""
    rules = task.definition.rules
    reading = whole_seconds(wall.replace(tzinfo=UTC))
    found = instants_of(zone, reading, law(rules.gap, rules.fold))
    if not found:
        return None
    offset = wall.utcoffset()
    assert offset is not None
    own = [at for at in found if offset_at(zone, at) == offset.total_seconds()]
    return instant_of((own or found)[-1])
