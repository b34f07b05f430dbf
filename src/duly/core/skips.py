"""What a person skipped beforehand: stretches of time in which a task opens nothing."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from duly.core.schedule import next_due
from duly.core.task import Definition


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """All occurrences of a task from the first to the last instant, both included, skipped by whom and why."""

    first: datetime
    last: datetime
    by: str
    note: str | None


def covering(ranges: Iterable[Range], at: datetime) -> Range | None:
    """Give the range in which an instant lies; where ranges overlap, what began first counts."""
    found = [one for one in ranges if one.first <= at <= one.last]
    return min(found, key=lambda one: one.first) if found else None


def next_kept(definition: Definition, zone: ZoneInfo, after: datetime, ranges: Collection[Range]) -> datetime | None:
    """Give the first instant strictly after `after` at which the task is due and nobody skipped it."""
    found = next_due(definition, zone, after)
    while found is not None and (range_ := covering(ranges, found)) is not None:
        found = next_due(definition, zone, range_.last)
    return found
