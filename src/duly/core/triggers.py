"""Triggers: the rules that yield instants or take events, and the one enumerator over instants.

Every question about a task's times (next, previous, how many, is this one) is answered here, for a whole tuple of
triggers in one zone; equal instants are one occurrence. Answers are aware UTC datetimes, or None where the calendar
(years 1 to 9999) or 400 years of it hold no more. `gap` and `fold` are the rules of fixed triggers; interval-like
cron lines and `every` have no use for them. A trigger that takes events yields no instant.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from functools import lru_cache, partial
from typing import assert_never
from zoneinfo import ZoneInfo

from duly.core.counting import Beat, Wall, count_seconds
from duly.core.cron import read_line
from duly.core.readings import Days, Pattern, at_or_after, at_or_before
from duly.core.wallclock import (
    REAL,
    Fold,
    Gap,
    Law,
    earliest_from,
    instant_of,
    instants_of,
    latest_until,
    whole_seconds,
)
from duly.core.wallclock import law as law_of

MICROSECOND = timedelta(microseconds=1)
MAX_TRIGGERS = 20
PATTERNS_KEPT = 4096
CRON_WEEKDAY = (1, 2, 3, 4, 5, 6, 0)
"""Weekdays of values count from Monday = 0, those of cron from Sunday = 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cron:
    """A cron line in its canonical form."""

    expression: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Daily:
    """Local times of every day; naive, sorted."""

    times: tuple[time, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Weekly:
    """Local times of some weekdays; Monday is 0, both sorted."""

    weekdays: tuple[int, ...]
    times: tuple[time, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Once:
    """One instant (`at`, aware), or one local time (`local`, naive); exactly one of them is given."""

    at: datetime | None = None
    local: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Every:
    """The instants anchor, anchor + span, anchor + 2 span …: elapsed time, blind to zones."""

    span: timedelta
    anchor: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Throttle:
    """At most one event of one kind within a span; kinds are told apart by what stands at these paths."""

    within: timedelta
    by: tuple[str, ...] = ()
    """Paths as they are written, sorted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class On:
    """Events of a source, where all of the pairs hold; it yields no instants."""

    source: str
    """In small letters, as sources are compared."""
    match: tuple[tuple[str, str], ...] = ()
    """Paths as they are written, each with the text wanted there; sorted."""
    throttle: Throttle | None = None


Trigger = Cron | Daily | Weekly | Once | Every | On
Triggers = tuple[Trigger, ...]


def next_after(
    triggers: Triggers, zone: ZoneInfo, after: datetime, *, gap: Gap = "run", fold: Fold = "first"
) -> datetime | None:
    """Give the first instant strictly after `after`."""
    fixed = law_of(gap, fold)
    best = None
    for trigger in triggers:
        found = _next(trigger, zone, after, fixed)
        if found is not None and (best is None or found < best):
            best = found
    return best


def last_before(
    triggers: Triggers, zone: ZoneInfo, before: datetime, *, gap: Gap = "run", fold: Fold = "first"
) -> datetime | None:
    """Give the last instant strictly before `before`; the same instants as forwards."""
    fixed = law_of(gap, fold)
    best = None
    for trigger in triggers:
        found = _last(trigger, zone, before, fixed)
        if found is not None and (best is None or found > best):
            best = found
    return best


def last_at_or_before(
    triggers: Triggers, zone: ZoneInfo, moment: datetime, *, gap: Gap = "run", fold: Fold = "first"
) -> datetime | None:
    """Give the last instant that is not after `moment`."""
    if is_due_at(triggers, zone, moment, gap=gap, fold=fold):
        return moment.astimezone(UTC)
    return last_before(triggers, zone, moment, gap=gap, fold=fold)


def is_due_at(triggers: Triggers, zone: ZoneInfo, moment: datetime, *, gap: Gap = "run", fold: Fold = "first") -> bool:
    """Tell whether `moment` is one of the instants, to the microsecond."""
    fixed = law_of(gap, fold)
    return any(_due(trigger, zone, moment, fixed) for trigger in triggers)


def count(
    triggers: Triggers, zone: ZoneInfo, after: datetime, until: datetime, *, gap: Gap = "run", fold: Fold = "first"
) -> int:
    """Count the distinct instants in (after, until], exactly.

    Costs some microseconds for each local day between them and each trigger, however many instants a day holds; one
    `every` alone costs a division.
    """
    if until <= after:
        return 0
    fixed = law_of(gap, fold)
    walls = [wall_clock(trigger, fixed) for trigger in triggers if isinstance(trigger, Cron | Daily | Weekly)]
    everies = list(dict.fromkeys(trigger for trigger in triggers if isinstance(trigger, Every)))
    singles = {at for trigger in triggers if isinstance(trigger, Once) for at in once_instants(trigger, zone, fixed)}
    others = tuple(trigger for trigger in triggers if not isinstance(trigger, Once))
    total = sum(after < at <= until and not is_due_at(others, zone, at, gap=gap, fold=fold) for at in singles)
    if not walls and len(everies) == 1:
        return total + _steps_between(everies[0], after, until)
    for fraction in sorted({every.anchor.microsecond for every in everies} | {0}):
        # Instants with different fractions of a second never meet, so each fraction is counted by itself.
        low = whole_seconds(after) + (1 if after.microsecond >= fraction else 0)
        high = whole_seconds(until) - (1 if until.microsecond < fraction else 0)
        beats = [_beat(every) for every in everies if every.anchor.microsecond == fraction]
        total += count_seconds([] if fraction else walls, beats, zone, low, high)
    return total


def occurrences(
    triggers: Triggers, zone: ZoneInfo, after: datetime, *, gap: Gap = "run", fold: Fold = "first"
) -> Iterator[datetime]:
    """Yield the instants strictly after `after`, in order, each once; lazily, and perhaps without end."""
    found = next_after(triggers, zone, after, gap=gap, fold=fold)
    while found is not None:
        yield found
        found = next_after(triggers, zone, found, gap=gap, fold=fold)


def yields_instants(triggers: Triggers) -> bool:
    """Tell whether time can bring an occurrence at all."""
    return any(not isinstance(trigger, On) for trigger in triggers)


def takes_events(triggers: Triggers) -> bool:
    """Tell whether an event can bring an occurrence."""
    return any(isinstance(trigger, On) for trigger in triggers)


def is_interval_like(trigger: Trigger) -> bool:
    """Tell whether no wall is in the trigger, so that the rules `gap` and `fold` say nothing about it."""
    return isinstance(trigger, Every | On) or (
        isinstance(trigger, Cron) and read_line(trigger.expression).interval_like
    )


def wall_clock(trigger: Cron | Daily | Weekly, fixed: Law) -> Wall:
    """Give the readings a wall-clock trigger wants, and the law they follow."""
    if isinstance(trigger, Cron):
        line = read_line(trigger.expression)
        return line.pattern, REAL if line.interval_like else fixed
    weekdays = trigger.weekdays if isinstance(trigger, Weekly) else None
    return _pattern(weekdays, trigger.times), fixed


def once_instants(trigger: Once, zone: ZoneInfo, fixed: Law) -> tuple[datetime, ...]:
    """Give the instants of a `once`: one, or by the law of its gap or fold none or two."""
    if trigger.at is not None:
        return (trigger.at.astimezone(UTC),)
    assert trigger.local is not None, "a once has an instant or a local time"
    reading = whole_seconds(trigger.local.replace(tzinfo=UTC))
    return tuple(instant_of(found) for found in instants_of(zone, reading, fixed))


def _next(trigger: Trigger, zone: ZoneInfo, after: datetime, fixed: Law) -> datetime | None:
    match trigger:
        case Cron() | Daily() | Weekly():
            pattern, law = wall_clock(trigger, fixed)
            found = earliest_from(partial(at_or_after, pattern), zone, whole_seconds(after) + 1, law)
            return None if found is None else instant_of(found)
        case Once():
            return next((at for at in once_instants(trigger, zone, fixed) if at > after), None)
        case Every():
            steps = max((after - trigger.anchor) // trigger.span + 1, 0)
            return _step(trigger, steps)
        case On():
            return None
    assert_never(trigger)


def _last(trigger: Trigger, zone: ZoneInfo, before: datetime, fixed: Law) -> datetime | None:
    match trigger:
        case Cron() | Daily() | Weekly():
            pattern, law = wall_clock(trigger, fixed)
            latest = whole_seconds(before) - (0 if before.microsecond else 1)
            found = latest_until(partial(at_or_before, pattern), zone, latest, law)
            return None if found is None else instant_of(found)
        case Once():
            earlier = [at for at in once_instants(trigger, zone, fixed) if at < before]
            return earlier[-1] if earlier else None
        case Every():
            steps = (before - trigger.anchor - MICROSECOND) // trigger.span
            return _step(trigger, steps) if steps >= 0 else None
        case On():
            return None
    assert_never(trigger)


def _due(trigger: Trigger, zone: ZoneInfo, moment: datetime, fixed: Law) -> bool:
    match trigger:
        case Cron() | Daily() | Weekly():
            if moment.microsecond:
                return False
            pattern, law = wall_clock(trigger, fixed)
            second = whole_seconds(moment)
            return earliest_from(partial(at_or_after, pattern), zone, second, law) == second
        case Once():
            return moment in once_instants(trigger, zone, fixed)
        case Every():
            return moment >= trigger.anchor and (moment - trigger.anchor) % trigger.span == timedelta(0)
        case On():
            return False
    assert_never(trigger)


def _steps_between(every: Every, after: datetime, until: datetime) -> int:
    first = max((after - every.anchor) // every.span + 1, 0)
    return max((until - every.anchor) // every.span - first + 1, 0)


def _beat(every: Every) -> Beat:
    assert not every.span.microseconds, "spans are whole seconds"
    return whole_seconds(every.anchor), every.span // timedelta(seconds=1)


def _step(trigger: Every, steps: int) -> datetime | None:
    try:
        return (trigger.anchor + steps * trigger.span).astimezone(UTC)
    except OverflowError:
        return None


@lru_cache(maxsize=PATTERNS_KEPT)
def _pattern(weekdays: tuple[int, ...] | None, times: tuple[time, ...]) -> Pattern:
    starts = sorted({at.hour * 3600 + at.minute * 60 + at.second for at in times})
    if weekdays is None:
        return Pattern(days=Days(), every_day=True, starts=tuple(starts))
    wanted = frozenset(CRON_WEEKDAY[day] for day in weekdays)
    return Pattern(days=Days(weekdays=wanted), every_day=len(wanted) == 7, starts=tuple(starts))
