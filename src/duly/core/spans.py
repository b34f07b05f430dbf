"""Spans and instants as people write them, and back."""

import re
from datetime import UTC, datetime, timedelta
from typing import Literal
from zoneinfo import ZoneInfo

from duly.core.wallclock import EPOCH, instant_of, instants_of, law, whole_seconds
from duly.errors import Invalid

UNITS = {"w": 604_800, "d": 86_400, "h": 3600, "m": 60, "s": 1}
PRINTED = ("d", "h", "m", "s")
"""Spans are printed in these; weeks are only read, so that `14d` stays `14d`."""
MAX_SPAN = timedelta(days=3653)
"""Ten years."""
TOO_LONG = "a span is at most ten years"
MAX_TEXT = 100
MAX_DIGITS = 10
INSTANT = (
    r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?"
    r"(?:([Zz])|([+-])(\d\d):(\d\d))"
)
LOCAL = r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d{1,2}):(\d\d)(?::(\d\d))?"
HOW_TO_SPAN = "a number and a unit (w, d, h, m, s), such as 90s, 15m or 2h30m"
HOW_TO_INSTANT = "2026-12-01T08:00:00Z, 2026-12-01 09:00, now, or a distance such as 7d or +2h"


def read_span(text: str, *, field: str = "span", zero: bool = False) -> timedelta:
    """Read `2h30m` as a span of at most ten years; Invalid for no unit, a fraction, or (unless allowed) zero."""
    if len(text) > MAX_TEXT:
        raise Invalid("a span is short", field=field, text=text[:MAX_TEXT], at=0, hint=HOW_TO_SPAN)
    seconds, place, smallest = 0, 0, max(UNITS.values()) + 1
    while place < len(text):
        start = place
        while place < len(text) and text[place] in "0123456789":
            place += 1
        digits, unit = text[start:place], text[place : place + 1].lower()
        if not digits or len(digits) > MAX_DIGITS or unit not in UNITS:
            raise _bad_span(text, field, start, digits)
        if UNITS[unit] >= smallest:
            raise Invalid(
                "units fall, each once", field=field, text=text, at=place, hint="the largest unit first, such as 2h30m"
            )
        seconds += int(digits) * UNITS[unit]
        smallest, place = UNITS[unit], place + 1
    if not text or (seconds == 0 and not zero):
        message = "a span is longer than nothing" if text else "a span is missing"
        raise Invalid(message, field=field, text=text, at=0, hint=HOW_TO_SPAN)
    if seconds > MAX_SPAN.total_seconds():
        raise Invalid(TOO_LONG, field=field, text=text, at=0, hint="at most 3653d")
    return timedelta(seconds=seconds)


def _bad_span(text: str, field: str, at: int, digits: str) -> Invalid:
    rest = text[at + len(digits) :]
    if not digits:
        return Invalid(f"`{text}` is not a span", field=field, text=text, at=at, hint=HOW_TO_SPAN)
    if len(digits) > MAX_DIGITS:
        return Invalid(TOO_LONG, field=field, text=text, at=at, hint="at most 3653d")
    if not rest:
        hint = f"{digits}s for seconds, {digits}m for minutes"
        return Invalid("a span needs a unit", field=field, text=text, at=at + len(digits), hint=hint)
    if rest[0] in ".,":
        hint = "a smaller unit, such as 90m for one hour and a half"
        return Invalid("a span has no fractions", field=field, text=text, at=at + len(digits), hint=hint)
    known = _unit_of(rest)
    hint = f"{text[:at]}{digits}{known}" if known else HOW_TO_SPAN
    place = len(text) - len(rest.lstrip())
    return Invalid(f"`{rest.strip()}` is not a unit", field=field, text=text, at=place, hint=hint)


def _unit_of(word: str) -> str | None:
    """Give the unit that a longer word such as `minutes` means, if it is plain."""
    word = word.strip().lower()
    for name in ("week", "day", "hour", "minute", "second"):
        if len(word) >= 2 and (name.startswith(word) or word.rstrip("s") in (name, name[:3])):
            return name[0]
    return None


