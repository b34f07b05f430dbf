"""Walking along the instants of triggers, a local day at a time: for who asks for very many of them in a row."""

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import lru_cache
from zoneinfo import ZoneInfo

from duly.core.counting import Beat, Wall, phase_of
from duly.core.readings import DAY, Pattern, wants_day
from duly.core.triggers import Cron, Daily, Every, On, Triggers, Weekly, next_after, wall_clock
from duly.core.wallclock import Fold, Gap, Law, Stretch, instant_of, law, stretch_at, whole_seconds

DAYS_KEPT = 16
"""How many lists of the seconds of one day are kept, of up to 350 KB."""


def instants(
    triggers: Triggers, zone: ZoneInfo, after: datetime, *, gap: Gap = "run", fold: Fold = "first"
) -> Iterator[datetime]:
    """Yield the instants strictly after `after`, in order, each once: what `next_after` gives again and again."""
    rules = _rules(triggers, law(gap, fold))
    while True:
        if rules is not None:
            for found in _rest_of_day(*rules, zone, whole_seconds(after) + 1):
                after = instant_of(found)
                yield after
        # Days on which clocks change, days without any, and triggers whose instants are no whole seconds.
        following = next_after(triggers, zone, after, gap=gap, fold=fold)
        if following is None:
            return
        yield following
        after = following


def _rules(triggers: Triggers, fixed: Law) -> tuple[Sequence[Wall], Sequence[Beat]] | None:
    """Give the rules whose instants are whole seconds; None where others are among them."""
    walls: list[Wall] = []
    beats: list[Beat] = []
    for trigger in triggers:
        match trigger:
            case Cron() | Daily() | Weekly():
                walls.append(wall_clock(trigger, fixed))
            case Every() if not trigger.anchor.microsecond:
                beats.append((whole_seconds(trigger.anchor), int(trigger.span.total_seconds())))
            case On():
                pass
            case _:
                return None
    return walls, beats


def _rest_of_day(walls: Sequence[Wall], beats: Sequence[Beat], zone: ZoneInfo, second: int) -> Iterator[int]:
    """Yield the seconds since 1970 that are due on the local day of this one, from it on; none of a day of changes."""
    stretch = stretch_at(zone, second)
    midnight = (second + stretch.offset) // DAY * DAY
    if not _is_plain(stretch, midnight):
        return
    day = midnight // DAY
    wanted = tuple(pattern for pattern, _ in walls if wants_day(pattern, day))
    times = _times(wanted, tuple(phase_of(beat, midnight - stretch.offset) for beat in beats))
    began = midnight - stretch.offset
    for place in range(bisect_left(times, second - began), len(times)):
        yield began + times[place]


def _is_plain(stretch: Stretch, midnight: int) -> bool:
    """Tell whether each reading of this day is met once, and none stands for one that was missed before it."""
    start, end, offset, before, after = stretch
    return midnight > start + max(before, offset) and midnight + DAY <= end + min(after, offset)


@lru_cache(maxsize=DAYS_KEPT)
def _times(patterns: tuple[Pattern, ...], phases: tuple[Beat, ...]) -> "array[int]":
    """Give the seconds of a day that are due, sorted."""
    found: set[int] = set()
    for pattern in patterns:
        found.update(start + second for start in pattern.starts for second in pattern.seconds)
    for first, span in phases:
        found.update(range(first, DAY, span))
    return array("i", sorted(found))
