"""Triggers as text: what people write after `--when`, read strictly and written back in one canonical form."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from duly.core.cron import read_line
from duly.core.event_text import read_on, write_on
from duly.core.meant import guess, looks_like_zone, moment_meant, read_time, time_meant
from duly.core.spans import (
    TOO_LONG,
    exact_instant,
    local_reading,
    read_span,
    resolve,
    write_instant,
    write_local,
    write_span,
)
from duly.core.trigger_json import from_json, to_json
from duly.core.triggers import MAX_TRIGGERS, Cron, Daily, Every, On, Once, Trigger, Triggers, Weekly, next_after
from duly.errors import Invalid

__all__ = ["Reading", "from_json", "read", "read_all", "to_json", "write", "write_days", "write_once", "write_time"]

MAX_TEXT = 1000
"""Characters in one trigger's text."""
MAX_TIMES = 100
"""Times in one `daily` or `weekly`."""
BLANKS = " \t\r\n"
DAY_NAMES = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
FULL_NAMES = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
NUMBERED = {"0": "sun", **{str(number): name for number, name in enumerate(DAY_NAMES, 1)}}
"""Days by the numbers of cron, for hints alone."""
GROUPS = {"weekdays": (0, 1, 2, 3, 4), "weekends": (5, 6)}
LAST_DAY = datetime(9999, 12, 30, tzinfo=UTC)
DIGITS = "0123456789"
CRON_LETTERS = DIGITS + "*?,-/"
ZONE_PREFIXES = ("CRON_TZ=", "TZ=")
SHOWN = 40
"""Characters of a wrong word that a message repeats."""
EXAMPLES = "`daily 09:00`, `weekly mon-fri 09:00`, `every 15m`, `once in 2h`, `cron 0 9 * * 1-5` or `on deploy`"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A trigger as read, and what its writer should know."""

    trigger: Trigger
    warnings: tuple[str, ...] = ()


def read(text: str, *, now: datetime, zone: ZoneInfo, in_file: bool = False, past: bool = False) -> Reading:
    """Read one trigger; Invalid (field `when`, `at` the column, `hint` what to write instead) if it means nothing.

    `in_file` refuses `once in 20m`, which means another instant at each reading; `past` takes a once that is over.
    """
    if len(text) > MAX_TEXT:
        raise Invalid("the text is too long", field="when", text=text, at=MAX_TEXT, hint=f"{MAX_TEXT} characters")
    squeezed, columns = _squeeze(text)
    if squeezed.partition(" ")[0].lower() == "on":
        return Reading(trigger=_on(text, squeezed))
    try:
        reading = _read(squeezed, now.astimezone(UTC), zone, in_file)
        _refuse_never(reading.trigger, now, zone, past)
    except Invalid as error:
        at = columns[min(error.at or 0, len(columns) - 1)]
        raise Invalid(error.message, field="when", text=text, at=at, hint=error.hint, details=error.details) from None
    return reading


def read_all(
    texts: Iterable[str], *, now: datetime, zone: ZoneInfo, in_file: bool = False, past: bool = False
) -> Triggers:
    """Read a task's triggers in order, equal ones once; `manual` alone gives none."""
    given = list(texts)
    if len(given) == 1 and given[0].strip(BLANKS).lower() == "manual":
        return ()
    if not given:
        raise Invalid("a task needs a time, or `manual`", field="when", text="", at=0, hint=EXAMPLES)
    if len(given) > MAX_TRIGGERS:
        raise Invalid(
            f"a task has at most {MAX_TRIGGERS} triggers", field="when", hint="one trigger with several times"
        )
    readings = (read(text, now=now, zone=zone, in_file=in_file, past=past) for text in given)
    return tuple(dict.fromkeys(reading.trigger for reading in readings))


def write(trigger: Trigger) -> str:
    """Write a trigger in its one canonical form, which reads back as the same trigger."""
    match trigger:
        case Cron():
            return f"cron {trigger.expression}"
        case Daily():
            return f"daily {_write_times(trigger.times)}"
        case Weekly():
            return f"weekly {write_days(trigger.weekdays)} {_write_times(trigger.times)}"
        case Once():
            return f"once {write_once(trigger)}"
        case Every():
            return f"every {write_span(trigger.span)} from {write_instant(trigger.anchor)}"
        case On():
            return write_on(trigger)


