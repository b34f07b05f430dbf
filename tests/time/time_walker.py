"""A second opinion on what is due: walk the real minutes (or seconds) of a zone and look at its clock.

Nothing here is shared with the product: the fields have a parser of their own, the law is read off the walk.
"""

import calendar
from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
BOUNDS = {"second": (0, 59), "minute": (0, 59), "hour": (0, 23), "day": (1, 31), "month": (1, 12), "weekday": (0, 6)}
SECOND = timedelta(seconds=1)
Wants = Callable[[datetime], bool]
Passes = dict[datetime, list[datetime]]
Missing = list[tuple[datetime, datetime]]


@lru_cache(maxsize=48)
def walk(zone: ZoneInfo, start: datetime, end: datetime, step: int) -> tuple[tuple[datetime, datetime], ...]:
    """Every instant from start to end whose local clock stands on a whole step, with what the clock shows.

    The first instant after each change of offset is there too, wherever its clock stands.
    """
    shown: list[tuple[datetime, datetime]] = []
    instant, local = start, _clock(zone, start)
    while instant <= end:
        if local.second % step == 0:
            shown.append((instant, local))
        ahead = timedelta(seconds=step - local.second % step)
        there = _clock(zone, instant + ahead)
        if there - local != ahead:
            while there - local != SECOND:
                ahead = SECOND
                there = _clock(zone, instant + ahead)
                if there - local != SECOND:
                    break
                instant, local = instant + ahead, there
                there = _clock(zone, instant + ahead)
                if there - local != SECOND:
                    break
            if there.second % step:
                shown.append((instant + ahead, there))
        instant, local = instant + ahead, there
    return tuple(shown)


@lru_cache(maxsize=48)
def _readings(zone: ZoneInfo, start: datetime, end: datetime, step: int) -> tuple[Passes, Missing]:
    """What the clock showed and when, and what it passed over with the first instant after that."""
    passes: Passes = defaultdict(list)
    missing: Missing = []
    last: datetime | None = None
    for instant, local in walk(zone, start, end, step):
        if local.second % step == 0:
            passes[local].append(instant)
        while last is not None and last < local:
            missing.append((last, instant))
            last += timedelta(seconds=step)
        last = local - timedelta(seconds=local.second % step) + timedelta(seconds=step)
    return passes, missing


def due(
    wants: Wants, real: bool, zone: ZoneInfo, start: datetime, end: datetime, *, gap: str, fold: str, step: int = 60
) -> list[datetime]:
    """The instants from start to end at which a wall-clock rule is due, by the walk."""
    pad = timedelta(hours=27 if step == 60 else 4)
    passes, missing = _readings(zone, start - pad, end + pad, step)
    found: set[datetime] = set()
    if not real and gap == "run":
        found.update(instant for local, instant in missing if wants(local))
    for local, instants in passes.items():
        if wants(local):
            found.update(instants if real or fold == "both" else instants[:1] if fold == "first" else instants[-1:])
    return sorted(instant for instant in found if start <= instant <= end)


def cron(line: str) -> tuple[Wants, bool]:
    """A cron line as a question to the clock, and whether it follows the clock as it really reads."""
    words = line.lower().split()
    if len(words) == 5:
        words = ["0", *words]
    second, minute, hour, day, month, weekday = words
    both = day[0] in "*?" or weekday[0] in "*?"

    @lru_cache(maxsize=64)
    def on_day(on: date) -> bool:
        by_date, by_weekday = _day(day, on), _weekday(weekday, on)
        return on.month in _values(month, "month") and (by_date and by_weekday if both else by_date or by_weekday)

    seconds, minutes, hours = _values(second, "second"), _values(minute, "minute"), _values(hour, "hour")

    def wants(local: datetime) -> bool:
        return local.minute in minutes and local.hour in hours and local.second in seconds and on_day(local.date())

    return wants, minute[0] == "*" or hour[0] == "*"


def _plain(field: str, name: str, value: int) -> bool:
    return value in _values(field, name)


@lru_cache(maxsize=1024)
def _values(field: str, name: str) -> frozenset[int]:
    low, high = BOUNDS[name]
    found: set[int] = set()
    for part in field.split(","):
        span, _, step = part.partition("/")
        if span in ("*", "?"):
            first, last = low, high
        else:
            ends = [_value(end, name) for end in span.split("-")]
            first, last = ends[0], ends[-1]
            if name == "weekday" and last < first:
                last += 7
        found.update(value % 7 if name == "weekday" else value for value in range(first, last + 1, int(step or 1)))
    return frozenset(found)


def _value(text: str, name: str) -> int:
    if text in MONTHS and name == "month":
        return MONTHS.index(text) + 1
    return WEEKDAYS.index(text) if text in WEEKDAYS else int(text)


def _day(field: str, on: date) -> bool:
    length = calendar.monthrange(on.year, on.month)[1]
    for part in field.split(","):
        if part == "l":
            if on.day == length:
                return True
        elif part == "lw":
            last = date(on.year, on.month, length)
            while last.weekday() > 4:
                last -= timedelta(days=1)
            if on == last:
                return True
        elif part.endswith("w"):
            if int(part[:-1]) <= length and on == _near(date(on.year, on.month, int(part[:-1]))):
                return True
        elif _plain(part, "day", on.day):
            return True
    return False


def _near(wanted: date) -> date:
    for distance in (0, -1, 1, -2, 2):
        there = wanted + timedelta(days=distance)
        if there.month == wanted.month and there.weekday() < 5:
            return there
    raise AssertionError(wanted)


def _weekday(field: str, on: date) -> bool:
    number = (on.weekday() + 1) % 7
    for part in field.split(","):
        if "#" in part:
            which, nth = part.split("#")
            if _value(which, "weekday") % 7 == number and (on.day - 1) // 7 + 1 == int(nth):
                return True
        elif part.endswith("l"):
            later = on + timedelta(days=7)
            if _value(part[:-1], "weekday") % 7 == number and later.month != on.month:
                return True
        elif _plain(part, "weekday", number):
            return True
    return False


def _clock(zone: ZoneInfo, instant: datetime) -> datetime:
    return instant.astimezone(zone).replace(tzinfo=None, fold=0)


@lru_cache(maxsize=4096)
def changes(zone: ZoneInfo, year: int) -> tuple[datetime, ...]:
    """The first instants of each new offset in a year, found by looking every six hours."""
    found = []
    instant = datetime(year, 1, 1, tzinfo=UTC)
    while instant.year == year:
        ahead = instant + timedelta(hours=6)
        if ahead.astimezone(zone).utcoffset() != instant.astimezone(zone).utcoffset():
            low, high = instant, ahead
            while high - low > timedelta(seconds=1):
                middle = low + (high - low) // 2
                middle = middle.replace(microsecond=0)
                if middle.astimezone(zone).utcoffset() == instant.astimezone(zone).utcoffset():
                    low = middle
                else:
                    high = middle
            found.append(high)
        instant = ahead
    return tuple(found)
