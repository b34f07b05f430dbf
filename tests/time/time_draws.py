"""What the time tests draw: zones, moments aimed at changes of offset, and triggers aimed at those moments."""

from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from hypothesis import settings
from hypothesis import strategies as st
from time_walker import changes

from duly import zones
from duly.core.triggers import Cron, Daily, Every, Once, Trigger, Weekly

DRAWS = settings(max_examples=100, deadline=None)
MANY_DRAWS = settings(max_examples=200, deadline=None)
FEW_DRAWS = settings(max_examples=30, deadline=None)

# Zones and years that have broken schedulers: half hours, two hours, whole days, negative summer time, odd seconds.
AIMED = (
    ("Europe/Berlin", 2026),
    ("America/New_York", 2026),
    ("America/New_York", 2301),
    ("Europe/London", 1941),
    ("Europe/Dublin", 2026),
    ("Europe/Dublin", 1971),
    ("Australia/Lord_Howe", 2026),
    ("Australia/Lord_Howe", 2019),
    ("Antarctica/Troll", 2026),
    ("Antarctica/Troll", 2007),
    ("Pacific/Apia", 2011),
    ("Pacific/Chatham", 2026),
    ("Pacific/Kwajalein", 1993),
    ("Pacific/Kiritimati", 1994),
    ("Africa/Casablanca", 2024),
    ("Africa/Casablanca", 2060),
    ("Africa/Cairo", 1998),
    ("Africa/Cairo", 2014),
    ("Africa/Monrovia", 1972),
    ("Africa/Tunis", 1943),
    ("America/Santiago", 2025),
    ("America/Havana", 2026),
    ("America/Sao_Paulo", 2018),
    ("America/St_Johns", 2010),
    ("America/St_Johns", 1988),
    ("America/Nuuk", 2024),
    ("America/Noronha", 2000),
    ("America/Caracas", 2007),
    ("Asia/Beirut", 2026),
    ("Asia/Gaza", 2021),
    ("Asia/Gaza", 2072),
    ("Asia/Pyongyang", 2018),
    ("Asia/Almaty", 2024),
    ("Asia/Kathmandu", 1986),
    ("Asia/Kathmandu", 1985),
    ("Asia/Tehran", 2022),
    ("Asia/Manila", 1844),
    ("Europe/Moscow", 2014),
    ("Europe/Vienna", 1945),
    ("Europe/Amsterdam", 1937),
    ("Europe/Paris", 1911),
    ("Pacific/Honolulu", 1933),
    ("UTC", 2026),
)
HOUR = timedelta(hours=1)


@dataclass(frozen=True)
class Scene:
    """A zone, an instant at which its offset changes (or any other), and a moment near it."""

    key: str
    change: datetime
    moment: datetime

    @property
    def zone(self) -> ZoneInfo:
        return zones.zone(self.key)


