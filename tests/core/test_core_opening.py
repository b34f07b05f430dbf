"""The late table at opening, by examples at its edges."""

import sys
from collections.abc import Callable
from datetime import datetime, timedelta
from types import FrameType
from zoneinfo import ZoneInfo

import pytest
from core_values import DAY, HOUR, MINUTE, NINE, SECOND, TICK, every, task_of

from duly.core.planning import OPENINGS_MOST, Plan, first_due, owed, plan
from duly.core.task import Task
from duly.core.triggers import Cron, Daily, Once, next_after

UTC_ZONE = ZoneInfo("UTC")
BERLIN = ZoneInfo("Europe/Berlin")


def judge(task: Task, now: datetime) -> Plan:
    return plan(task, ZoneInfo(task.definition.zone), now)


def opened(made: Plan) -> list[tuple[datetime, str]]:
    return [(one.due_at, one.opened_by) for one in made.openings]


def counted(made: Plan) -> tuple[datetime, datetime, int, str] | None:
    assert len(made.stretches) <= 1
    return next(((one.first, one.last, one.count, one.reason) for one in made.stretches), None)


@pytest.mark.parametrize(
    ("period", "grace"),
    [
        (10 * SECOND, 5 * SECOND),  # half the distance to the next
        (MINUTE, 30 * SECOND),
        (2 * MINUTE, MINUTE),
        (DAY, MINUTE),  # never more than a minute
    ],
)
@pytest.mark.parametrize("policy", ["run", "skip"])
def test_exactly_the_default_grace_is_punctual_and_a_microsecond_more_is_late(
    period: timedelta, grace: timedelta, policy: str
) -> None:
    task = task_of(every(period), on_missed=policy)
    due = NINE + period

    on_time = judge(task, due + grace)
    assert opened(on_time) == [(due, "schedule")]
    assert on_time.openings[0].late_by == grace
    assert counted(on_time) is None

    late = judge(task, due + grace + TICK)
    if policy == "run":
        assert opened(late) == [(due, "catch_up")]
        assert counted(late) is None
    else:
        assert opened(late) == []
        assert counted(late) == (due, due, 1, "missed_skip")
    assert late.planned_until == due


@pytest.mark.parametrize("grace", [timedelta(0), TICK, 7 * SECOND, 3 * HOUR])
def test_a_written_grace_is_punctual_to_the_microsecond_and_no_longer(grace: timedelta) -> None:
    task = task_of(Once(at=NINE + DAY), grace=grace, on_missed="skip")
    due = NINE + DAY
    assert opened(judge(task, due + grace)) == [(due, "schedule")]
    late = judge(task, due + grace + TICK)
    assert opened(late) == []
    assert counted(late) == (due, due, 1, "missed_skip")


@pytest.mark.parametrize("age", [HOUR, 6 * HOUR, 10 * MINUTE])
def test_exactly_max_age_runs_and_a_microsecond_more_is_stale(age: timedelta) -> None:
    task = task_of(every(DAY), max_age=age)
    due = NINE + DAY
    assert opened(judge(task, due + age)) == [(due, "catch_up")]
    stale = judge(task, due + age + TICK)
    assert opened(stale) == []
    assert counted(stale) == (due, due, 1, "stale")
    assert stale.next_due_at == due + DAY


def test_max_age_is_no_ceiling_over_what_is_punctual() -> None:
    task = task_of(every(DAY), max_age=timedelta(0), grace=HOUR)
    assert opened(judge(task, NINE + DAY + HOUR)) == [(NINE + DAY, "schedule")]


def test_an_instant_equal_to_now_is_due_and_one_equal_to_the_cursor_is_not() -> None:
    task = task_of(every(HOUR))
    assert opened(judge(task, NINE)) == []
    assert opened(judge(task, NINE + HOUR - TICK)) == []
    assert opened(judge(task, NINE + HOUR)) == [(NINE + HOUR, "schedule")]


