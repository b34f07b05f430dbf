"""How many occurrences lie between two instants, without walking them.

Time is cut into pieces that lie in one stretch of constant offset and in one local day. The seconds of a day are the
bits of one number, so a union of triggers is an `or`, and equal instants count once.
"""

from collections.abc import Sequence
from functools import lru_cache
from zoneinfo import ZoneInfo

from duly.core.readings import DAY, Pattern, at_or_after, wants_day
from duly.core.wallclock import EARLIEST, LATEST, Law, Stretch, stretch_at

DAYS_KEPT = 256
"""How many numbers of 86,400 bits (11 KB each) are kept."""
WHOLE_DAY = (1 << DAY) - 1
Wall = tuple[Pattern, Law]
Beat = tuple[int, int]
"""The first second and the step, in seconds, of an `every` whose span is whole seconds."""


def count_seconds(walls: Sequence[Wall], beats: Sequence[Beat], zone: ZoneInfo, low: int, high: int) -> int:
    """Count the seconds from `low` to `high`, both included, at which any of these rules is due."""
    total, low, high = 0, max(low, EARLIEST), min(high, LATEST)
    if not walls and not beats:
        return 0
    while low <= high:
        stretch = stretch_at(zone, low)
        end = min(stretch.end - 1, high)
        if low == stretch.start and any(_fills(wall, stretch) for wall in walls):
            # The substitute at a gap's end; the second itself is taken out of what follows.
            total, low = total + 1, low + 1
        total += _count_readings(walls, beats, stretch, low + stretch.offset, end + stretch.offset)
        low = end + 1
    return total


def _fills(wall: Wall, stretch: Stretch) -> bool:
    pattern, law = wall
    if not law.fills or stretch.before >= stretch.offset:
        return False
    missing = at_or_after(pattern, stretch.start + stretch.before)
    return missing is not None and missing < stretch.start + stretch.offset


def _count_readings(walls: Sequence[Wall], beats: Sequence[Beat], stretch: Stretch, low: int, high: int) -> int:
    """Count the due readings low … high of one stretch."""
    total = 0
    for day in range(low // DAY, high // DAY + 1):
        midnight = day * DAY
        wanted = tuple(wall[0] for wall in walls if wants_day(wall[0], day))
        if midnight >= low and midnight + DAY - 1 <= high and _is_plain(stretch, midnight):
            phases = tuple(phase_of(beat, midnight - stretch.offset) for beat in beats)
            total += _whole_day(wanted, phases)
        else:
            total += _part_of_day(walls, beats, stretch, max(low, midnight), min(high, midnight + DAY - 1))
    return total


def _is_plain(stretch: Stretch, midnight: int) -> bool:
    """Tell whether no reading of this day is met twice."""
    start, end, offset, before, after = stretch
    return midnight >= start + max(before, offset) and midnight + DAY <= end + min(after, offset)


def _part_of_day(walls: Sequence[Wall], beats: Sequence[Beat], stretch: Stretch, low: int, high: int) -> int:
    """Count the due readings low … high, all of one local day, under the law at the stretch's ends."""
    start, end, offset, before, after = stretch
    day = low // DAY
    seconds = 0
    for pattern, passes in walls:
        if wants_day(pattern, day):
            first = max(low, start + before) if offset < before and not passes.second else low
            last = min(high, end + after - 1) if after < offset and not passes.first else high
            seconds |= _bits(pattern) & _window(first - day * DAY, last - day * DAY)
    for beat in beats:
        seconds |= _beats(*phase_of(beat, day * DAY - offset)) & _window(low - day * DAY, high - day * DAY)
    return seconds.bit_count()


def _window(first: int, last: int) -> int:
    return ((1 << (last - first + 1)) - 1) << first if last >= first else 0


def phase_of(beat: Beat, midnight: int) -> Beat:
    """Second of the day of the first beat after midnight (an instant), and the step; DAY or more if there is none."""
    anchor, span = beat
    return (anchor - midnight if anchor > midnight else (anchor - midnight) % span), span


@lru_cache(maxsize=DAYS_KEPT)
def _whole_day(patterns: tuple[Pattern, ...], phases: tuple[Beat, ...]) -> int:
    seconds = 0
    for pattern in patterns:
        seconds |= _bits(pattern)
    for phase in phases:
        seconds |= _beats(*phase)
    return seconds.bit_count()


@lru_cache(maxsize=DAYS_KEPT)
def _bits(pattern: Pattern) -> int:
    """Give the wanted seconds of a wanted day, as bits."""
    minute = sum(1 << second for second in pattern.seconds)
    marks = bytearray(DAY // 8 + 1)
    for start in pattern.starts:
        marks[start >> 3] |= 1 << (start & 7)
    starts = int.from_bytes(marks, "little")
    if minute == 1:
        return starts
    seconds = 0
    for second in pattern.seconds:
        seconds |= starts << second
    return seconds


def _beats(first: int, span: int) -> int:
    """Give the seconds first, first + span … of one day, as bits."""
    if first >= DAY:
        return 0
    marks, reach = 1 << first, span
    while first + reach < DAY:
        marks |= marks << reach
        reach *= 2
    return marks & WHOLE_DAY