@st.composite
def scenes(draw: st.DrawFn, reach: timedelta = timedelta(hours=30)) -> Scene:
    """A moment before, in or after a change of offset, to the minute, the second or the microsecond."""
    key, year = draw(st.sampled_from(AIMED) | st.tuples(st.sampled_from(zones.names()), st.integers(1900, 2200)))
    found = changes(zones.zone(key), year)
    change = draw(st.sampled_from(found)) if found else datetime(year, 6, 1, tzinfo=UTC)
    near = st.sampled_from((-60, -1, 0, 1, 59, 60, 1800, -1800, 3600, -3600, 3601, 7200, 5399)).map(
        lambda seconds: timedelta(seconds=seconds)
    )
    minutes = st.integers(-int(reach.total_seconds() // 60), int(reach.total_seconds() // 60))
    far = minutes.map(lambda number: timedelta(minutes=number))
    fine = st.sampled_from((0, 0, 0, 1, 500_000, 999_999)).map(lambda number: timedelta(microseconds=number))
    offset = max(min(draw(near | far), reach), -reach)
    return Scene(key, change, change + offset + draw(fine))


def field(low: int, high: int, values: st.SearchStrategy[int], names: tuple[str, ...] = ()) -> st.SearchStrategy[str]:
    """A cron field: an asterisk, a step, values, ranges, lists."""

    def named(value: int) -> str:
        return names[value - low] if names and value % 2 else str(value)

    def span(ends: tuple[int, int]) -> str:
        first, last = sorted(ends)
        return f"{named(first)}-{last}" if first < last else named(first)

    one = values.map(named)
    ranged = st.tuples(values, values).map(span)
    stepped = st.tuples(ranged.filter(lambda text: "-" in text), st.integers(1, 5)).map(
        lambda two: f"{two[0]}/{two[1]}"
    )
    starred = st.integers(1, high - low).map(lambda step: f"*/{step}")
    listed = st.lists(one | ranged | stepped, min_size=1, max_size=3).map(",".join)
    return st.just("*") | starred | one | listed


@st.composite
def cron_lines(draw: st.DrawFn, near: datetime, seconds: bool = False) -> str:
    """A cron line that has something to do with a local moment."""
    hours = st.sampled_from([(near.hour + shift) % 24 for shift in (-2, -1, 0, 1, 2, 3)]) | st.integers(0, 23)
    minutes = st.sampled_from((0, 15, 30, 45, 59, near.minute)) | st.integers(0, 59)
    day = field(1, 31, st.sampled_from((1, near.day, near.day, 15, 31)) | st.integers(1, 31))
    day |= st.sampled_from(("L", "LW", f"{near.day}W", "1W", "31W,2", "*/100,1-7", f"{near.day},L", "?"))
    cron_day = near.isoweekday() % 7
    weekday = field(
        0,
        6,
        st.sampled_from((0, cron_day, cron_day)) | st.integers(0, 6),
        ("sun", "mon", "tue", "wed", "thu", "fri", "sat"),
    )
    weekday |= st.sampled_from(
        ("*", "*", "7", "5-7", "fri-sun", "MON-SUN", f"{cron_day}L", f"{cron_day}#2", "0#1,3", "?")
    )
    month = st.just("*") | field(1, 12, st.just(near.month) | st.integers(1, 12))
    fields = [draw(field(0, 59, minutes)), draw(field(0, 23, hours)), draw(day), draw(month), draw(weekday)]
    if seconds:
        fields.insert(0, draw(field(0, 59, st.sampled_from((0, 1, 30, 59)) | st.integers(0, 59))))
    return " ".join(fields)


def times(near: datetime) -> st.SearchStrategy[tuple[time, ...]]:
    """Local times around a moment, some with seconds."""
    exact = st.builds(
        time,
        st.sampled_from([(near.hour + shift) % 24 for shift in (-2, -1, 0, 1, 2)]) | st.integers(0, 23),
        st.sampled_from((0, 15, 30, 45, near.minute)),
    )
    return st.lists(exact, min_size=1, max_size=4).map(lambda found: tuple(sorted(set(found))))


def triggers(near: datetime, seconds: bool = False) -> st.SearchStrategy[Trigger]:
    """Any kind of trigger, aimed at a local moment (naive)."""
    instant = near.replace(tzinfo=UTC)
    cron: st.SearchStrategy[Trigger] = cron_lines(near, seconds).map(lambda line: Cron(expression=line))
    daily: st.SearchStrategy[Trigger] = times(near).map(lambda found: Daily(times=found))
    weekly: st.SearchStrategy[Trigger] = st.builds(
        lambda days, at: Weekly(weekdays=tuple(sorted(days)), times=at),
        st.sets(st.integers(0, 6), min_size=1),
        times(near),
    )
    shifts = st.integers(-3000, 3000).map(lambda minutes: timedelta(minutes=minutes))
    once: st.SearchStrategy[Trigger] = shifts.map(lambda shift: Once(local=near.replace(second=0) + shift))
    once |= shifts.map(lambda shift: Once(at=instant.replace(second=0) + shift))
    every: st.SearchStrategy[Trigger] = st.builds(
        lambda span, shift: Every(span=span, anchor=instant + shift),
        st.sampled_from((60, 90, 900, 3600, 5400, 7200, 86_400, 90_000)).map(lambda number: timedelta(seconds=number)),
        shifts,
    )
    return cron | cron | daily | weekly | once | every


def local(scene: Scene) -> datetime:
    """What the zone's clock shows at the change, without seconds."""
    return scene.change.astimezone(scene.zone).replace(tzinfo=None, fold=0, second=0, microsecond=0)
