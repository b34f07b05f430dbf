"""The one law between local times and instants, in both directions.

A zone's clock is a row of *stretches* of constant offset. Inside one stretch a reading of the local clock and an
instant are the same but for the offset; all that is special happens where two stretches meet: a *gap* (readings
that never come) or a *fold* (readings that come twice). Instants here are whole seconds since 1970 UTC, readings
are seconds since 1970 on the local clock.
"""

from bisect import bisect_right
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Literal, NamedTuple
from zoneinfo import ZoneInfo

Gap = Literal["run", "skip"]
Fold = Literal["first", "second", "both"]
Search = Callable[[int], int | None]
"""From a reading to the nearest wanted reading at or after it (or at or before it), or None."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAY = 86_400
EARLIEST = -62_135_596_800
"""The first second of the year 1."""
LATEST = 253_402_300_799
"""The last second of the year 9999."""
SLACK = 2 * DAY
"""More than two offsets can differ by: farther than this from a change the local clock only moves on."""
SAMPLE_BITS = 18
"""Offsets are sampled every 2**18 s (three days); the shortest stretch in the zone data lasts almost seven."""
BLOCK_BITS = 23
"""Stretches are found and kept in blocks of 2**23 s (97 days)."""
HORIZON = 401 * 366 * DAY
"""How far a search goes: over all 400 years after which the calendar repeats."""
EDGE = DAY * 3 // 2
"""No offset is asked for nearer than this to the ends of the calendar, where a local time cannot be expressed."""
STRETCHES_KEPT = 8192


class Stretch(NamedTuple):
    """Instants `start <= t < end` with one `offset`; `before` and `after` are its neighbours' offsets.

    A stretch may be cut where nothing changes; its neighbour there has the same offset.
    """

    start: int
    end: int
    offset: int
    before: int
    after: int


class Law(NamedTuple):
    """What a rule makes of gaps and folds: does a missing time run after the gap, and which passes count."""

    fills: bool
    first: bool
    second: bool


REAL = Law(fills=False, first=True, second=True)
"""The clock as it really reads: nothing for a gap, both passes of a fold."""


@lru_cache(maxsize=16)
def law(gap: Gap = "run", fold: Fold = "first") -> Law:
    """Give the law of a fixed rule; the defaults run a missing time after the gap, a repeated one at its first pass."""
    return Law(fills=gap == "run", first=fold != "second", second=fold != "first")


def whole_seconds(instant: datetime) -> int:
    """Seconds since 1970 UTC of an aware instant, rounded down."""
    since = instant - EPOCH
    return since.days * DAY + since.seconds


def instant_of(seconds: int) -> datetime:
    """Give the aware UTC instant so many seconds after 1970."""
    return EPOCH + timedelta(seconds=seconds)


def earliest_from(search: Search, zone: ZoneInfo, instant: int, law: Law) -> int | None:
    """Find the first instant, not before the given one, at which `search`'s readings are due; None if there is none."""
    latest = min(instant + HORIZON, LATEST)
    while instant <= latest:
        stretch = stretch_at(zone, instant)
        start, end, offset, before, after = stretch
        if instant == start and law.fills and before < offset and _missing(search, stretch):
            return start
        low = instant + offset
        if offset < before and not law.second:
            low = max(low, start + before)
        reading = search(low)
        if reading is None:
            return None
        if reading < end + (after if after < offset and not law.first else offset):
            return reading - offset if reading - offset <= LATEST else None
        # Between `low` and `reading` nothing is wanted, so all instants whose local clock reads so are passed over.
        instant = max(end, reading - offset - SLACK) if end >= low - offset + SLACK else end
    return None


def latest_until(search: Search, zone: ZoneInfo, instant: int, law: Law) -> int | None:
    """Find the last instant, not after the given one, at which readings are due; `search` looks backwards."""
    earliest = max(instant - HORIZON, EARLIEST)
    while instant >= earliest:
        start, end, offset, before, after = stretch_at(zone, instant)
        high = instant + offset
        if after < offset and not law.first:
            high = min(high, end + after - 1)
        low = start + (before if offset < before and not law.second else offset)
        reading = search(high)
        if reading is None:
            return None
        if reading >= low:
            return reading - offset if reading - offset >= EARLIEST else None
        if law.fills and before < offset:
            missing = search(start + offset - 1)
            if missing is not None and missing >= start + before:
                return start
        instant = min(start - 1, reading - offset + SLACK) if start <= high - offset - SLACK else start - 1
    return None


def instants_of(zone: ZoneInfo, reading: int, law: Law) -> tuple[int, ...]:
    """Every instant of one local reading under a law, in order: none, one, or two."""
    found: list[int] = []
    instant, until = max(reading - SLACK, EARLIEST), min(reading + SLACK, LATEST)

    def search(low: int) -> int | None:
        return reading if low <= reading else None

    while instant <= until:
        stretch = stretch_at(zone, instant)
        hit = earliest_from(search, zone, max(instant, stretch.start), law) if instant <= until else None
        if hit is not None and hit < stretch.end and hit not in found:
            found.append(hit)
        instant = stretch.end
    return tuple(found)


def offset_at(zone: ZoneInfo, instant: int) -> int:
    """Seconds that the zone's clock is ahead of UTC at an instant."""
    return stretch_at(zone, instant).offset


def stretch_at(zone: ZoneInfo, instant: int) -> Stretch:
    """Give the stretch of constant offset around an instant, whole for at least SLACK on both sides of it."""
    starts, stretches = _block(zone, instant >> BLOCK_BITS)
    return stretches[bisect_right(starts, instant) - 1]


def _missing(search: Search, stretch: Stretch) -> bool:
    reading = search(stretch.start + stretch.before)
    return reading is not None and reading < stretch.start + stretch.offset


@lru_cache(maxsize=STRETCHES_KEPT)
def _block(zone: ZoneInfo, block: int) -> tuple[tuple[int, ...], tuple[Stretch, ...]]:
    """Stretches that cover a block and one sample on each side; found by sampling, then halving."""
    sample = 1 << SAMPLE_BITS
    low, high = (block << BLOCK_BITS) - sample, ((block + 1) << BLOCK_BITS) + sample
    changes: list[tuple[int, int]] = []
    left, offset = low, _ask(zone, low)
    first = offset
    for right in range(low + sample, high + 1, sample):
        there = _ask(zone, right)
        while there != offset:
            left, offset = _change(zone, left, right, offset)
            changes.append((left, offset))
        left = right
    starts = (low, *(at for at, _ in changes))
    offsets = (first, first, *(offset for _, offset in changes), offset)
    ends = (*starts[1:], high)
    stretches = tuple(
        Stretch(start, ends[i], offsets[i + 1], offsets[i], offsets[i + 2]) for i, start in enumerate(starts)
    )
    return starts, stretches


def _change(zone: ZoneInfo, left: int, right: int, offset: int) -> tuple[int, int]:
    """Find where, after `left` and up to `right`, the offset ceases to be this one, and what it then is."""
    while right - left > 1:
        middle = (left + right) // 2
        if _ask(zone, middle) == offset:
            left = middle
        else:
            right = middle
    return right, _ask(zone, right)


def _ask(zone: ZoneInfo, instant: int) -> int:
    """Offset in whole seconds; near the ends of the calendar, that of the nearest instant that can be asked."""
    clipped = min(max(instant, EARLIEST + EDGE), LATEST - EDGE)
    offset = datetime.fromtimestamp(clipped, zone).utcoffset()
    assert offset is not None, "a ZoneInfo always knows its offset"
    return offset.days * DAY + offset.seconds
