"""What a person may have meant by a text that cannot be read, so that the refusal can say what to write instead."""

import re
from datetime import time

TIME = r"(\d{1,2}):(\d\d)(?::(\d\d))?"
DATE = r"\d{4}-\d\d-\d\d"
NAMED = {"hour": "1h", "minute": "1m", "second": "1s", "week": "7d", "hourly": "1h"}
DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
LONGEST_GUESSED = 100


def read_time(text: str) -> time | None:
    """Read `9:00` or `09:00:30`; None if it is no time of a day."""
    match = re.fullmatch(TIME, text, re.ASCII)
    if match is None:
        return None
    hour, minute, second = (int(part or 0) for part in match.groups())
    return time(hour, minute, second) if hour < 24 and minute < 60 and second < 60 else None


def time_meant(text: str) -> str | None:
    """Give the time that `9am`, `9`, `9.30` or `24:00` may mean, or None."""
    match = re.fullmatch(r"(\d{1,2})(?:[:.h](\d{1,2}))? ?([ap]m)?", text.lower(), re.ASCII)
    if match is None:
        return None
    hour, minute = int(match[1]), int(match[2] or 0)
    if match[3] and 1 <= hour <= 12:
        hour = hour % 12 + (12 if match[3] == "pm" else 0)
    if (hour, minute) == (24, 0):
        return "00:00, on the next day"
    return f"{hour:02}:{minute:02}" if hour < 24 and minute < 60 else None


def moment_meant(text: str, tomorrow: str) -> str | None:
    """Give the local time that a bare date, or a bare time on a coming date, may mean, or None."""
    if re.fullmatch(DATE, text, re.ASCII):
        return f"{text} 09:00"
    if read_time(text):
        return f"{tomorrow} {text}"
    return None


def looks_like_zone(word: str) -> bool:
    """Tell whether a word that is too much looks like a zone: `Europe/Berlin`, `UTC`, `CET`, `+02:00`."""
    if re.fullmatch(r"[A-Za-z_]+(/[A-Za-z][A-Za-z_+\-0-9]*)+", word, re.ASCII):
        return True
    if re.fullmatch(r"(UTC|GMT)?[+-]\d{1,2}(:?\d\d)?", word, re.ASCII):
        return True
    return bool(re.fullmatch(r"[A-Z]{1,5}", word, re.ASCII)) and word.lower() not in DAYS


def guess(text: str) -> str | None:
    """Give the trigger that a plain English text may mean, or None."""
    small = text.lower().removeprefix("at ") if len(text) <= LONGEST_GUESSED else ""
    words = small.split()
    if not words:
        return None
    if words[:2] == ["once", "in"] or words[0] == "in":
        span = _span("".join(words[2 if words[0] == "once" else 1 :]))
        return f"once in {span}" if span else None
    if words[0] == "every":
        return _guess_every(words[1:])
    at = _time_in(words)
    if words[0] in ("hourly", "weekly", "monthly", "yearly", "annually", "midnight"):
        return f"cron @{words[0]}"
    if words[0][:3] in DAYS or words[0].startswith(("weekday", "weekend")):
        return f"weekly {_days(words[0])} {at or '09:00'}"
    if at and len(words) <= 2 and not words[0].count("-"):
        return f"daily {at}"
    if re.fullmatch(DATE, words[0], re.ASCII):
        return f"once {words[0]} {words[1] if len(words) > 1 and read_time(words[1]) else at or '09:00'}"
    if words[0].count("-") == 2:
        return f"once {text}"
    span = _span("".join(words))
    return f"every {span}" if span else None


def _guess_every(words: list[str]) -> str | None:
    if not words:
        return None
    at = _time_in(words[1:])
    first = words[0]
    if first in ("day", "morning", "night", "evening", "noon"):
        usual = {"day": "09:00", "morning": "08:00", "night": "22:00", "evening": "18:00", "noon": "12:00"}[first]
        return f"daily {at or usual}"
    if first == "month":
        return "cron @monthly"
    if first.startswith(("weekday", "weekend")) or first[:3] in DAYS:
        return f"weekly {_days(first)} {at or '09:00'}"
    if first == "year":
        return "cron @yearly"
    if first in NAMED and (first != "second" or len(words) == 1):
        return f"every {NAMED[first]}"
    number = {"other": "2", "second": "2", "two": "2", "three": "3", "five": "5", "ten": "10"}.get(first, first)
    span = _span("".join([number, *words[1:2]]) if len(words) > 1 else number)
    return f"every {span}" if span else None


def _days(word: str) -> str:
    if word.startswith("weekday"):
        return "weekdays"
    return "weekends" if word.startswith("weekend") else re.sub(r"([a-z]{3})[a-z]*", r"\1", word)


def _time_in(words: list[str]) -> str | None:
    for word in words:
        found = time_meant(word) if not word.isdigit() else None
        if found:
            return found.partition(",")[0]
    return time_meant(words[-1]) if len(words) > 1 and words[-2] == "at" else None


def _span(text: str) -> str | None:
    """Read `15minutes`, `2hours30min` or `1h` loosely."""
    parts = re.findall(r"(\d{1,6})([a-z]+)", text, re.ASCII)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return None
    sizes: dict[str, str] = {}
    for number, unit in parts:
        known = re.fullmatch(r"(w|d|h|m|s)(eeks?|ays?|ours?|rs?|in|ins|inutes?|ecs?|econds?)?", unit)
        if known is None or int(number) == 0 or known[1] in sizes:
            return None
        sizes[known[1]] = number + known[1]
    return "".join(sizes[unit] for unit in "wdhms" if unit in sizes)
