"""How the figures behind a reason are told: a figure's name says what it is, and so how it is written.

`…_s` is a span in seconds, `…_at`, `since`, `until` and their like are instants, ids are told by their endings.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from string import Formatter
from zoneinfo import ZoneInfo

MINUTE, HOUR, DAY = 60, 3600, 86_400
ENDING_SHOWN = 8
INSTANTS = ("_at", "since", "until", "first", "last", "not_before")
ID = re.compile(r"(?:tsk|run|mis|que|evt|hld|tok|pau)_[0-9a-z]{26}")
MILLISECOND_US = 1_000
SHORT_S = 10
"""Spans below are told with a tenth of a second."""


def distance(span: timedelta) -> str:
    """Tell a span in its two largest units: `4h 12m`, `3d 2h`, `45s`."""
    total = int(abs(span).total_seconds())
    if total < MINUTE:
        return f"{total}s"
    if total < HOUR:
        minutes, seconds = divmod(total, MINUTE)
        return f"{minutes}m {seconds}s" if minutes < SHORT_S and seconds else f"{minutes}m"
    if total < DAY:
        hours, rest = divmod(total, HOUR)
        return f"{hours}h {rest // MINUTE}m" if rest // MINUTE else f"{hours}h"
    days, rest = divmod(total, DAY)
    return f"{days}d {rest // HOUR}h" if days < SHORT_S and rest // HOUR else f"{days}d"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wall:
    """On whose wall instants are told (None: UTC), and beside which one: on its day the time alone is enough."""

    zone: ZoneInfo | None = None
    beside: datetime | None = None


UTC_WALL = Wall()


def local_text(at: datetime, wall: Wall, *, fine: bool = False) -> str:
    """Tell an instant whole: weekday, date, time, offset; by its time alone on the day of the one beside it.

    `fine` adds thousandths of a second where there are any.
    """
    there = _there(at, wall.zone)
    fraction = f".{there.microsecond // 1000:03d}" if fine and there.microsecond >= MILLISECOND_US else ""
    if wall.beside is not None:
        other = _there(wall.beside, wall.zone)
        if (other.date(), other.utcoffset()) == (there.date(), there.utcoffset()):
            return f"{there:%H:%M:%S}{fraction}"
    offset = there.utcoffset() or timedelta(0)
    total = int(offset.total_seconds())
    sign, rest = ("-", -total) if total < 0 else ("+", total)
    whole = f"{there:%a} {there.year:04d}-{there:%m-%d %H:%M:%S}"
    seconds = f":{rest % MINUTE:02d}" if rest % MINUTE else ""
    return f"{whole}{fraction} {sign}{rest // HOUR:02d}:{rest % HOUR // MINUTE:02d}{seconds}"


def _there(at: datetime, zone: ZoneInfo | None) -> datetime:
    try:
        return at.astimezone(zone) if zone is not None else at
    except OverflowError:
        return at


def tell(name: str, value: object, wall: Wall) -> str:
    """Tell one figure by what its name says it is."""
    if isinstance(value, datetime):
        return local_text(value, wall)
    if name.endswith("_s") and isinstance(value, int | float):
        span = timedelta(seconds=value)
        return distance(span) if abs(value) >= SHORT_S or value == int(value) else f"{value:.1f}s"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    text = str(value)
    if name.endswith(INSTANTS) and text[:1].isdigit() and text.endswith("Z"):
        return local_text(datetime.fromisoformat(text), wall)
    return ID.sub(lambda found: found.group()[-ENDING_SHOWN:], text)


def fill(template: str, figures: Mapping[str, object], wall: Wall) -> str | None:
    """Fill a template with told figures; None where one that it names is not there."""
    names = names_of(template)
    if any(figures.get(name) is None for name in names):
        return None
    return template.format(**{name: tell(name, figures[name], wall) for name in names})


@lru_cache(maxsize=1024)
def names_of(template: str) -> tuple[str, ...]:
    """Give the figures that a template names."""
    return tuple(name for _, name, _, _ in Formatter().parse(template) if name)
