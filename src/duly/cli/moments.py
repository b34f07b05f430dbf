"""How moments and spans are told to people: how far off, and at which local time with which offset."""

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from duly.core import figures

MINUTE = 60


def distance(span: timedelta) -> str:
    """Tell a span in its two largest units: `4h 12m`, `3d 2h`, `45s`."""
    return figures.distance(span)


def took(span: timedelta) -> str:
    """Tell how long something took: short spans with a tenth of a second."""
    return f"{span.total_seconds():.1f}s" if span < timedelta(seconds=10) else distance(span)


def away(at: datetime, now: datetime) -> str:
    """Tell how far off an instant is: `in 4h 12m`, `3m ago`, `now`."""
    span = at - now
    if timedelta(seconds=-1) < span < timedelta(seconds=1):
        return "now"
    return f"in {distance(span)}" if span > timedelta(0) else f"{distance(span)} ago"


def local(at: datetime, zone: ZoneInfo | None) -> datetime:
    """Give an instant on a zone's wall; in UTC where the zone is not known."""
    try:
        return at.astimezone(zone) if zone is not None else at
    except OverflowError:
        return at


def clock_text(at: datetime, zone: ZoneInfo | None, now: datetime) -> str:
    """Tell an instant as short as it stays plain: the time of today, else the date too; always with the offset."""
    there, today = local(at, zone), local(now, zone)
    time = f"{there:%H:%M:%S}" if there.second else f"{there:%H:%M}"
    offset = offset_of(there)
    if there.date() == today.date():
        return f"{time} {offset}"
    if timedelta(0) < there.date() - today.date() < timedelta(days=7):
        return f"{there:%a} {time} {offset}"
    return f"{there:%Y-%m-%d} {time} {offset}"


def full_text(at: datetime, zone: ZoneInfo | None) -> str:
    """Tell an instant whole: weekday, date, time, offset."""
    there = local(at, zone)
    return f"{there:%a} {there.year:04d}-{there:%m-%d %H:%M:%S} {offset_of(there)}"


def coming_text(due_at: datetime, start_at: datetime | None, zone: ZoneInfo | None, now: datetime) -> str:
    """Tell an instant to come: when it is due, how far off that is, and when it starts where that is later."""
    start = "" if start_at is None or start_at == due_at else f"  {start_text(due_at, start_at, zone)}"
    return f"{full_text(due_at, zone)}  {away(due_at, now)}{start}"


def start_text(due_at: datetime, start_at: datetime, zone: ZoneInfo | None) -> str:
    """Tell when an occurrence starts that its task's spread delays."""
    return f"starts {clock_text(start_at, zone, due_at)} (spread)"


def offset_of(there: datetime) -> str:
    """Give the offset of a local time as `+02:00`."""
    from duly.operations.shapes import offset_text

    return offset_text(there.utcoffset() or timedelta(0))


def ahead(text: str, option: str) -> datetime:
    """Read an instant from an option, a local time on this machine's wall; a span without sign lies ahead."""
    from duly import clock, zones
    from duly.core.spans import read_instant

    zone = zones.zone(zones.machine_zone() or "UTC")
    return read_instant(text, now=clock.now(), zone=zone, bare="ahead", field=option)
