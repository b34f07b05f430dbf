"""The short way of planning one punctual occurrence says what the long way says, and is gone by what is alone."""

from dataclasses import replace
from datetime import datetime, timedelta
from itertools import islice
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from core_draws import bounds, rules, scenes
from core_values import HOUR, MINUTE, NINE, SECOND, TICK, every, task_of
from hypothesis import example, given, settings
from hypothesis import strategies as st

from duly.core.planning import one_punctual, plan, plan_at_length
from duly.core.schedule import dues
from duly.core.skips import Range
from duly.core.triggers import Cron, Daily, Trigger

UTC_ZONE = ZoneInfo("UTC")
lates = st.sampled_from([timedelta(0), TICK, SECOND, 29 * SECOND, 30 * SECOND, MINUTE, MINUTE + TICK, HOUR])
"""How long after an occurrence it is found; many are its grace to the microsecond, or just beyond it."""


@settings(max_examples=400, deadline=None)
@given(
    scene=scenes(),
    late=lates,
    nth=st.integers(0, 3),
    told_rules=rules,
    bound=bounds,
    back=st.sampled_from([0, 0, 0, 1]),
)
@example(
    scene=((Cron(expression="30 2 * * *"),), "Europe/Berlin", datetime.fromisoformat("2026-03-29T00:59:59+00:00")),
    late=timedelta(0),
    nth=0,
    told_rules={},
    bound=(None, None),
    back=0,
)
def test_the_short_way_plans_what_the_long_way_plans(
    scene: tuple[tuple[Trigger, ...], str, datetime],
    late: timedelta,
    nth: int,
    told_rules: dict[str, Any],
    bound: tuple[timedelta | None, timedelta | None],
    back: int,
) -> None:
    triggers, name, start = scene
    zone = ZoneInfo(name)
    low, high = (None if offset is None else start + offset for offset in bound)
    task = task_of(*triggers, zone=name, cursor=start, start=low, until=high, **told_rules)
    ahead = list(islice(dues(task.definition, zone, start), 4))
    if not ahead:
        assert one_punctual(task, zone, start + late) is None
        return
    place = min(nth, len(ahead) - 1)
    now = ahead[place] + late
    # From the occurrence before, as a task that is planned each time stands; or from further back.
    task = replace(task, planned_until=ahead[place - 1 - back] if place > back else start)
    short = one_punctual(task, zone, now)
    if short is not None:
        assert short == plan_at_length(task, zone, now)
        assert len(short.openings) == 1
    assert plan(task, zone, now) == plan_at_length(task, zone, now)


@pytest.mark.parametrize("late", [timedelta(0), TICK, 30 * SECOND])
def test_what_is_on_time_and_alone_goes_the_short_way(late: timedelta) -> None:
    """So that the test above compares something."""
    for trigger in (every(MINUTE), Cron(expression="* * * * *")):
        task = task_of(trigger, cursor=NINE)
        made = one_punctual(task, UTC_ZONE, NINE + MINUTE + late)
        assert made is not None
        assert made == plan_at_length(task, UTC_ZONE, NINE + MINUTE + late)
        assert [one.late_by for one in made.openings] == [late]


@pytest.mark.parametrize(
    ("now", "given"),
    [
        (NINE + MINUTE - TICK, {}),  # nothing is due
        (NINE + MINUTE + 30 * SECOND + TICK, {}),  # it is late
        (NINE + 2 * MINUTE, {}),  # there are two
        (NINE + MINUTE, {"times": 1}),
        (NINE + MINUTE, {"spread": 20 * SECOND}),
        (NINE + MINUTE, {"until": NINE + 30 * SECOND}),
    ],
)
def test_all_else_goes_the_long_way(now: datetime, given: dict[str, Any]) -> None:
    task = task_of(every(MINUTE), cursor=NINE, **given)
    assert one_punctual(task, UTC_ZONE, now) is None
    assert plan(task, UTC_ZONE, now) == plan_at_length(task, UTC_ZONE, now)


def test_what_a_person_skipped_is_asked_for_however_alone_it_is() -> None:
    task = task_of(Daily(times=(NINE.time(),)), cursor=NINE - HOUR)
    assert one_punctual(task, UTC_ZONE, NINE) is not None
    made = plan(task, UTC_ZONE, NINE, [Range(first=NINE, last=NINE, by="ann", note=None)])
    assert not made.openings
    assert [one.reason for one in made.stretches] == ["skipped_by_hand"]
