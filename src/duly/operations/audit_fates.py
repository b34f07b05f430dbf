"""What `verify` reads of fates: from its first day to its cursor every occurrence of a task has exactly one."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from duly import zones
from duly.clock import from_us
from duly.core.run import Entry
from duly.core.schedule import TICK, count_due, is_due, next_due
from duly.core.task import Broken, Definition, Task
from duly.errors import DulyError
from duly.store import Session
from duly.store.rows import parsed


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A promise that was not kept: which, by which task and run, and what shows it."""

    promise: str
    task: str | None
    run: str | None
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """The fate of one occurrence, or of a counted stretch of them."""

    first: datetime
    last: datetime
    count: int
    told: str


def fates(session: Session, task: Task, entries: Sequence[Entry]) -> Iterator[Finding]:
    """P6: from its first day to its cursor, every occurrence of the task has exactly one fate."""
    versions = session.versions.all(task.id)
    if not versions:
        yield Finding(promise="P6", task=task.id, run=None, text="no version of its definition is there")
        return
    told = sorted(_told(entries), key=lambda fate: fate.first)
    for index, version in enumerate(versions):
        since = from_us(version.era_from_us)
        until = from_us(versions[index + 1].era_from_us) if index + 1 < len(versions) else task.planned_until
        read = parsed(version.definition)
        if isinstance(read, Broken):
            continue
        try:
            zone = zones.zone(read.zone)
        except DulyError:
            continue
        mine = [fate for fate in told if since < fate.first <= until]
        for text in _gaps(read, zone, since, until, mine):
            yield Finding(promise="P6", task=task.id, run=None, text=text)
    if told and told[-1].last > task.planned_until:
        text = f"{told[-1].told} lies beyond the cursor {task.planned_until:%Y-%m-%dT%H:%M:%SZ}"
        yield Finding(promise="P6", task=task.id, run=None, text=text)


def _gaps(
    definition: Definition, zone: ZoneInfo, since: datetime, until: datetime, fates: Sequence[Fate]
) -> Iterator[str]:
    cursor = since
    for fate in fates:
        expected = next_due(definition, zone, cursor)
        if fate.first <= cursor:
            yield f"{fate.told} overlaps another fate"
            cursor = max(cursor, fate.last)
            continue
        if expected is None or expected < fate.first:
            yield f"no fate for {_shown(expected)}, before {fate.told}"
        elif expected > fate.first or not is_due(definition, zone, fate.last):
            yield f"{fate.told} is no occurrence of the task"
        number = count_due(definition, zone, fate.first - TICK, fate.last)
        if number != fate.count:
            yield f"{fate.told} counts {fate.count} and should count {number}"
        cursor = fate.last
    following = next_due(definition, zone, cursor)
    if following is not None and following <= until:
        yield f"no fate for {_shown(following)}, which is not after the cursor"


def _told(entries: Sequence[Entry]) -> Iterator[Fate]:
    for entry in entries:
        if entry.occurrence is None or not entry.occurrence.startswith("at:"):
            continue
        if entry.kind == "opened":
            due = _instant(entry.occurrence)
            yield Fate(first=due, last=due, count=1, told=f"{entry.occurrence} (opened)")
        elif entry.kind in {"missed", "stretch"}:
            first = _instant(entry.occurrence)
            told = f"{entry.occurrence} ({entry.reason})"
            yield Fate(first=first, last=entry.until_at or first, count=entry.count or 1, told=told)


def _instant(key: str) -> datetime:
    return datetime.fromisoformat(key.removeprefix("at:"))


def _shown(instant: datetime | None) -> str:
    return "nothing" if instant is None else instant.isoformat().replace("+00:00", "Z")
