"""Four ways to ask the same near changes of the clock: the next instant, the one before, a walk, a count."""

from datetime import UTC, datetime, time, timedelta
from itertools import islice, pairwise

import pytest
from core_values import DAY, HOUR, MINUTE, SECOND, TICK

from duly import zones
from duly.core import triggers as asked
from duly.core.triggers import Cron, Daily, Every, On, Once, Triggers, Weekly
from duly.core.walking import instants
from duly.core.wallclock import Fold, Gap

SPRING, AUTUMN = datetime(2026, 3, 29, 1, tzinfo=UTC), datetime(2026, 10, 25, 1, tzinfo=UTC)
ANCHOR = datetime(2026, 3, 1, 0, 0, 7, tzinfo=UTC)
MADE: dict[str, Triggers] = {
    "quarters": (Cron(expression="*/15 * * * *"),),
    "each tenth second of an hour": (Cron(expression="*/10 * 2 * * *"),),
    "in the gap": (Cron(expression="30 2 * * *"), Cron(expression="15,45 1-3 * * *")),
    "midnight": (Daily(times=(time(0), time(23, 59, 59))),),
    "weekly": (Weekly(weekdays=(0, 6), times=(time(2, 30), time(3))),),
    "by seven minutes": (Every(span=7 * MINUTE, anchor=ANCHOR),),
    "by two days": (Every(span=2 * DAY, anchor=ANCHOR), On(source="deploy")),
    "to come": (Every(span=7 * HOUR, anchor=AUTUMN + 26 * HOUR), Daily(times=(time(4),))),
    "by a part of a second": (Every(span=7 * MINUTE, anchor=ANCHOR + 5 * TICK), Daily(times=(time(2),))),
    "several at once": (
        Cron(expression="0 */2 * * *"),
        Every(span=11 * MINUTE, anchor=ANCHOR),
        Every(span=22 * MINUTE, anchor=ANCHOR + 3 * DAY),
        Daily(times=(time(2),)),
    ),
    "with a single one": (Once(local=datetime(2026, 3, 29, 2, 30)), Daily(times=(time(2, 30),))),  # noqa: DTZ001
    "monthly": (Cron(expression="0 12 L * *"), Cron(expression="0 9 15W * mon#2")),
}
FROM: list[tuple[datetime, Gap, Fold]] = [
    (SPRING - 90 * MINUTE, "run", "first"),
    (SPRING - TICK, "skip", "second"),
    (AUTUMN - 90 * MINUTE, "run", "both"),
    (AUTUMN + 30 * MINUTE, "run", "second"),
]


@pytest.mark.parametrize("place", ["Europe/Berlin", "Australia/Lord_Howe"])
@pytest.mark.parametrize("name", MADE)
def test_a_walk_a_count_and_a_look_back_say_what_the_next_says_again_and_again(name: str, place: str) -> None:
    zone, made = zones.zone(place), MADE[name]
    most = 4 if name in ("monthly", "by two days") else 10
    for after, gap, fold in FROM:
        walked = list(islice(instants(made, zone, after, gap=gap, fold=fold), most))
        following, nexts = after, []
        for _ in range(most):
            found = asked.next_after(made, zone, following, gap=gap, fold=fold)
            if found is None:
                break
            nexts.append(found)
            following = found
        assert walked == nexts
        assert all(one < other for one, other in pairwise([after, *nexts]))
        for before, at in pairwise([*nexts][:8]):
            assert asked.last_at_or_before(made, zone, at - TICK, gap=gap, fold=fold) == before
            assert asked.last_at_or_before(made, zone, at, gap=gap, fold=fold) == at
        for number, at in enumerate(nexts, start=1):
            assert asked.count(made, zone, after, at, gap=gap, fold=fold) == number
            assert asked.count(made, zone, after, at - TICK, gap=gap, fold=fold) == number - 1


@pytest.mark.parametrize("day", range(0, 20, 3))
def test_counting_whole_days_is_adding_up_their_hours(day: int) -> None:
    zone, made = zones.zone("Europe/Berlin"), MADE["several at once"]
    since = AUTUMN - 10 * DAY + day * DAY
    hours = [since + hour * HOUR for hour in range(73)]
    parts = [asked.count(made, zone, one, other) for one, other in pairwise(hours)]
    assert asked.count(made, zone, since, hours[-1]) == sum(parts)
    assert asked.count(made, zone, hours[-1], since) == 0
    assert asked.count((), zone, since, hours[-1]) == 0


@pytest.mark.parametrize(
    ("text", "hours", "number"),
    [
        ("* * * * *", 24, 1440),
        ("* * * * * *", 24, 86_400),
        ("*/7 * * * *", 24, 9 * 24),
        ("0 9 * * *", 24 * 7, 7),
        ("0 9 * * mon-fri", 24 * 7, 5),
        ("15,45 1-3 * * *", 24, 6),
    ],
)
def test_a_day_and_a_week_have_so_many_instants(text: str, hours: int, number: int) -> None:
    monday = datetime(2026, 6, 1, tzinfo=UTC)
    trigger = (Cron(expression=text),)
    zone = zones.zone("Europe/Berlin")
    assert asked.count(trigger, zone, monday, monday + hours * HOUR) == number
    walked = list(islice(instants(trigger, zone, monday), 2000))
    within = [at for at in walked if at <= monday + hours * HOUR]
    assert len(within) == min(number, 2000)


def test_instants_end_where_the_triggers_do() -> None:
    zone = zones.zone("UTC")
    once = (Once(at=ANCHOR), Once(at=ANCHOR + SECOND))
    assert list(instants(once, zone, ANCHOR - SECOND)) == [ANCHOR, ANCHOR + SECOND]
    assert list(instants(once, zone, ANCHOR + SECOND)) == []
    assert list(instants((On(source="deploy"),), zone, ANCHOR)) == []
    last = (Every(span=timedelta(days=3653), anchor=datetime(9999, 1, 1, tzinfo=UTC)),)
    assert list(instants(last, zone, ANCHOR)) == [datetime(9999, 1, 1, tzinfo=UTC)]
