"""What becomes of a task's occurrences whose time has come: opened, or missed with a reason; and what comes next."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Literal
from zoneinfo import ZoneInfo

from duly.core.lateness import grace_for
from duly.core.schedule import TICK, count_due, dues, is_over, last_due, last_due_before, next_due
from duly.core.task import Definition, Task

OPENINGS_MOST = 100
"""Punctual occurrences of one task that one plan opens; the cursor stops there and the next plan goes on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """An occurrence to open a run for."""

    due_at: datetime
    opened_by: Literal["schedule", "catch_up"]
    late_by: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Missed occurrences with one fate, counted: the first, the last, how many, why."""

    first: datetime
    last: datetime
    count: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The fates of all occurrences from the cursor as it was to the cursor as it shall be."""

    openings: tuple[Opening, ...]
    stretch: Stretch | None
    planned_until: datetime
    next_due_at: datetime | None
    done: bool


def plan(task: Task, zone: ZoneInfo, now: datetime) -> Plan:
    """Judge every occurrence after the cursor and not after `now`; costs the same for two as for two million.

    The next due instant is not after `now` only where more punctual occurrences are left than one plan may open.
    """
    definition, cursor = task.definition, task.planned_until
    newest = last_due(definition, zone, now)
    if newest is None or newest <= cursor:
        following = next_due(definition, zone, cursor)
        return Plan(
            openings=(),
            stretch=None,
            planned_until=cursor,
            next_due_at=following,
            done=is_over(definition, following),
        )
    punctual = _punctual(definition, zone, cursor, newest, now)
    until = punctual[-1] if punctual else newest
    opened = tuple(Opening(due_at=due, opened_by="schedule", late_by=now - due) for due in punctual)
    late_until = punctual[0] - TICK if punctual else newest
    caught_up, stretch = _late(definition, zone, cursor, late_until, now, covered=bool(punctual))
    following = next_due(definition, zone, until)
    assert following is None or following > until, "a trigger went backwards"
    return Plan(
        openings=caught_up + opened,
        stretch=stretch,
        planned_until=until,
        next_due_at=following,
        done=is_over(definition, following),
    )


def first_due(definition: Definition, zone: ZoneInfo, cursor: datetime) -> datetime | None:
    """The first occurrence that a new, enabled or unpaused task owes: strictly after its cursor."""
    return next_due(definition, zone, cursor) if definition.triggers else None


def owed(definition: Definition, zone: ZoneInfo, after: datetime, until: datetime) -> Stretch | None:
    """The occurrences in (after, until] as one stretch without a reason yet, or None if there are none."""
    if not definition.triggers or until <= after:
        return None
    first = next_due(definition, zone, after)
    if first is None or first > until:
        return None
    last = last_due(definition, zone, until)
    assert last is not None
    number = count_due(definition, zone, after, until)
    return Stretch(first=first, last=last, count=number, reason="")


def _punctual(
    definition: Definition, zone: ZoneInfo, cursor: datetime, newest: datetime, now: datetime
) -> list[datetime]:
    if definition.rules.grace is None:
        # Half the distance to the next: only the newest can be that near.
        following = next_due(definition, zone, newest)
        return [newest] if now - newest <= grace_for(definition.rules, newest, following) else []
    since = max(cursor, _earlier(now, definition.rules.grace) - TICK)
    ahead = islice(dues(definition, zone, since), OPENINGS_MOST)
    out = []
    for due in ahead:
        if due > now:
            break
        out.append(due)
    return out


def _late(
    definition: Definition, zone: ZoneInfo, cursor: datetime, until: datetime, now: datetime, *, covered: bool
) -> tuple[tuple[Opening, ...], Stretch | None]:
    """Judge the late ones in (cursor, until]; `covered`: a punctual one follows and stands for them."""
    missed = owed(definition, zone, cursor, until)
    if missed is None:
        return (), None
    if definition.rules.on_missed == "skip":
        return (), _told(missed, "missed_skip")
    if covered:
        return (), _told(missed, "coalesced")
    if now - missed.last > definition.rules.max_age:
        return (), _told(missed, "stale")
    opening = Opening(due_at=missed.last, opened_by="catch_up", late_by=now - missed.last)
    if missed.count == 1:
        return (opening,), None
    before = last_due_before(definition, zone, missed.last)
    assert before is not None
    rest = Stretch(first=missed.first, last=before, count=missed.count - 1, reason="coalesced")
    return (opening,), rest


def _told(stretch: Stretch, reason: str) -> Stretch:
    return Stretch(first=stretch.first, last=stretch.last, count=stretch.count, reason=reason)


def _earlier(moment: datetime, span: timedelta) -> datetime:
    floor = datetime.min.replace(tzinfo=moment.tzinfo) + timedelta(days=2)
    return moment - span if moment - floor > span else floor
