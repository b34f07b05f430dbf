"""New zone data: no local time has two fates, none is lost that the new data leave ahead, real time goes on."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from core_values import DAY, HOUR, MINUTE, NINE, every, task_of
from hypothesis import example, given
from hypothesis import strategies as st

from duly.core.planning import plan
from duly.core.rezoning import cursor_by, wall_of
from duly.core.task import Task
from duly.core.triggers import Cron, Daily, Once
from zone_maker import TOWN, town

WAS = town(3 * HOUR)
MORNING = datetime(2026, 3, 2, 6, tzinfo=UTC)
"""09:00 in town, by the data as they were."""
AT_NINE = Daily(times=(time(9),))


def at(zone: ZoneInfo, task: Task) -> Task:
    """The task planned at this zone's data up to its morning at nine."""
    made = plan(task, zone, MORNING)
    return replace(task, planned_until=made.planned_until, planned_wall=wall_of(made.planned_until, zone))


def now_by(offset: timedelta, since: datetime = MORNING - 10 * DAY) -> ZoneInfo:
    return town(3 * HOUR, [(since, offset)])


@pytest.mark.parametrize("hours", [0, 1, 2, 2.5])
def test_a_local_time_that_ran_does_not_run_again_where_it_comes_later_by_new_data(hours: float) -> None:
    task = at(WAS, task_of(AT_NINE, zone=TOWN, cursor=MORNING - DAY))
    new = now_by(timedelta(hours=hours))
    later = MORNING + 3 * HOUR - timedelta(hours=hours)
    assert plan(task, new, later).openings[0].due_at == later, "without the wall it would run at its new instant"
    moved = replace(task, planned_until=cursor_by(task, new))
    assert moved.planned_until == later
    assert plan(moved, new, later).openings == ()
    assert plan(moved, new, later).next_due_at == later + DAY


@pytest.mark.parametrize("hours", [3, 4, 9, 14])
def test_a_local_time_that_ran_does_not_run_again_where_it_came_earlier_by_new_data(hours: int) -> None:
    task = at(WAS, task_of(AT_NINE, zone=TOWN, cursor=MORNING - DAY))
    new = now_by(timedelta(hours=hours))
    assert cursor_by(task, new) == task.planned_until, "the cursor never moves back"
    following = plan(task, new, MORNING).next_due_at
    assert following == MORNING + 3 * HOUR - timedelta(hours=hours) + DAY


def test_a_local_time_that_was_not_planned_yet_keeps_its_run() -> None:
    task = at(WAS, task_of(Daily(times=(time(9), time(9, 30))), zone=TOWN, cursor=MORNING - DAY))
    new = now_by(2 * HOUR)
    moved = replace(task, planned_until=cursor_by(task, new))
    assert plan(moved, new, moved.planned_until).next_due_at == MORNING + HOUR + 30 * MINUTE


def test_a_new_task_that_has_planned_nothing_yet_goes_by_its_cursor_alone() -> None:
    """Made at 09:00 by the old data, which was 08:00 in truth: half past eight is still to come."""
    task = task_of(Daily(times=(time(8, 30),)), zone=TOWN, cursor=MORNING)
    new = now_by(2 * HOUR)
    assert cursor_by(task, new) == MORNING
    assert plan(task, new, MORNING).next_due_at == MORNING + 30 * MINUTE


@pytest.mark.parametrize("trigger", [every(15 * MINUTE, NINE - DAY), Cron(expression="*/15 * * * *")])
def test_what_follows_real_time_goes_on_from_the_cursor(trigger: object) -> None:
    task = at(WAS, task_of(trigger, zone=TOWN, cursor=MORNING - HOUR))  # type: ignore[arg-type]
    new = now_by(2 * HOUR)
    assert cursor_by(task, new) == MORNING
    assert plan(task, new, MORNING).next_due_at == MORNING + 15 * MINUTE


def test_beside_a_local_time_what_follows_real_time_is_passed_over_no_farther_than_needed() -> None:
    triggers = (AT_NINE, Cron(expression="*/15 * * * *"))
    task = task_of(*triggers, zone=TOWN, cursor=MORNING - HOUR)
    made = plan(task, WAS, MORNING + 20 * MINUTE)
    task = replace(task, planned_until=made.planned_until, planned_wall=wall_of(made.planned_until, WAS))
    assert task.planned_wall is not None
    assert task.planned_wall.startswith("2026-03-02T09:15:00")
    assert cursor_by(task, now_by(2 * HOUR)) == MORNING + HOUR, "to nine, which ran, and not to a quarter past"


