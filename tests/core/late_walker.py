"""A second opinion on what becomes of late occurrences: judge each by itself, by the table as it is written.

Nothing is counted in bulk, nothing is cut: every occurrence of a span is walked and asked one by one. With the product
it shares the enumeration of the triggers (which has walkers of its own) and the share of a spread.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

from duly.core.fates import Opening, Stretch
from duly.core.planning import Plan
from duly.core.skips import Range
from duly.core.spreading import share_of
from duly.core.task import Task
from duly.core.triggers import occurrences

MINUTE = timedelta(minutes=1)


@dataclass(frozen=True)
class Due:
    """One occurrence as the walk meets it."""

    at: datetime
    lateness: timedelta
    grace: timedelta
    by_hand: bool

    @property
    def punctual(self) -> bool:
        return not self.by_hand and self.lateness <= self.grace

    @property
    def late(self) -> bool:
        return not self.by_hand and self.lateness > self.grace


class TooMany(Exception):
    """The span holds more than a test has the patience to walk."""


def walk(task: Task, zone: ZoneInfo, now: datetime, skipped: Sequence[Range], most: int) -> list[Due]:
    rules = task.definition.rules
    instants = []
    for at in occurrences(task.definition.triggers, zone, task.planned_until, gap=rules.gap, fold=rules.fold):
        if rules.start is not None and at < rules.start:
            continue
        if rules.until is not None and at > rules.until:
            break
        instants.append(at)
        if at > now:
            break
        if len(instants) > most:
            raise TooMany
    found = []
    for place, at in enumerate(instants):
        if at > now:
            break
        following = instants[place + 1] if place + 1 < len(instants) else None
        share = share_of(task.id, at, spread=rules.spread, following=following)
        grace = rules.grace
        if grace is None:
            grace = MINUTE if following is None else min(MINUTE, (following - at) / 2)
        by_hand = any(one.first <= at <= one.last for one in skipped)
        found.append(Due(at, now - (at + share), grace, by_hand))
    return found


def judged(task: Task, dues: Sequence[Due]) -> list[tuple[datetime, str]]:
    """Each occurrence with its fate: who opens it, or why nobody does."""
    rules = task.definition.rules
    late = [due for due in dues if due.late]
    fresh = [due for due in late if due.lateness <= rules.max_age]
    fates = []
    opened = 0
    for due in dues:
        if rules.times is not None and task.scheduled_runs + opened >= rules.times:
            break
        if due.by_hand:
            fate = "skipped_by_hand"
        elif due.punctual:
            fate = "schedule"
        elif rules.on_missed == "skip":
            fate = "missed_skip"
        elif rules.on_missed == "offer":
            fate = "missed_offer"
        elif rules.on_missed == "run_all":
            fate = "stale" if due not in fresh else "catch_up" if due in fresh[: rules.at_most] else "too_many"
        elif any(other.punctual and other.at > due.at for other in dues):
            fate = "coalesced"
        elif late[-1] not in fresh:
            fate = "stale"
        else:
            fate = "catch_up" if due is late[-1] else "coalesced"
        opened += fate in {"schedule", "catch_up"}
        fates.append((due.at, fate))
    return fates


def told(made: Plan, dues: Sequence[Due]) -> list[tuple[datetime, str]]:
    """A plan spread out over the occurrences of the walk; a stretch must begin, end and count as they do."""
    fates: list[tuple[datetime, str]] = [(one.due_at, one.opened_by) for one in made.openings]
    for stretch in made.stretches:
        within = [due.at for due in dues if stretch.first <= due.at <= stretch.last]
        assert (within[0], within[-1], len(within)) == (stretch.first, stretch.last, stretch.count), stretch
        fates += [(at, stretch.reason) for at in within]
    return sorted(fates)


def is_whole(made: Plan) -> bool:
    """Neighbours with one fate are one stretch, but where different hands skipped them."""
    parts: list[Opening | Stretch] = sorted(
        [*made.openings, *made.stretches], key=lambda one: one.due_at if isinstance(one, Opening) else one.first
    )
    return not any(
        isinstance(one, Stretch) and isinstance(two, Stretch) and one.reason == two.reason != "skipped_by_hand"
        for one, two in pairwise(parts)
    )