def _on(text: str, squeezed: str) -> On:
    """Read a trigger by event, whose quoted texts keep their blanks."""
    try:
        return read_on(text)
    except Invalid as error:
        day = squeezed[3:6].lower() in DAY_NAMES
        hint = (guess(squeezed[3:]) if day else None) or error.hint
        raise Invalid(error.message, field="when", text=text, at=error.at, hint=hint) from None


def write_time(at: time) -> str:
    """Write `09:00`, with seconds only where they are not zero."""
    return at.isoformat("seconds" if at.second else "minutes")


def write_days(weekdays: Iterable[int]) -> str:
    """Write weekdays (Monday is 0) as names and ranges: `mon-fri`, `mon,thu`, `sat,sun`."""
    days = sorted(set(weekdays))
    parts: list[str] = []
    while days:
        run = next(n for n in range(len(days), 0, -1) if days[n - 1] - days[0] == n - 1)
        first, last = DAY_NAMES[days[0]], DAY_NAMES[days[run - 1]]
        parts += [f"{first}-{last}"] if run > 2 else [DAY_NAMES[day] for day in days[:run]]
        days = days[run:]
    return ",".join(parts)


def write_once(trigger: Once) -> str:
    """Write the instant or the local time of a once."""
    if trigger.at is not None:
        return write_instant(trigger.at)
    assert trigger.local is not None, "a once has an instant or a local time"
    return write_local(trigger.local)


def _write_times(times: Iterable[time]) -> str:
    return ",".join(write_time(at) for at in sorted(set(times)))


def _squeeze(text: str) -> tuple[str, list[int]]:
    """Leave one blank between words and none after a comma; the second value gives each character's old column."""
    letters: list[str] = []
    columns: list[int] = []
    for column, letter in enumerate(text):
        if letter not in BLANKS:
            letters.append(letter)
            columns.append(column)
        elif letters and letters[-1] not in (" ", ","):
            letters.append(" ")
            columns.append(column)
    if letters and letters[-1] == " ":
        letters.pop()
        columns.pop()
    return "".join(letters), [*columns, len(text.rstrip(BLANKS))]


def _read(text: str, now: datetime, zone: ZoneInfo, in_file: bool) -> Reading:
    word, _, rest = text.partition(" ")
    kind, at = word.lower(), len(word) + 1
    if " ," in text:
        raise Invalid("a blank stands before a comma", at=text.index(" ,"), hint=text.replace(" ,", ","))
    if kind == "cron":
        return _read_cron(rest, at)
    if kind == "daily":
        return Reading(trigger=Daily(times=_times_alone(rest, at, "daily")))
    if kind == "weekly":
        return _read_weekly(rest, at)
    if kind == "once":
        return Reading(trigger=_read_once(rest, at, now, in_file))
    if kind == "every":
        return Reading(trigger=_read_every(rest, at, now, zone))
    if kind == "manual":
        raise Invalid("`manual` stands alone, without another trigger beside it", at=0, hint="`manual`, and no other")
    if kind.startswith("@") or _is_cron(text):
        return _read_cron(text, 0)
    if not word:
        raise Invalid("there is nothing to read", at=0, hint=EXAMPLES)
    raise Invalid(f"`{word[:SHOWN]}` does not begin a trigger", at=0, hint=guess(text) or EXAMPLES)


def _is_cron(text: str) -> bool:
    """Tell a cron line that came without its word."""
    words = text.split(" ")
    if words[0].upper().startswith(ZONE_PREFIXES):
        return True
    like_a_field = words[0] == "H" or words[0].startswith("H/") or all(letter in CRON_LETTERS for letter in words[0])
    return like_a_field and (len(words) >= 4 or "*" in text)


