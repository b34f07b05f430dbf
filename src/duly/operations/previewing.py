"""What a rule means: its words, and its instants to come on the zone's wall, with the marks of gaps and folds."""

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import chain, islice
from typing import TYPE_CHECKING, cast
from zoneinfo import ZoneInfo

from duly import zones
from duly.core import trigger_json, when, words
from duly.core.fields import BY_PATH
from duly.core.planning import times_left
from duly.core.reading import read_field, shown
from duly.core.readings import at_or_after
from duly.core.schedule import dues, fixed_of
from duly.core.spreading import start_of
from duly.core.task import Task
from duly.core.triggers import Every, On, Once, Trigger, Triggers, is_due_at, is_interval_like, occurrences, wall_clock
from duly.core.wallclock import Fold, Gap, law, whole_seconds
from duly.errors import Invalid
from duly.operations import shapes

if TYPE_CHECKING:
    from duly.store.store import Session

NEXT_MOST = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Coming:
    """An instant to come, and when it starts: later by its share of the task's spread; None where none is known yet."""

    due_at: datetime
    start_at: datetime | None


def preview(
    triggers: Triggers, zone: ZoneInfo, *, after: datetime, most: int, gap: Gap = "run", fold: Fold = "first"
) -> dict[str, object]:
    """Say what triggers mean and their first instants after a moment; equal instants are one."""
    instants = islice(occurrences(triggers, zone, after, gap=gap, fold=fold), most)
    return {
        "items": [_item(triggers, zone, Coming(due_at=at, start_at=at), gap=gap, fold=fold) for at in instants],
        "next": None,
        "words": say(triggers),
        "canonical": canonical(triggers),
        "zone": zone.key,
        "triggers": [
            {"canonical": when.write(trigger), "words": say((trigger,)), **trigger_json.to_json(trigger)}
            for trigger in triggers
        ],
    }


def text_of(given: object, at: int) -> str:
    """Give one trigger of a list as text, whether it came as text or as an object."""
    if isinstance(given, str):
        return given
    if not isinstance(given, Mapping):
        raise Invalid(f"{shown(given)} is neither a text nor an object", field=f"when[{at}]", hint="daily 09:00")
    try:
        return when.write(trigger_json.from_json(given))
    except Invalid as bad:
        raise Invalid(bad.message, field=f"when[{at}]", text=bad.text, at=bad.at, hint=bad.hint) from bad


def bends(rules: Mapping[str, object], triggers: Triggers) -> tuple[Gap, Fold]:
    """Read the rules for gaps and folds; Invalid where no trigger has a local time that they could speak of."""
    given = {"gap": "run", "fold": "first"}
    for name, value in rules.items():
        if value is None:
            continue
        if not fixed_of(triggers):
            raise Invalid("it says nothing here: no trigger means a local time", field=f"rules.{name}")
        given[name] = str(read_field(BY_PATH[f"rules.{name}"], value))
    return cast(Gap, given["gap"]), cast(Fold, given["fold"])


def say(triggers: Triggers) -> str:
    """Say triggers in words, on the wall of their own zone."""
    return words.describe_all(triggers)


def canonical(triggers: Triggers) -> str:
    """Write triggers in their canonical form, one after another."""
    return "; ".join(when.write(trigger) for trigger in triggers) if triggers else "manual"


def item_of(task: Task, zone: ZoneInfo, coming: Coming) -> dict[str, object]:
    """Show one instant to come of a task, by its own rules."""
    rules = task.definition.rules
    return _item(task.definition.triggers, zone, coming, gap=rules.gap, fold=rules.fold)


def _item(triggers: Triggers, zone: ZoneInfo, coming: Coming, *, gap: Gap, fold: Fold) -> dict[str, object]:
    at = coming.due_at
    there = at.astimezone(zone)
    due = tuple(trigger for trigger in triggers if is_due_at((trigger,), zone, at, gap=gap, fold=fold))
    return shapes.preview_item(
        due_at=at,
        start_at=coming.start_at,
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


def upcoming(task: Task, now: datetime) -> Iterator[Coming]:
    """Yield a task's instants to come; the first may be overdue, when nobody has planned it yet."""
    if task.next_due_at is None:
        return
    definition = task.definition
    overdue = [task.next_due_at] if task.next_due_at <= now else []
    after = dues(definition, zones.zone(definition.zone), max(now, task.planned_until))
    yield from _started(task, chain(overdue, after))


def ahead(task: Task, *, known: bool) -> Iterator[Coming]:
    """Yield the instants of a task after its cursor; not `known`: it has no id yet, from which its spread is drawn."""
    instants = dues(task.definition, zones.zone(task.definition.zone), task.planned_until)
    if known or not task.definition.rules.spread:
        yield from _started(task, instants)
    else:
        yield from (Coming(due_at=at, start_at=None) for at in islice(instants, times_left(task)))


def _started(task: Task, instants: Iterable[datetime]) -> Iterator[Coming]:
    definition = task.definition
    zone = zones.zone(definition.zone)
    for at in islice(instants, times_left(task)):
        yield Coming(due_at=at, start_at=start_of(task.id, definition, zone, at))


def next_of(tasks: Sequence[Task], *, now: datetime, most: int) -> list[dict[str, object]]:
    """Show the next instants of these tasks together, the earliest first, each with its task."""
    from duly.operations.lookup import told

    streams = [_stream(task, at, now) for at, task in enumerate(tasks)]
    items = []
    for instant, _, task, coming in islice(heapq.merge(*streams, key=lambda found: found[:2]), most):
        shown = item_of(task, zones.zone(task.definition.zone), coming)
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


def _stream(task: Task, place: int, now: datetime) -> Iterator[tuple[datetime, int, Task, Coming]]:
    for coming in upcoming(task, now):
        yield coming.due_at, place, task, coming
