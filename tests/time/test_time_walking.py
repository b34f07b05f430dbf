"""Walking along instants a day at a time: what asking for the next one again and again gives, instant by instant."""

from datetime import UTC, datetime, time, timedelta
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from time_draws import Scene, local, scenes, triggers

from duly import zones
from duly.core.triggers import Cron, Daily, Every, Once, Triggers, Weekly, occurrences
from duly.core.walking import instants

ANCHOR = datetime(2026, 3, 1, 0, 0, 7, tzinfo=UTC)
MADE: dict[str, Triggers] = {
    "each minute": (Cron(expression="* * * * *"),),
    "quarters": (Cron(expression="*/15 * * * *"),),
    "each tenth second of an hour": (Cron(expression="*/10 * 2 * * *"),),
    "fixed in the gap": (Cron(expression="30 2 * * *"), Cron(expression="15,45 1-3 * * *")),
    "midnight": (Daily(times=(time(0, 0), time(23, 59, 59))),),
    "weekly": (Weekly(weekdays=(0, 6), times=(time(2, 30), time(3))),),
    "by seven minutes": (Every(span=timedelta(minutes=7), anchor=ANCHOR),),
    "by two days": (Every(span=timedelta(days=2), anchor=ANCHOR),),
    "by a part of a second": (Every(span=timedelta(minutes=7), anchor=ANCHOR + timedelta(microseconds=5)),),
    "all at once": (
        Cron(expression="0 */2 * * *"),
        Every(span=timedelta(minutes=11), anchor=ANCHOR),
        Daily(times=(time(2),)),
    ),
    "with a single one": (Once(local=datetime(2026, 3, 29, 2, 30)), Daily(times=(time(2, 30),))),  # noqa: DTZ001
    "monthly": (Cron(expression="0 12 L * *"),),
    "over": (Once(at=ANCHOR),),
}
PLACES = ("UTC", "Europe/Berlin", "Australia/Lord_Howe", "America/Santiago", "Africa/Casablanca", "Antarctica/Troll")
CHANGES = [
    datetime(2026, 3, 29, tzinfo=UTC),
    datetime(2026, 10, 25, tzinfo=UTC),
    datetime(2026, 4, 4, 15, tzinfo=UTC),
    datetime(2026, 9, 6, 3, tzinfo=UTC),
    datetime(2026, 2, 15, tzinfo=UTC),
]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", MADE)
@settings(max_examples=12)
@given(
    change=st.sampled_from(CHANGES),
    before=st.timedeltas(min_value=timedelta(days=-2), max_value=timedelta(days=2)),
    gap=st.sampled_from(["run", "skip"]),
    fold=st.sampled_from(["first", "second", "both"]),
)
def test_a_walk_meets_what_asking_for_the_next_again_and_again_gives(
    name: str, place: str, change: datetime, before: timedelta, gap: str, fold: str
) -> None:
    zone, after, made = zones.zone(place), change - before, MADE[name]
    asked = list(islice(occurrences(made, zone, after, gap=gap, fold=fold), 300))  # type: ignore[arg-type]
    walked = list(islice(instants(made, zone, after, gap=gap, fold=fold), 300))  # type: ignore[arg-type]
    assert walked == asked


@given(data=st.data(), scene=scenes())
def test_a_walk_begun_near_any_change_of_any_zone_meets_what_next_gives(data: st.DataObject, scene: Scene) -> None:
    made = tuple(data.draw(st.lists(triggers(local(scene)), min_size=1, max_size=3, unique=True)))
    after = scene.moment - data.draw(st.sampled_from([timedelta(0), timedelta(hours=26), timedelta(days=3)]))
    asked = list(islice(occurrences(made, scene.zone, after), 80))
    assert list(islice(instants(made, scene.zone, after), 80)) == asked
