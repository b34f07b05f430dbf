"""Triggers in plain English, on the wall of their own zone; what the words say is what the trigger does."""

from collections.abc import Sequence
from datetime import timedelta

from duly.core.cron import DATE, HOUR, MONTH, WEEKDAY, Field, Line, read_line
from duly.core.spans import write_instant, write_local
from duly.core.triggers import Cron, Daily, Every, On, Once, Trigger, Triggers, Weekly
from duly.core.when import write_time

EMPTY = "empty"
MOST_TIMES = 8
"""A line with more times a day than these is told by its minutes and hours."""
MONTH_NAMES = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
DAY_NAMES = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
COUNTED = ("", "first", "second", "third", "fourth", "fifth")
MOST_TOLD = 10
"""Values of a field beyond so many are told as they are written."""
UNITS = (("hour", 3600), ("minute", 60), ("second", 1))
DAY_S = 86_400
MOST_OF_ONE_UNIT = 120
"""A span that is told in one unit has no more of it, such as 90 minutes; longer ones are told in several."""
CHANGING_HOURS = frozenset({0, 1, 2, 3})
"""Local hours in which clocks are put forward or back; at all others every kind of line does the same."""


def describe_all(triggers: Triggers) -> str:
    """Say a task's triggers; none is a task that runs by hand."""
    return "; ".join(describe(trigger) for trigger in triggers) if triggers else "by hand only"


def describe(trigger: Trigger) -> str:
    """Say one trigger: `every weekday at 09:00`, `every 15 minutes`, `once on 2026-12-01 at 09:00`."""
    match trigger:
        case Cron():
            return _cron(read_line(trigger.expression))
        case Daily():
            return f"every day at {_list([write_time(at) for at in trigger.times])}"
        case Weekly():
            days = tuple(sorted((day + 1) % 7 for day in trigger.weekdays))
            return f"{_each_weekday(days)} at {_list([write_time(at) for at in trigger.times])}"
        case Once():
            if trigger.local is not None:
                date, _, at = write_local(trigger.local).partition(" ")
                return f"once on {date} at {at}"
            return f"once at {write_instant(trigger.at)}" if trigger.at else "once"
        case Every():
            return f"every {describe_span(trigger.span)}, counted from {write_instant(trigger.anchor)}"
        case On():
            return _on(trigger)