def _read_cron(line: str, at: int) -> Reading:
    words = line.split(" ")
    if words[0].upper().startswith(ZONE_PREFIXES):
        rest = " ".join(words[1:])
        zone = words[0].partition("=")[2]
        raise Invalid("a zone does not stand in a cron line", at=at, hint=f"`{rest}`, and --zone {zone}")
    if (len(words) > 5 or (len(words) > 1 and line.startswith("@"))) and looks_like_zone(words[-1]):
        rest = " ".join(words[:-1])
        raise Invalid(
            "a zone does not stand in a cron line",
            at=at + len(rest) + 1,
            hint=f"`cron {rest}`, and --zone {words[-1]}",
        )
    try:
        found = read_line(line)
    except Invalid as error:
        raise _moved(error, at) from None
    return Reading(trigger=Cron(expression=found.expression), warnings=found.warnings)


def _read_weekly(rest: str, at: int) -> Reading:
    days_text, _, times_text = rest.partition(" ")
    if not days_text or (days_text[0] in DIGITS and ":" in days_text):
        raise Invalid("weekly needs days and times", at=at, hint=f"weekly mon {times_text or days_text or '09:00'}")
    if days_text.endswith("-") or times_text.startswith("-"):
        joined = rest.replace(" -", "-").replace("- ", "-")
        raise Invalid("a range of days has no blanks", at=at, hint=f"weekly {joined}")
    weekdays = _read_days(days_text, at)
    times = _times_alone(times_text, at + len(days_text) + 1, f"weekly {days_text}")
    return Reading(trigger=Weekly(weekdays=weekdays, times=times))


def _read_days(text: str, at: int) -> tuple[int, ...]:
    days: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.partition("-")
        if part.lower() in GROUPS:
            days.update(GROUPS[part.lower()])
        elif not dash:
            days.add(_read_day(first, at))
        else:
            if first in NUMBERED and last in NUMBERED:
                hint = f"{NUMBERED[first]}-{NUMBERED[last]}"
                raise Invalid("weekly has names for its days, not numbers", at=at, hint=hint)
            low, high = _read_day(first, at), _read_day(last, at + len(first) + 1)
            if high < low:
                head = DAY_NAMES[low] if low == 6 else f"{DAY_NAMES[low]}-sun"
                tail = DAY_NAMES[high] if high == 0 else f"mon-{DAY_NAMES[high]}"
                message = f"`{part}` runs backwards: the week begins on Monday"
                raise Invalid(message, at=at, hint=f"{head},{tail}")
            days.update(range(low, high + 1))
        at += len(part) + 1
    return tuple(sorted(days))


def _read_day(word: str, at: int) -> int:
    small = word.lower()
    if small in DAY_NAMES:
        return DAY_NAMES.index(small)
    if small in FULL_NAMES:
        return FULL_NAMES.index(small)
    if not word:
        raise Invalid("an empty place in the list of days", at=at, hint="one comma between two days")
    near = small[:3] if small[:3] in DAY_NAMES else None
    if small in ("weekday", "weekend"):
        near = small + "s"
    near = NUMBERED.get(small, near)
    raise Invalid(f"`{word[:SHOWN]}` is not a day", at=at, hint=near or "mon to sun, weekdays or weekends")


def _times_alone(text: str, at: int, before: str) -> tuple[time, ...]:
    """Read a list of times and nothing after it; `before` is what stands before it, for the hint."""
    word, _, rest = text.partition(" ")
    if not word:
        raise Invalid("a time is missing", at=at, hint=f"{before} 09:00")
    if before == "daily" and word.partition("-")[0].partition(",")[0].lower() in (*DAY_NAMES, *FULL_NAMES, *GROUPS):
        raise Invalid("daily means every day", at=at, hint=f"weekly {text}")
    if word.lower() == "at" and rest:
        raise Invalid("no `at` before a time", at=at, hint=f"{before} {rest}")
    times = _read_times(word, at)
    if rest:
        at += len(word) + 1
        if looks_like_zone(rest):
            raise Invalid("a zone does not stand in a trigger", at=at, hint=f"`{before} {word}`, and --zone {rest}")
        raise Invalid(f"`{rest[:SHOWN]}` is too much here", at=at, hint=f"{before} {word}; commas between times")
    return times