def test_the_wall_of_another_zone_says_nothing_about_this_one() -> None:
    task = at(WAS, task_of(AT_NINE, zone=TOWN, cursor=MORNING - DAY))
    moved = replace(task, definition=replace(task.definition, zone="Europe/Berlin"))
    assert cursor_by(moved, ZoneInfo("Europe/Berlin")) == task.planned_until


def test_a_time_that_falls_into_a_gap_by_new_data_has_run_where_its_gap_ends() -> None:
    """The clock goes from 08:30 to 09:30 by the new data: nine o'clock comes at 09:30, and has run."""
    task = at(WAS, task_of(AT_NINE, zone=TOWN, cursor=MORNING - DAY))
    change = MORNING + HOUR
    new = town(3 * HOUR, [(MORNING - DAY, timedelta(hours=1, minutes=30)), (change, timedelta(hours=2, minutes=30))])
    assert change.astimezone(new).time() == time(9, 30)
    moved = replace(task, planned_until=cursor_by(task, new))
    assert moved.planned_until == change
    assert plan(moved, new, change).openings == ()


def test_of_two_passes_by_new_data_the_later_one_does_not_run_either() -> None:
    task = at(WAS, task_of(AT_NINE, zone=TOWN, cursor=MORNING - DAY, fold="both"))
    new = town(3 * HOUR, [(MORNING - DAY, HOUR), (MORNING + 2 * HOUR + 30 * MINUTE, timedelta(0))])
    passes = (MORNING + 2 * HOUR, MORNING + 3 * HOUR)
    assert [one.astimezone(new).time() for one in passes] == [time(9), time(9)]
    moved = replace(task, planned_until=cursor_by(task, new))
    assert moved.planned_until == MORNING + 3 * HOUR
    assert plan(moved, new, MORNING + 3 * HOUR).openings == ()


def test_a_once_that_ran_stays_done_whatever_the_data_say() -> None:
    local = datetime(2026, 3, 2, 9)  # noqa: DTZ001
    task = at(WAS, task_of(Once(local=local), zone=TOWN, cursor=MORNING - DAY))
    new = now_by(HOUR)
    moved = replace(task, planned_until=cursor_by(task, new))
    assert plan(moved, new, MORNING + 2 * HOUR).done


@pytest.mark.parametrize("instant", [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, tzinfo=UTC)])
def test_at_the_ends_of_the_calendar_there_may_be_no_wall(instant: datetime) -> None:
    ahead, behind = town(3 * HOUR), town(-3 * HOUR)
    assert [wall is None for wall in (wall_of(instant, ahead), wall_of(instant, behind))].count(True) == 1


offsets = st.integers(-48, 56).map(lambda quarters: timedelta(minutes=15 * quarters))
lives = st.lists(st.tuples(offsets, st.integers(0, 40)), min_size=1, max_size=4)
clocks = st.lists(st.integers(0, 47), min_size=1, max_size=4, unique=True)


@given(first=offsets, life=lives, halves=clocks)
@example(first=3 * HOUR, life=[(2 * HOUR, 0)], halves=[18])
@example(first=3 * HOUR, life=[(2 * HOUR, 1), (3 * HOUR, 1), (2 * HOUR, 1)], halves=[18, 19])
def test_over_any_changes_of_the_data_no_local_time_of_a_day_runs_twice(
    first: timedelta, life: list[tuple[timedelta, int]], halves: list[int]
) -> None:
    """Each data say: the town always was so far ahead. Between them the task is planned for some half hours."""
    times = tuple(time(half // 2, half % 2 * 30) for half in sorted(halves))
    task = task_of(Daily(times=times), zone=TOWN, cursor=MORNING, grace=timedelta(0), on_missed="run_all", at_most=1000)
    task = replace(task, definition=replace(task.definition, rules=replace(task.definition.rules, max_age=400 * DAY)))
    seen: Counter[datetime] = Counter()
    now, zone = MORNING, town(first)
    for offset, ahead in [*life, (life[-1][0], 60)]:
        now += ahead * 30 * MINUTE
        made = plan(task, zone, now)
        seen.update(one.due_at.astimezone(zone).replace(tzinfo=None) for one in made.openings)
        if made.planned_until > task.planned_until:
            task = replace(task, planned_until=made.planned_until, planned_wall=wall_of(made.planned_until, zone))
        zone = town(offset)
        cursor = cursor_by(task, zone)
        assert cursor >= task.planned_until
        task = replace(task, planned_until=cursor)
    assert max(seen.values(), default=1) == 1, seen