def describe_span(span: timedelta) -> str:
    """Say a span after `every`: `minute`, `90 minutes`, `24 hours`, `10 days of 24 hours`, never a bare day."""
    seconds = int(span.total_seconds())
    if seconds % DAY_S == 0 and seconds > DAY_S:
        return f"{seconds // DAY_S} days of 24 hours"
    name, size = next((name, size) for name, size in UNITS if seconds % size == 0)
    if size == UNITS[0][1] or seconds // size <= MOST_OF_ONE_UNIT:
        return _counted(seconds // size, name)
    rest, parts = seconds, []
    for name, size in UNITS:
        number, rest = divmod(rest, size)
        if number:
            parts.append(f"{number} {name}{'s' if number > 1 else ''}")
    return _list(parts)


def _on(trigger: On) -> str:
    said = f"on {trigger.source}"
    if trigger.match:
        said += f" where {_list([f'{path} is {value or EMPTY}' for path, value in trigger.match])}"
    if trigger.throttle is not None:
        kinds = f" for each {_list(trigger.throttle.by)}" if trigger.throttle.by else ""
        said += f", at most once every {describe_span(trigger.throttle.within)}{kinds}"
    return said


def _cron(line: Line) -> str:
    said, times = _days_and_times(line), _times(line)
    if CHANGING_HOURS.isdisjoint(line.fields[2].values):
        return said
    # Words name times of people's clocks, or steps of a clock that runs; where a line means the other, they say so.
    if times is not None and line.interval_like:
        return f"{said}, by the running clock"
    if times is None and not line.interval_like:
        return f"{said}, each local time once"
    return said


def _days_and_times(line: Line) -> str:
    _, minute, hour, date, month, weekday = line.fields
    times = _times(line)
    months = "" if month.every else f" in {_runs(month.values, MONTH_NAMES, 1)}"
    all_dates, all_weekdays = _unrestricted(date), _unrestricted(weekday)
    if times is None:
        days = "" if all_dates and all_weekdays else f", {_days(date, weekday)}"
        head = _grid(line, hour, minute)
        return f"{head}{days}{months}" if days or not months else f"{head},{months}"
    if all_dates and _plain(weekday):
        each = "every day" if all_weekdays else _each_weekday(weekday.values)
        return f"{each}{months} at {times}"
    return f"at {times} {_days(date, weekday)}{months}"


def field_wants(field: Field) -> str:
    """Say what one field of a line wants, after `it runs`: `in the hours 8 to 18`, `on Mondays`."""
    if field.kind is DATE:
        return _dates(field)
    if field.kind is WEEKDAY:
        return _weekdays(field)
    if field.kind is MONTH:
        return f"in {_runs(field.values, MONTH_NAMES, 1)}"
    told = _runs(field.values)
    if told.count(",") > MOST_TOLD:
        told = ",".join(item.text for item in field.items)
    return f"{'in' if field.kind is HOUR else 'at'} the {field.kind.name}{'s' if len(field.values) > 1 else ''} {told}"


def days_want(date: Field, weekday: Field) -> str:
    """Say which days two fields want together, with their AND or OR spelt out."""
    return _days(date, weekday)


def times_want(line: Line) -> str | None:
    """Say the times of a line's days after `it runs at`, or None where they are too many to tell."""
    return _times(line)


def weekdays_want(days: Sequence[int]) -> str:
    """Say some weekdays (Sunday is 0) after `it runs`: `every Monday and Thursday`."""
    return _each_weekday(days)


def ordinal(number: int) -> str:
    """Write `1st`, `2nd`, `11th`."""
    return _ordinal(number)


def listed(parts: Sequence[str]) -> str:
    """Write parts as `a, b and c`."""
    return _list(parts)


def _unrestricted(field: Field) -> bool:
    """Whether the field is `*`: one that merely names every value still suffices by itself (OR)."""
    return field.star and field.every


def _plain(field: Field) -> bool:
    return not any(item.special for item in field.items)


def _times(line: Line) -> str | None:
    """Give the times of a day as a list, or None where they are too many to tell."""
    second, minute, hour = (field.values for field in line.fields[:3])
    if len(second) * len(minute) * len(hour) > MOST_TIMES:
        return None
    seconds = second != (0,)
    return _list([f"{h:02}:{m:02}" + (f":{s:02}" if seconds else "") for h in hour for m in minute for s in second])


def _grid(line: Line, hour: Field, minute: Field) -> str:
    """Say times that are many: by even steps where they are even, else by naming minutes and hours."""
    second = line.fields[0].values
    if second == (0,):
        return _minutes(hour, minute)
    if not minute.every:
        return f"{_minutes(hour, minute)}, at {_named('second', second)}"
    step = _even(second, 60)
    head = f"every {_counted(step, 'second')}" if step else f"at {_named('second', second)} of each minute"
    return head if hour.every else f"{head} in the hours {_runs(hour.values)}"


def _minutes(hour: Field, minute: Field) -> str:
    hours = "" if hour.every else f" in the hours {_runs(hour.values)}"
    if len(minute.values) == 1:
        step = _even(hour.values, 24)
        at = "on the hour" if minute.values == (0,) else f"at minute {minute.values[0]}"
        return f"every {_counted(step, 'hour')}, {at}" if step else f"{at}{hours}"
    step = _even(minute.values, 60)
    if step and not hour.every and len(hour.values) == hour.values[-1] - hour.values[0] + 1:
        first, last = hour.values[0], hour.values[-1]
        return f"every {_counted(step, 'minute')} from {first:02}:00 to {last:02}:{minute.values[-1]:02}"
    if step:
        return f"every {_counted(step, 'minute')}{hours}"
    return f"at {_named('minute', minute.values)}{hours or ' of every hour'}"


def _even(values: Sequence[int], size: int) -> int | None:
    """Give the step of values that divide their field evenly from 0 on, or None."""
    step = size // len(values)
    return step if size % len(values) == 0 and tuple(values) == tuple(range(0, size, step)) else None


def _days(date: Field, weekday: Field) -> str:
    """Say the days a line wants, with its AND or OR spelt out."""
    if _unrestricted(weekday):
        return _dates(date)
    if _unrestricted(date):
        return _weekdays(weekday)
    if date.star or weekday.star:
        return f"{_dates(date)}, but only {_weekdays(weekday)} (both must match)"
    return f"{_dates(date)}, and also {_weekdays(weekday)} (either suffices)"


def _dates(date: Field) -> str:
    parts = [_dates_plain(date)] if date.values else []
    for item in date.items:
        if item.special == "L":
            parts.append("the last day")
        elif item.special == "LW":
            parts.append("the last working day")
        elif item.special == "W":
            parts.append(f"the working day nearest the {_ordinal(item.values[0])}")
    return f"on {_list(parts)} of the month"


def _dates_plain(date: Field) -> str:
    only = date.items[0]
    if len(date.items) == 1 and only.step > 1 and only.text.startswith("*") and len(date.values) > 2:
        return f"every {_ordinal(only.step)} day from the 1st"
    if len(date.values) == 1:
        return f"the {_ordinal(date.values[0])}"
    if len(date.values) == date.values[-1] - date.values[0] + 1 and len(date.values) > 2:
        return f"the {_ordinal(date.values[0])} to the {_ordinal(date.values[-1])}"
    return f"the {_list([_ordinal(value) for value in date.values])}"


def _weekdays(weekday: Field) -> str:
    parts = []
    if weekday.values == (1, 2, 3, 4, 5):
        parts.append("weekdays (Monday to Friday)")
    elif weekday.values:
        parts.append(_list([f"{DAY_NAMES[day]}s" for day in _from_monday(weekday.values)]))
    for item in weekday.items:
        if item.special == "#":
            parts.append(f"the {COUNTED[item.values[1]]} {DAY_NAMES[item.values[0]]} of the month")
        elif item.special == "dL":
            parts.append(f"the last {DAY_NAMES[item.values[0]]} of the month")
    return f"on {_list(parts)}"


def _each_weekday(days: Sequence[int]) -> str:
    """Say `every Monday and Thursday`; Sunday is 0 here, and last."""
    if len(days) == 7:
        return "every day"
    if tuple(days) == (1, 2, 3, 4, 5):
        return "every weekday"
    return f"every {_list([DAY_NAMES[day] for day in _from_monday(days)])}"


def _from_monday(days: Sequence[int]) -> list[int]:
    return sorted(days, key=lambda day: (day - 1) % 7)


def _runs(values: Sequence[int], names: Sequence[str] = (), low: int = 0) -> str:
    """Name values, three and more in a row as `8 to 18`."""
    rest, parts = list(values), []
    while rest:
        run = next(n for n in range(len(rest), 0, -1) if rest[n - 1] - rest[0] == n - 1)
        said = [names[value - low] if names else str(value) for value in rest[:run]]
        parts += [f"{said[0]} to {said[-1]}"] if run > 2 else said
        rest = rest[run:]
    return _list(parts)


def _named(noun: str, values: Sequence[int]) -> str:
    return f"{noun} {values[0]}" if len(values) == 1 else f"{noun}s {_runs(values)}"


def _counted(number: int, noun: str) -> str:
    return noun if number == 1 else f"{number} {noun}s"


def _ordinal(number: int) -> str:
    ending = "th" if number in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _list(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