def test_of_many_missed_the_newest_runs_and_the_older_ones_are_one_counted_stretch() -> None:
    task = task_of(every(HOUR))
    made = judge(task, NINE + 5 * HOUR + 20 * MINUTE)
    assert opened(made) == [(NINE + 5 * HOUR, "catch_up")]
    assert counted(made) == (NINE + HOUR, NINE + 4 * HOUR, 4, "coalesced")
    assert made.planned_until == NINE + 5 * HOUR
    assert made.next_due_at == NINE + 6 * HOUR


def test_missed_ones_before_a_punctual_one_are_coalesced_into_it_under_run_and_skipped_under_skip() -> None:
    now = NINE + 5 * HOUR + SECOND
    run = judge(task_of(every(HOUR)), now)
    assert opened(run) == [(NINE + 5 * HOUR, "schedule")]
    assert counted(run) == (NINE + HOUR, NINE + 4 * HOUR, 4, "coalesced")
    skip = judge(task_of(every(HOUR), on_missed="skip"), now)
    assert opened(skip) == [(NINE + 5 * HOUR, "schedule")]
    assert counted(skip) == (NINE + HOUR, NINE + 4 * HOUR, 4, "missed_skip")


def test_all_beyond_max_age_are_one_stale_stretch_and_the_next_is_armed() -> None:
    task = task_of(every(HOUR), max_age=10 * MINUTE)
    made = judge(task, NINE + 3 * DAY + 30 * MINUTE)
    assert opened(made) == []
    assert counted(made) == (NINE + HOUR, NINE + 72 * HOUR, 72, "stale")
    assert made.next_due_at == NINE + 73 * HOUR
    assert not made.done


@pytest.mark.parametrize("policy", ["run", "skip"])
def test_neither_policy_keeps_back_a_punctual_start(policy: str) -> None:
    task = task_of(every(MINUTE), on_missed=policy)
    assert opened(judge(task, NINE + MINUTE)) == [(NINE + MINUTE, "schedule")]


def test_a_grace_longer_than_the_period_opens_every_one_within_it() -> None:
    task = task_of(every(MINUTE), grace=10 * MINUTE, on_missed="skip")
    now = NINE + 30 * MINUTE
    made = judge(task, now)
    assert opened(made) == [(NINE + (20 + n) * MINUTE, "schedule") for n in range(11)]
    assert counted(made) == (NINE + MINUTE, NINE + 19 * MINUTE, 19, "missed_skip")
    assert made.next_due_at == NINE + 31 * MINUTE


def test_a_grace_longer_than_the_period_ends_at_its_microsecond() -> None:
    task = task_of(every(MINUTE), grace=10 * MINUTE)
    made = judge(task, NINE + 30 * MINUTE + TICK)
    assert opened(made)[0] == (NINE + 21 * MINUTE, "schedule")
    assert counted(made) == (NINE + MINUTE, NINE + 20 * MINUTE, 20, "coalesced")


def test_more_punctual_ones_than_a_plan_may_open_are_opened_by_the_next_plans() -> None:
    count = 2 * OPENINGS_MOST + 7
    task = task_of(every(SECOND), grace=HOUR)
    now = NINE + count * SECOND
    seen: list[datetime] = []
    plans = 0
    cursor = NINE
    while True:
        made = judge(task_of(every(SECOND), grace=HOUR, cursor=cursor), now)
        assert len(made.openings) <= OPENINGS_MOST
        assert counted(made) is None
        if not made.openings:
            break
        plans += 1
        seen += [one.due_at for one in made.openings]
        cursor = made.planned_until
        assert cursor == seen[-1]
    assert plans == 3
    assert seen == [NINE + n * SECOND for n in range(1, count + 1)]
    first = judge(task, now)
    assert first.next_due_at is not None
    assert first.next_due_at <= now, "the rest is due now, so that the planner comes back at once"


@pytest.mark.parametrize("years", [30, 9000])
def test_a_grace_that_reaches_before_the_calendar_is_all_of_the_past(years: int) -> None:
    task = task_of(every(HOUR), grace=timedelta(days=365 * years))
    assert len(judge(task, NINE + 3 * HOUR).openings) == 3


