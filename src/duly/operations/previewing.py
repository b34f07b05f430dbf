"""What a rule means: its words, and its instants to come on the zone's wall, with the marks of gaps and folds."""

import heapq
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from duly import zones
from duly.core import trigger_json, when, words
from duly.core.readings import at_or_after
from duly.core.schedule import dues
from duly.core.task import Task
from duly.core.triggers import Every, On, Once, Trigger, Triggers, is_due_at, is_interval_like, occurrences, wall_clock
from duly.core.wallclock import law, whole_seconds
from duly.operations import shapes

if TYPE_CHECKING:
    from duly.store.store import Session

NEXT_MOST = 1000


def preview(triggers: Triggers, zone: ZoneInfo, *, after: datetime, most: int) -> dict[str, object]:
    """Say what triggers mean and their first instants after a moment; equal instants are one."""
    instants = islice(occurrences(triggers, zone, after), most)
    return {
        "items": [item(triggers, zone, at) for at in instants],
        "next": None,
        "words": say(triggers),
        "canonical": canonical(triggers),
        "zone": zone.key,
        "triggers": [
            {"canonical": when.write(trigger), "words": say((trigger,)), **trigger_json.to_json(trigger)}
            for trigger in triggers
        ],
    }


def say(triggers: Triggers) -> str:
    """Say triggers in words, on the wall of their own zone."""
    return words.describe_all(triggers)


def canonical(triggers: Triggers) -> str:
    """Write triggers in their canonical form, one after another."""
    return "; ".join(when.write(trigger) for trigger in triggers) if triggers else "manual"


def item(triggers: Triggers, zone: ZoneInfo, at: datetime) -> dict[str, object]:
    """Show one instant to come."""
    there = at.astimezone(zone)
    due = tuple(trigger for trigger in triggers if is_due_at((trigger,), zone, at))
    return shapes.preview_item(
        due_at=at,
        local=there,
        zone=zone.key or "UTC",
        offset=there.utcoffset() or timedelta(0),
        note=mark(due, zone, at),
        words=say(due),
    )


def mark(due: Triggers, zone: ZoneInfo, at: datetime) -> str | None:
    """Mark an instant: `gap` when it stands for a local time that never comes, `fold` when its own comes twice."""
    there = at.astimezone(zone)
    if due and all(_stands_for_missing(trigger, zone, at) for trigger in due):
        return "gap"
    passes = {there.replace(fold=fold).utcoffset() for fold in (0, 1)}
    if len(passes) == 2 and all(_is_there(there.replace(fold=fold)) for fold in (0, 1)):
        return "fold"
    return None


def _is_there(local: datetime) -> bool:
    """Say whether a local time is one that the wall shows."""
    back = local.astimezone(UTC).astimezone(local.tzinfo)
    return back.replace(tzinfo=None) == local.replace(tzinfo=None)


def _stands_for_missing(trigger: Trigger, zone: ZoneInfo, at: datetime) -> bool:
    there = at.astimezone(zone).replace(tzinfo=None)
    if isinstance(trigger, Once):
        return trigger.local is not None and trigger.local != there
    if isinstance(trigger, Every | On) or is_interval_like(trigger):
        return False
    pattern, _ = wall_clock(trigger, law("run", "first"))
    reading = whole_seconds(there.replace(tzinfo=UTC))
    return at_or_after(pattern, reading) != reading


def upcoming(task: Task, now: datetime) -> Iterator[datetime]:
    """Yield a task's instants to come; the first may be overdue, when nobody has planned it yet."""
    if task.next_due_at is None:
        return
    if task.next_due_at <= now:
        yield task.next_due_at
    definition = task.definition
    yield from dues(definition, zones.zone(definition.zone), max(now, task.planned_until))


def next_of(tasks: Sequence[Task], *, now: datetime, most: int) -> list[dict[str, object]]:
    """Show the next instants of these tasks together, the earliest first, each with its task."""
    from duly.operations.lookup import told

    streams = [_stream(task, at, now) for at, task in enumerate(tasks)]
    items = []
    for instant, _, task in islice(heapq.merge(*streams, key=lambda found: found[:2]), most):
        zone = zones.zone(task.definition.zone)
        shown = item(task.definition.triggers, zone, instant)
        shown |= {
            "task": task.id,
            "task_name": told(task),
            "project": task.definition.project,
            "overdue": instant <= now,
        }
        items.append(shown)
    return items


def coming(session: "Session", most: int) -> list[Task]:
    """Give the tasks that can have a part in the next so many instants of the store."""
    wanted = most
    while True:
        found = session.tasks.next(wanted)
        sound = [task for task in found if task.broken is None]
        if len(sound) >= most or len(found) < wanted:
            return sound[:most]
        wanted *= 2


def _stream(task: Task, place: int, now: datetime) -> Iterator[tuple[datetime, int, Task]]:
    for instant in upcoming(task, now):
        yield instant, place, task
