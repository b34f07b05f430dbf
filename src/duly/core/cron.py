"""The reader of cron lines: five fields, six with seconds first, or a nickname.

What a line means: a step restarts with its field; 7 is Sunday; the two day fields must both match if either
begins with `*`, else one suffices; a line whose minute or hour field begins with `*` follows the clock as it
really reads (*interval-like*), all others are fixed times.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from duly.core.readings import NEVER_YEARS, Days, Pattern, at_or_after
from duly.errors import Invalid

MAX_CRON = 200
"""Characters in one line."""
MAX_DIGITS = 6
LINES_KEPT = 4096
MINUTES_OF_DAY = tuple(range(0, 86_400, 60))
"""Lines share these numbers instead of each making its own."""
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
NICKNAMES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}


class Kind(NamedTuple):
    """One field of the line: its name for people, its bounds, the names of its values from `low` on."""

    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()


SECOND = Kind("second", 0, 59)
MINUTE = Kind("minute", 0, 59)
HOUR = Kind("hour", 0, 23)
DATE = Kind("day-of-month", 1, 31)
MONTH = Kind("month", 1, 12, MONTHS)
WEEKDAY = Kind("weekday", 0, 6, WEEKDAYS)
KINDS = (SECOND, MINUTE, HOUR, DATE, MONTH, WEEKDAY)


class Item(NamedTuple):
    """One member of a field's list: its canonical text, and the values it stands for.

    `low`, `high` and `step` are as written; `special` is `L`, `LW`, `W`, `#` or `dL`, with its two numbers in `values`.
    """

    text: str
    values: tuple[int, ...]
    low: int
    high: int
    step: int
    special: str = ""


class Field(NamedTuple):
    """One field as read: `star` if it begins with an asterisk, its members in canonical order."""

    kind: Kind
    star: bool
    items: tuple[Item, ...]

    @property
    def values(self) -> tuple[int, ...]:
        """The plain values, sorted and without doubles."""
        return tuple(sorted({value for item in self.items if not item.special for value in item.values}))

    @property
    def every(self) -> bool:
        """Whether the field wants each of its values."""
        return len(self.values) == self.kind.high - self.kind.low + 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Line:
    """A cron line as read: its canonical text, its six fields, the readings it wants, and what to warn of."""

    expression: str
    fields: tuple[Field, ...]
    pattern: Pattern
    interval_like: bool
    warnings: tuple[str, ...]


@lru_cache(maxsize=LINES_KEPT)
def read_line(expression: str) -> Line:
    """Read a cron line; Invalid (`at` is the column) names the field and what to write instead."""
    if len(expression) > MAX_CRON:
        raise Invalid(f"a cron line has at most {MAX_CRON} characters", at=MAX_CRON, hint="a shorter line, or several")
    words = _words(expression)
    if words and words[0][0].startswith("@"):
        return _nickname(words)
    _refuse_count(words)
    if len(words) == 5:
        words = [("0", 0), *words]
    warnings: list[str] = []
    fields = tuple(_field(kind, *word, warnings) for kind, word in zip(KINDS, words, strict=True))
    shown = fields if len(_words(expression)) == 6 else fields[1:]
    pattern = _pattern(fields)
    if at_or_after(pattern, 0) is None:
        message = f"such a day never comes: not once in {NEVER_YEARS} years"
        raise Invalid(message, at=words[3][1], hint="a day that the month has; `L` is its last day")
    return Line(
        expression=" ".join(",".join(item.text for item in field.items) for field in shown),
        fields=fields,
        pattern=pattern,
        interval_like=fields[1].star or fields[2].star,
        warnings=tuple(warnings),
    )


def _words(expression: str) -> list[tuple[str, int]]:
    words: list[tuple[str, int]] = []
    start = None
    for place, letter in enumerate(expression + " "):
        if letter in " \t\r\n":
            if start is not None:
                words.append((expression[start:place], start))
                start = None
        elif start is None:
            start = place
    return words


def _nickname(words: list[tuple[str, int]]) -> Line:
    name, at = words[0][0].lower(), words[0][1]
    if name == "@reboot":
        hint = "a time, such as @daily; what runs at boot belongs to the system's service manager"
        raise Invalid("`@reboot` names no time", at=at, hint=hint)
    if name == "@every":
        raise Invalid("`@every` is not cron", at=at, hint=f"every {words[1][0] if len(words) > 1 else '15m'}")
    if name not in NICKNAMES:
        raise Invalid(f"`{name}` is not a nickname", at=at, hint=", ".join(NICKNAMES))
    if len(words) > 1:
        raise Invalid("a nickname stands alone", at=words[1][1], hint=name)
    whole = read_line(NICKNAMES[name])
    return Line(
        expression=name, fields=whole.fields, pattern=whole.pattern, interval_like=whole.interval_like, warnings=()
    )


def _refuse_count(words: list[tuple[str, int]]) -> None:
    last, at = words[-1] if words else ("", 0)
    if len(words) >= 6 and len(last) == 4 and last.isascii() and last.isdigit():
        hint = f"the line without `{last}`, or once {last}-01-31 09:00"
        raise Invalid("a cron line has no year", at=at, hint=hint)
    if len(words) in (5, 6):
        return
    hint = "minute hour day-of-month month weekday, such as 0 9 * * 1-5"
    raise Invalid(f"a cron line has 5 fields (6 with seconds first), not {len(words)}", at=at, hint=hint)


def _field(kind: Kind, text: str, at: int, warnings: list[str]) -> Field:
    alone = "," not in text
    items: list[Item] = []
    place = at
    for part in text.split(","):
        item = _item(kind, part.lower(), place, alone, warnings)
        if not any(item.values == other.values and item.special == other.special for other in items):
            items.append(item)
        place += len(part) + 1
    # The order is the writer's to lose, but not which kind of item stands first: a leading `*` has a meaning.
    star = text[0] in "*?"
    items.sort(key=lambda item: ((item.text[0] == "*") != star, bool(item.special), item.values, item.text))
    return Field(kind, star, tuple(items))


def _item(kind: Kind, text: str, at: int, alone: bool, warnings: list[str]) -> Item:
    if text == "":
        raise Invalid(
            f"an empty place in the list of the {kind.name} field", at=at, hint="one comma between two values"
        )
    if text == "?":
        if kind not in (DATE, WEEKDAY) or not alone:
            raise Invalid(f"`?` has no meaning in the {kind.name} field", at=at, hint="*")
        text = "*"
    special = _special(kind, text, at)
    if special is not None:
        return special
    base, slash, step_text = text.partition("/")
    step = _number(kind, step_text, at + len(base) + 1, "a step") if slash else 1
    if step == 0:
        raise Invalid(f"the step in the {kind.name} field is 0", at=at + len(base) + 1, hint=f"{base}/1 or more")
    low, high = _range(kind, base, at)
    if slash and low == high and "-" not in base:
        hint = f"{base}-{_top(kind, base)}/{step}"
        raise Invalid(f"`{text}` has a step without a range", at=at, hint=hint)
    if slash:
        _judge_step(kind, text, at, low, high, step, alone, warnings)
    modulo = 7 if kind is WEEKDAY else kind.high + 1
    values = tuple(sorted({value % modulo for value in range(low, high + 1, step)}))
    return Item(_canonical(base, kind) + (f"/{step}" if slash else ""), values, low, high, step)


def _canonical(base: str, kind: Kind) -> str:
    if base == "*":
        return base
    return "-".join(end if end in kind.names else str(int(end)) for end in base.split("-"))


def _judge_step(
    kind: Kind, text: str, at: int, low: int, high: int, step: int, alone: bool, warnings: list[str]
) -> None:
    size = kind.high - kind.low + 1
    if step > size and alone:
        hint = f"{kind.low if low == high else low} for the first value alone" + (
            f", or every {step}{kind.name[0]} for an interval" if kind in (SECOND, MINUTE, HOUR) else ""
        )
        raise Invalid(
            f"the step {step} is larger than the {kind.name} field, which has {size} values", at=at, hint=hint
        )
    if step > high - low:
        if alone or kind not in (DATE, WEEKDAY):
            warnings.append(f"`{text}` in the {kind.name} field means its first value alone: {_value(kind, low)}")
    elif text.startswith("*") and size % step and kind is not WEEKDAY:
        unit = {"second": "s", "minute": "m", "hour": "h", "day-of-month": "d"}.get(kind.name)
        values = ", ".join(_value(kind, value) for value in range(low, high + 1, step))
        instead = f"; for an even interval write every {step}{unit}" if unit else ""
        warnings.append(f"`{text}` restarts with its field: {kind.name} {values}{instead}")


def _value(kind: Kind, value: int) -> str:
    return kind.names[(value - kind.low) % len(kind.names)] if kind.names else str(value)


def _range(kind: Kind, base: str, at: int) -> tuple[int, int]:
    if base == "*":
        return kind.low, kind.high
    first, dash, second = base.partition("-")
    low = _number(kind, first, at)
    if not dash:
        return low, low
    high = _number(kind, second, at + len(first) + 1)
    if kind is WEEKDAY and second == "sun" and low > 0:
        high = 7
    if high < low:
        raise Invalid(
            f"the range `{base}` in the {kind.name} field runs backwards", at=at, hint=_unwound(kind, first, second)
        )
    return low, high


def _top(kind: Kind, like: str) -> str:
    """Give the highest value of a field, written like another of its values."""
    if kind is WEEKDAY:
        return "sun" if like in kind.names else "7"
    return kind.names[-1] if like in kind.names else str(kind.high)


def _unwound(kind: Kind, first: str, last: str) -> str:
    """Give two ranges for one that runs backwards."""
    if kind is WEEKDAY and first == "7":
        return f"0-{last}"
    top, low = _top(kind, first), kind.low + (kind is WEEKDAY)
    bottom = kind.names[low - kind.low] if last in kind.names else str(low)
    head = first if first == top else f"{first}-{top}"
    return f"{head},{last if last == bottom else f'{bottom}-{last}'}"


def _number(kind: Kind, text: str, at: int, what: str = "") -> int:
    """Read a number in ASCII digits, or a name of the field; a number that is not a step keeps to the bounds."""
    if not what and text in kind.names:
        return kind.names.index(text) + kind.low
    if not text:
        hint = _allowed(kind, text) if not what else "a number from 1"
        raise Invalid(f"{what or 'a value'} is missing in the {kind.name} field", at=at, hint=hint)
    if not (text.isascii() and text.isdigit()) or len(text) > MAX_DIGITS:
        raise Invalid(f"`{text}` is not {what or 'a value'} of the {kind.name} field", at=at, hint=_allowed(kind, text))
    value = int(text)
    top = 7 if kind is WEEKDAY else kind.high
    if not what and not kind.low <= value <= top:
        message = f"`{text}` is outside the {kind.name} field, which goes from {kind.low} to {top}"
        raise Invalid(message, at=at, hint=_allowed(kind, text))
    return value


def _allowed(kind: Kind, text: str) -> str:
    if text[:3] in kind.names:
        return text[:3]
    if text.startswith(("h", "r")) and not kind.names:
        return f"a number from {kind.low} to {kind.high}"
    names = f", or {kind.names[0]} to {kind.names[-1]}" if kind.names else ""
    return f"{kind.low} to {7 if kind is WEEKDAY else kind.high}{names}"


def _special(kind: Kind, text: str, at: int) -> Item | None:
    """Read `L`, `LW`, `15W` in the day-of-month field, `5L` and `2#3` in the weekday field."""
    if kind is DATE:
        if text in ("l", "lw", "wl"):
            return Item("L" if text == "l" else "LW", (), 0, 0, 1, "L" if text == "l" else "LW")
        if text.endswith("w") and text != "w":
            day = _number(kind, text[:-1], at)
            return Item(f"{day}W", (day,), day, day, 1, "W")
        if text[:2] == "l-":
            raise Invalid(
                f"`{text.upper()}` is not read", at=at, hint="L for the last day, LW for the last working day"
            )
    if kind is WEEKDAY:
        day_text, mark, which = text.partition("#")
        if mark:
            day = _number(kind, day_text, at) % 7
            nth = _number(WEEKDAY, which, at + len(day_text) + 1, "a count")
            if not 1 <= nth <= 5:
                raise Invalid("a month has a weekday one to five times", at=at + len(day_text) + 1, hint="#1 to #5")
            return Item(f"{_canonical(day_text, kind)}#{nth}", (day, nth), day, day, 1, "#")
        if text == "l":
            raise Invalid(
                "`L` alone has no meaning in the weekday field", at=at, hint="6 for Saturday, 5L for the last Friday"
            )
        if text.endswith("l"):
            day = _number(kind, text[:-1], at) % 7
            return Item(f"{_canonical(text[:-1], kind)}L", (day,), day, day, 1, "dL")
    return None


def _pattern(fields: tuple[Field, ...]) -> Pattern:
    second, minute, hour, date, month, weekday = fields
    both = date.star or weekday.star
    whole = (date.every and weekday.every) if both else (date.every or weekday.every)
    return Pattern(
        months=month.values,
        days=_days(date, weekday, both),
        every_day=whole and month.every,
        starts=_starts(hour.values, minute.values),
        seconds=second.values,
    )


def _days(date: Field, weekday: Field, both: bool) -> Days:
    def special(field: Field, mark: str) -> list[tuple[int, ...]]:
        return [item.values for item in field.items if item.special == mark]

    return Days(
        dates=frozenset(date.values),
        last=bool(special(date, "L")),
        last_workday=bool(special(date, "LW")),
        nearest_workday=frozenset(values[0] for values in special(date, "W")),
        weekdays=frozenset(weekday.values),
        nth=frozenset((values[0], values[1]) for values in special(weekday, "#")),
        last_of=frozenset(values[0] for values in special(weekday, "dL")),
        both=both,
    )


@lru_cache(maxsize=LINES_KEPT)
def _starts(hours: tuple[int, ...], minutes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(MINUTES_OF_DAY[hour * 60 + minute] for hour in hours for minute in minutes)