@pytest.mark.parametrize("policy", ["run", "skip"])
def test_a_once_is_done_with_its_fate_whatever_that_is(policy: str) -> None:
    at = NINE + HOUR
    for now, expected in [
        (at, [(at, "schedule")]),
        (at + HOUR, [(at, "catch_up")] if policy == "run" else []),
        (at + DAY, []),
    ]:
        made = judge(task_of(Once(at=at), on_missed=policy), now)
        assert opened(made) == expected
        assert made.done
        assert made.next_due_at is None
        assert len(made.openings) + sum(one.count for one in made.stretches) == 1
        again = judge(task_of(Once(at=at), on_missed=policy, cursor=made.planned_until), now + DAY)
        assert (again.openings, again.stretches, again.done) == ((), (), True)


def test_a_once_in_the_gap_of_a_zone_is_one_occurrence() -> None:
    task = task_of(Once(local=datetime(2026, 3, 29, 2, 30)), zone="Europe/Berlin", on_missed="run")  # noqa: DTZ001
    due = datetime(2026, 3, 29, 1, 0, tzinfo=NINE.tzinfo)
    made = judge(task, due)
    assert opened(made) == [(due, "schedule")]
    assert made.done


def test_equal_instants_of_several_triggers_are_one_occurrence_and_counted_once() -> None:
    triggers = (every(HOUR), Cron(expression="0 * * * *"), Daily(times=(NINE.replace(hour=12).time(),)))
    noon = NINE + 3 * HOUR
    assert opened(judge(task_of(*triggers), noon)) == [(noon, "schedule")]
    made = judge(task_of(*triggers, on_missed="skip"), NINE + DAY + 20 * MINUTE)
    assert counted(made) == (NINE + HOUR, NINE + DAY, 24, "missed_skip")


def test_triggers_a_microsecond_apart_are_two_occurrences() -> None:
    triggers = (Once(at=NINE + HOUR), Once(at=NINE + HOUR + TICK))
    made = judge(task_of(*triggers, on_missed="skip"), NINE + 5 * HOUR)
    assert counted(made) == (NINE + HOUR, NINE + HOUR + TICK, 2, "missed_skip")
    punctual = judge(task_of(*triggers, grace=MINUTE), NINE + HOUR + TICK)
    assert opened(punctual) == [(NINE + HOUR, "schedule"), (NINE + HOUR + TICK, "schedule")]


def test_a_task_without_triggers_is_never_due_and_never_done() -> None:
    made = judge(task_of(), NINE + 1000 * DAY)
    assert (made.openings, made.stretches, made.next_due_at, made.done) == ((), (), None, False)
    assert first_due(task_of().definition, UTC_ZONE, NINE) is None
    assert owed(task_of().definition, UTC_ZONE, NINE, NINE + DAY) is None


def test_a_clock_stepped_back_opens_nothing_and_moves_no_cursor() -> None:
    cursor = NINE + DAY
    made = judge(task_of(every(HOUR), cursor=cursor), NINE + 2 * HOUR)
    assert (made.openings, made.stretches) == ((), ())
    assert made.planned_until == cursor
    assert made.next_due_at == cursor + HOUR
    assert not made.done


def test_a_clock_stepped_back_does_not_make_a_task_done_that_has_more_to_come() -> None:
    task = task_of(Once(at=NINE + 3 * DAY), cursor=NINE + DAY)
    made = judge(task, NINE)
    assert not made.done
    assert made.next_due_at == NINE + 3 * DAY


def test_after_a_step_back_and_forth_nothing_runs_twice() -> None:
    seen: list[datetime] = []
    cursor = NINE
    for now in [2 * HOUR, HOUR, timedelta(0), 90 * MINUTE, 2 * HOUR, 3 * HOUR, 2 * HOUR + MINUTE, 4 * HOUR]:
        made = judge(task_of(every(HOUR), cursor=cursor), NINE + now)
        seen += [one.due_at for one in made.openings]
        seen += [one.first for one in made.stretches]
        assert made.planned_until >= cursor
        cursor = made.planned_until
    assert sorted(seen) == [NINE + n * HOUR for n in range(1, 5)]
    assert len(set(seen)) == len(seen)


