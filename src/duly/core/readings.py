"""The search over naive local time: which readings of a clock a rule wants, forwards and backwards.

A reading is a number of seconds since 1970-01-01 00:00 on a local clock that knows no zone.
"""

from bisect import bisect_left, bisect_right
from calendar import isleap
from dataclasses import dataclass
from datetime import date
from functools import lru_cache

DAY = 86_400
EPOCH_DAY = date(1970, 1, 1).toordinal()
LAST_DAY = date.max.toordinal() - EPOCH_DAY
FIRST_DAY = 1 - EPOCH_DAY
NEVER_YEARS = 400
"""The calendar repeats after 400 years: what is not found in them never comes."""
LENGTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
EVERY_MONTH = tuple(range(1, 13))
DAY_LISTS_KEPT = 8192


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Days:
    """Which days of a month are wanted. Weekdays count from Sunday = 0, as in cron.

    With `both` a day must be wanted by its date and by its weekday, else one of them suffices.
    """

    dates: frozenset[int] = frozenset(range(1, 32))
    last: bool = False
    last_workday: bool = False
    nearest_workday: frozenset[int] = frozenset()
    weekdays: frozenset[int] = frozenset(range(7))
    nth: frozenset[tuple[int, int]] = frozenset()
    last_of: frozenset[int] = frozenset()
    both: bool = True


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pattern:
    """The readings a wall-clock rule wants: its days, and on each the times `start + second`.

    `starts` are seconds of the day, sorted; `seconds` are sorted and shorter than the distance between two starts.
    """

    months: tuple[int, ...] = EVERY_MONTH
    days: Days
    every_day: bool
    starts: tuple[int, ...]
    seconds: tuple[int, ...] = (0,)


def at_or_after(pattern: Pattern, reading: int) -> int | None:
    """Find the first wanted reading not before this one, or None within 400 years or the calendar."""
    day, second = divmod(reading, DAY)
    if wants_day(pattern, day):
        time = _time_from(pattern, second)
        if time is not None:
            return day * DAY + time
    found = _day_from(pattern, day + 1)
    return None if found is None else found * DAY + pattern.starts[0] + pattern.seconds[0]


def at_or_before(pattern: Pattern, reading: int) -> int | None:
    """Find the last wanted reading not after this one, or None within 400 years or the calendar."""
    day, second = divmod(reading, DAY)
    if wants_day(pattern, day):
        time = _time_until(pattern, second)
        if time is not None:
            return day * DAY + time
    found = _day_until(pattern, day - 1)
    return None if found is None else found * DAY + pattern.starts[-1] + pattern.seconds[-1]


def wants_day(pattern: Pattern, day: int) -> bool:
    """Tell whether the rule wants anything on a day, counted from 1970-01-01."""
    if not FIRST_DAY <= day <= LAST_DAY:
        return False
    if pattern.every_day:
        return True
    that = date.fromordinal(day + EPOCH_DAY)
    return that.month in pattern.months and that.day in days_of_month(pattern.days, that.year, that.month)


def days_of_month(days: Days, year: int, month: int) -> tuple[int, ...]:
    """Give the wanted days of one month, sorted."""
    length = 29 if month == 2 and isleap(year) else LENGTHS[month - 1]
    return _days(days, length, date(year, month, 1).isoweekday() % 7)


@lru_cache(maxsize=DAY_LISTS_KEPT)
def _days(days: Days, length: int, first: int) -> tuple[int, ...]:
    """Wanted days of a month of this length whose 1st is this weekday: 28 shapes are all there are."""
    dates = {day for day in days.dates if day <= length}
    if days.last:
        dates.add(length)
    if days.last_workday:
        dates.add(_workday(length, length, first))
    dates.update(_workday(day, length, first) for day in days.nearest_workday if day <= length)
    weekdays = set()
    for day in range(1, length + 1):
        weekday = (first + day - 1) % 7
        if (
            weekday in days.weekdays
            or (weekday, (day + 6) // 7) in days.nth
            or (weekday in days.last_of and day + 7 > length)
        ):
            weekdays.add(day)
    return tuple(sorted(dates & weekdays if days.both else dates | weekdays))


def _workday(day: int, length: int, first: int) -> int:
    """Give the day from Monday to Friday that is nearest to this one without leaving the month."""
    weekday = (first + day - 1) % 7
    if weekday == 6:
        return day - 1 if day > 1 else day + 2
    if weekday == 0:
        return day + 1 if day < length else day - 2
    return day


def _time_from(pattern: Pattern, second: int) -> int | None:
    starts, seconds = pattern.starts, pattern.seconds
    place = bisect_right(starts, second) - 1
    if place >= 0 and second - starts[place] <= seconds[-1]:
        return starts[place] + seconds[bisect_left(seconds, second - starts[place])]
    place += 1
    return starts[place] + seconds[0] if place < len(starts) else None


def _time_until(pattern: Pattern, second: int) -> int | None:
    starts, seconds = pattern.starts, pattern.seconds
    place = bisect_right(starts, second) - 1
    if place >= 0 and second - starts[place] >= seconds[0]:
        return starts[place] + seconds[bisect_right(seconds, second - starts[place]) - 1]
    return starts[place - 1] + seconds[-1] if place >= 1 else None


def _day_from(pattern: Pattern, day: int) -> int | None:
    day = max(day, FIRST_DAY)
    if day > LAST_DAY:
        return None
    if pattern.every_day:
        return day
    that = date.fromordinal(day + EPOCH_DAY)
    year, floor = that.year, that.day
    month, last_year = that.month, min(that.year + NEVER_YEARS, date.max.year)
    while year <= last_year:
        for wanted in pattern.months:
            if wanted >= month:
                for candidate in days_of_month(pattern.days, year, wanted):
                    if candidate >= floor or wanted > month:
                        return date(year, wanted, candidate).toordinal() - EPOCH_DAY
        year, month, floor = year + 1, 1, 1
    return None


def _day_until(pattern: Pattern, day: int) -> int | None:
    day = min(day, LAST_DAY)
    if day < FIRST_DAY:
        return None
    if pattern.every_day:
        return day
    that = date.fromordinal(day + EPOCH_DAY)
    year, ceiling = that.year, that.day
    month, first_year = that.month, max(that.year - NEVER_YEARS, date.min.year)
    while year >= first_year:
        for wanted in reversed(pattern.months):
            if wanted <= month:
                for candidate in reversed(days_of_month(pattern.days, year, wanted)):
                    if candidate <= ceiling or wanted < month:
                        return date(year, wanted, candidate).toordinal() - EPOCH_DAY
        year, month, ceiling = year - 1, 12, 31
    return None