def _read_times(text: str, at: int) -> tuple[time, ...]:
    parts = text.split(",")
    if len(parts) > MAX_TIMES:
        raise Invalid(f"at most {MAX_TIMES} times", at=at, hint="a cron line for a regular grid")
    times: set[time] = set()
    for part in parts:
        found = read_time(part)
        if found is None:
            hint = time_meant(part) or "HH:MM or HH:MM:SS, from 00:00 to 23:59:59"
            message = f"`{part[:SHOWN]}` is not a time" if part else "an empty place in the list of times"
            raise Invalid(message, at=at, hint=hint)
        times.add(found)
        at += len(part) + 1
    return tuple(sorted(times))


def _read_once(rest: str, at: int, now: datetime, in_file: bool) -> Once:
    word, _, span_text = rest.partition(" ")
    if word.lower() == "in":
        if in_file:
            message = "`once in` means another instant at each reading of a file"
            raise Invalid(message, at=at, hint=f"once {write_local(now.replace(tzinfo=None, microsecond=0))}")
        span = _span(span_text, at + len(word) + 1, "once in")
        try:
            return Once(at=now.replace(microsecond=0) + span)
        except OverflowError:
            raise Invalid("the instant is outside the calendar", at=at, hint="a nearer one") from None
    found = _moment(rest, at, "once", now)
    return Once(local=found) if found.tzinfo is None else Once(at=found)


def _read_every(rest: str, at: int, now: datetime, zone: ZoneInfo) -> Every:
    span_text, _, tail = rest.partition(" ")
    word, _, moment = tail.partition(" ")
    if tail and word.lower() != "from":
        wanted = guess(f"every {rest}")
        if wanted is None:
            _span(span_text, at, "every")
            wanted = f"every {span_text}"
        if looks_like_zone(tail):
            wanted = f"`every {span_text}`: elapsed time has no zone"
        raise Invalid(f"`{tail[:SHOWN]}` is too much here", at=at + len(span_text) + 1, hint=wanted)
    span = _span(span_text, at, "every")
    if not tail:
        return Every(span=span, anchor=now.replace(microsecond=0))
    at += len(span_text) + len(word) + 2
    found = _moment(moment, at, f"every {span_text} from", now)
    try:
        return Every(span=span, anchor=resolve(found, zone) if found.tzinfo is None else found)
    except Invalid as error:
        raise _moved(error, at) from None


def _moment(text: str, at: int, before: str, now: datetime) -> datetime:
    """Read an instant (aware) or a local time (naive)."""
    try:
        found = exact_instant(text) or local_reading(text)
    except Invalid as error:
        raise _moved(error, at) from None
    if found is not None:
        return found
    date, _, rest = text.partition(" ")
    time_text, _, zone = rest.partition(" ")
    if zone and looks_like_zone(zone) and read_time(time_text):
        where = at + len(text) - len(zone)
        exact = zone[0] in "Zz+-"
        hint = f"{before} {date}T{time_text}{zone}" if exact else f"`{before} {date} {time_text}`, and --zone {zone}"
        raise Invalid("a zone does not stand in a trigger", at=where, hint=hint)
    tomorrow = f"{(min(now, LAST_DAY) + timedelta(days=1)).date()}"
    meant = moment_meant(text, tomorrow)
    if meant is None or not _is_local(meant):
        meant = f"{tomorrow} 09:00"
    message = f"`{text[:SHOWN]}` is neither a local time nor an instant"
    raise Invalid(message if text else "a local time or an instant is missing", at=at, hint=f"{before} {meant}")


def _is_local(text: str) -> bool:
    try:
        return local_reading(text) is not None
    except Invalid:
        return False


def _span(text: str, at: int, before: str) -> timedelta:
    try:
        return read_span(text)
    except Invalid as error:
        hint = guess(f"{before} {text}") if error.message != TOO_LONG else None
        raise Invalid(error.message, at=at + (error.at or 0), hint=hint or error.hint) from None


def _moved(error: Invalid, by: int) -> Invalid:
    return Invalid(error.message, at=by + (error.at or 0), hint=error.hint)


def _refuse_never(trigger: Trigger, now: datetime, zone: ZoneInfo, past: bool) -> None:
    if next_after((trigger,), zone, now) is not None:
        return
    if isinstance(trigger, Once):
        if not past:
            raise Invalid(f"{write_once(trigger)} is past", at=len("once "), hint="a time to come")
        return
    raise Invalid("it never comes in this zone", at=0, hint="a time that its clock shows")