def calls_of(act: Callable[[], object]) -> int:
    """Count the Python calls that an act costs: work, whatever the machine does beside it."""
    count = 0

    def note(_frame: FrameType, event: str, _arg: object) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        act()
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize("policy", ["run", "skip"])
@pytest.mark.parametrize("age", [timedelta(hours=1), timedelta(days=3000)])
def test_thirty_days_of_minutes_are_judged_without_walking_them(policy: str, age: timedelta) -> None:
    task = task_of(Cron(expression="* * * * *"), on_missed=policy, max_age=age)
    now = NINE + 30 * DAY + 29 * SECOND
    made = judge(task, now)
    total = len(made.openings) + sum(one.count for one in made.stretches)
    assert total == 30 * 24 * 60
    (stretch,) = made.stretches
    assert stretch.first == NINE + MINUTE
    assert len(made.openings) == 1, "the newest is punctual"
    assert calls_of(lambda: judge(task, now)) < 30 * 60


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "Australia/Lord_Howe"])
def test_three_years_of_seconds_are_judged_without_walking_them(zone: str) -> None:
    days = 3 * 365
    task = task_of(Cron(expression="* * * * * *"), zone=zone, on_missed="skip")
    now = NINE + days * DAY
    made = judge(task, now)
    (stretch,) = made.stretches
    assert len(made.openings) == 1
    assert stretch.count + 1 == days * 86_400
    assert calls_of(lambda: judge(task, now)) < days * 60


def test_a_plan_costs_the_same_for_two_missed_intervals_as_for_two_million() -> None:
    task = task_of(every(SECOND), on_missed="skip")
    few = calls_of(lambda: judge(task, NINE + 2 * SECOND))
    many = calls_of(lambda: judge(task, NINE + 2_000_000 * SECOND))
    assert many <= few + 10


def test_the_fates_around_the_autumn_fold_follow_real_minutes() -> None:
    cursor = datetime(2026, 10, 25, 0, 30, tzinfo=NINE.tzinfo)  # 02:30 summer time, the fold at 01:00 UTC
    task = task_of(Cron(expression="*/15 * * * *"), zone="Europe/Berlin", cursor=cursor, on_missed="skip")
    made = judge(task, cursor + HOUR + 14 * MINUTE)
    assert counted(made) == (cursor + 15 * MINUTE, cursor + HOUR, 4, "missed_skip")


def test_what_is_owed_counts_from_after_the_cursor_up_to_and_with_the_end() -> None:
    definition = task_of(every(HOUR)).definition
    stretch = owed(definition, UTC_ZONE, NINE, NINE + 2 * HOUR)
    assert stretch is not None
    assert (stretch.first, stretch.last, stretch.count) == (NINE + HOUR, NINE + 2 * HOUR, 2)
    assert owed(definition, UTC_ZONE, NINE, NINE + HOUR - TICK) is None
    assert owed(definition, UTC_ZONE, NINE + HOUR, NINE) is None


def test_the_first_due_of_a_new_task_is_strictly_after_its_cursor() -> None:
    definition = task_of(Daily(times=(NINE.time(),))).definition
    assert first_due(definition, UTC_ZONE, NINE) == NINE + DAY
    assert first_due(definition, UTC_ZONE, NINE - TICK) == NINE


def test_the_longest_timers_are_not_due_early() -> None:
    at = NINE + 400 * DAY
    task = task_of(Once(at=at))
    for days in (24, 25, 50, 399):
        made = judge(task, NINE + days * DAY)
        assert made.openings == ()
        assert made.next_due_at == at
    assert next_after(task.definition.triggers, BERLIN, NINE) == at