def write_span(span: timedelta) -> str:
    """Write a span in the one largest unit of d, h, m, s that divides it: `90s`, `150m`, `36h`, `14d`."""
    if span.microseconds:
        return f"{span.total_seconds():g}s"
    seconds = span.days * UNITS["d"] + span.seconds
    unit = next(unit for unit in PRINTED if seconds % UNITS[unit] == 0 and (seconds or unit == "s"))
    return f"{seconds // UNITS[unit]}{unit}"


def read_instant(
    text: str, *, now: datetime, zone: ZoneInfo, bare: Literal["ago", "ahead"] = "ago", field: str = "instant"
) -> datetime:
    """Read an instant: RFC 3339, a local time in `zone`, `now`, or a distance; a span without sign goes `bare`."""
    word = text.strip(" \t\r\n")
    if word.lower() == "now":
        return now.astimezone(UTC)
    exact = exact_instant(word, field=field)
    if exact is not None:
        return exact
    local = local_reading(word, field=field)
    if local is not None:
        return resolve(local, zone)
    sign = word[:1] if word[:1] in ("+", "-") else ("-" if bare == "ago" else "+")
    if not word.lstrip("+-")[:1].isdigit() or word.isdigit() or re.match(r"\d{4}\W", word):
        raise Invalid(f"`{word[:MAX_TEXT]}` is not an instant", field=field, text=text, at=0, hint=_meant(word))
    span = read_span(word.removeprefix(sign), field=field, zero=True)
    try:
        return now.astimezone(UTC) + (span if sign == "+" else -span)
    except OverflowError:
        raise Invalid(
            "the instant is outside the calendar", field=field, text=text, at=0, hint=HOW_TO_INSTANT
        ) from None


def _meant(word: str) -> str:
    if re.fullmatch(r"\d{4}-\d\d-\d\d", word, re.ASCII):
        return f"{word} 00:00"
    return HOW_TO_INSTANT


def exact_instant(word: str, *, field: str = "instant") -> datetime | None:
    """Read RFC 3339 with `Z` or an offset; None if it has another form, Invalid if there is no such instant."""
    match = re.fullmatch(INSTANT, word, re.ASCII)
    if match is None:
        return None
    year, month, day, hour, minute, second, fraction, _, sign, off_hour, off_minute = match.groups()
    try:
        local = datetime(
            int(year),
            int(month),
            int(day),
            int(hour),
            int(minute),
            int(second or 0),
            int((fraction or "0")[:6].ljust(6, "0")),
            UTC,
        )
        if sign is None:
            return local
        if int(off_hour) > 23 or int(off_minute) > 59:
            raise ValueError("offset")
        shift = timedelta(hours=int(off_hour), minutes=int(off_minute))
        return local - shift if sign == "+" else local + shift
    except (ValueError, OverflowError):
        raise Invalid(f"`{word}` does not exist", field=field, text=word, at=0, hint="a real date and time") from None


def local_reading(word: str, *, field: str = "instant") -> datetime | None:
    """Read `2026-12-01 09:00[:SS]` as a naive local time; None if it has another form, Invalid if it cannot be."""
    match = re.fullmatch(LOCAL, word, re.ASCII)
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(part or 0) for part in match.groups())
    try:
        return datetime(year, month, day, hour, minute, second, tzinfo=UTC).replace(tzinfo=None)
    except ValueError:
        hint = "a real date and time; the day's last second is 23:59:59"
        raise Invalid(f"`{word}` does not exist", field=field, text=word, at=0, hint=hint) from None


def resolve(local: datetime, zone: ZoneInfo) -> datetime:
    """Turn a naive local time into its instant: after the gap if it is missing, the first pass if it is repeated."""
    found = instants_of(zone, whole_seconds(local.replace(tzinfo=UTC)), law())
    if not found:
        raise Invalid("the instant is outside the calendar", text=str(local), at=0, hint=HOW_TO_INSTANT)
    return instant_of(found[0])


def write_instant(instant: datetime) -> str:
    """Write RFC 3339 in UTC with `Z`, and microseconds only where they are not zero."""
    return (EPOCH + (instant - EPOCH)).isoformat().replace("+00:00", "Z")


def write_local(local: datetime) -> str:
    """Write a naive local time as `2026-12-01 09:00`, with seconds only where they are not zero."""
    return local.isoformat(" ", "seconds" if local.second else "minutes")
