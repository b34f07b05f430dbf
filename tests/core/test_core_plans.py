"""Plans whole, with every figure behind a fate: what was found late by each policy, and what was skipped by hand."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from core_values import HOUR, MINUTE, NINE, SECOND, TICK, every, held, task_of

from duly.core import lifecycle
from duly.core.catching_up import reached_from
from duly.core.fates import Opening, Stretch
from duly.core.planning import Plan, plan, times_left
from duly.core.retrying import retried, wait
from duly.core.run import Step
from duly.core.skips import Range
from duly.core.spreading import start_of
from duly.core.task import Rules, Task

ZONE = ZoneInfo("UTC")


def at(hours: float) -> datetime:
    return NINE + hours * HOUR


def judge(now: datetime, *skipped: Range, made: dict[str, Any] | None = None, **rules: Any) -> Plan:
    task = replace(task_of(every(HOUR), **rules), **(made or {}))
    return plan(task, ZONE, now, skipped)


def caught_up(due: datetime, now: datetime, *, queues: bool = False) -> Opening:
    return Opening(due_at=due, start_at=due, opened_by="catch_up", late_by=now - due, queues=queues)


def stretch(first: float, last: float, count: int, reason: str, by: str | None = None, **details: Any) -> Stretch:
    return Stretch(first=at(first), last=at(last), count=count, reason=reason, by=by, details=details)


LATE = at(5) + 20 * MINUTE


@pytest.mark.parametrize(("policy", "reason"), [("skip", "missed_skip"), ("offer", "missed_offer")])
def test_what_is_skipped_or_offered_is_told_with_the_lateness_of_its_newest_and_the_grace(
    policy: str, reason: str
) -> None:
    assert judge(LATE, on_missed=policy) == Plan(
        openings=(),
        stretches=(stretch(1, 5, 5, reason, late_by_s=1200.0, grace_s=60.0),),
        planned_until=at(5),
        next_due_at=at(6),
        next_start_at=at(6),
        done=False,
    )
    written = judge(LATE, on_missed=policy, grace=5 * MINUTE)
    assert written.stretches == (stretch(1, 5, 5, reason, late_by_s=1200.0, grace_s=300.0),)


def test_the_newest_runs_for_all_and_the_others_name_it() -> None:
    made = judge(LATE)
    assert made.openings == (caught_up(at(5), LATE),)
    assert made.stretches == (stretch(1, 4, 4, "coalesced", into="at:2026-03-02T14:00:00Z"),)
    alone = judge(at(1) + 20 * MINUTE)
    assert (alone.openings, alone.stretches) == ((caught_up(at(1), at(1) + 20 * MINUTE),), ())


def test_what_all_is_too_old_is_told_with_the_age_that_is_allowed() -> None:
    made = judge(LATE, max_age=10 * MINUTE)
    assert (made.openings, made.stretches) == ((), (stretch(1, 5, 5, "stale", late_by_s=1200.0, max_age_s=600.0),))


def test_running_all_takes_the_oldest_that_are_fresh_and_each_waits_for_its_seat() -> None:
    made = judge(LATE, on_missed="run_all", max_age=2 * HOUR + 20 * MINUTE, at_most=2)
    assert made.openings == (caught_up(at(3), LATE, queues=True), caught_up(at(4), LATE, queues=True))
    assert made.stretches == (
        stretch(1, 2, 2, "stale", late_by_s=3 * 3600.0 + 1200.0, max_age_s=2 * 3600.0 + 1200.0),
        stretch(5, 5, 1, "too_many", late_by_s=1200.0, at_most=2),
    )


def test_running_all_of_a_few_leaves_nothing() -> None:
    made = judge(LATE, on_missed="run_all")
    assert made.openings == tuple(caught_up(at(hour), LATE, queues=True) for hour in (1, 2, 3, 4, 5))
    assert made.stretches == ()


def test_running_all_where_all_is_too_old_runs_none_and_the_punctual_one_queues_for_nobody() -> None:
    now = at(5) + SECOND
    made = judge(now, on_missed="run_all", max_age=timedelta(0))
    assert made.openings == (Opening(due_at=at(5), start_at=at(5), opened_by="schedule", late_by=SECOND),)
    assert made.stretches == (stretch(1, 4, 4, "stale", late_by_s=3601.0, max_age_s=0.0),)


def test_running_all_has_room_for_so_many_over_all_its_stretches() -> None:
    by_hand = Range(first=at(3), last=at(3), by="ann", note="so")
    made = judge(LATE, by_hand, on_missed="run_all", at_most=3)
    assert [one.due_at for one in made.openings] == [at(1), at(2), at(4)]
    assert made.stretches == (
        stretch(3, 3, 1, "skipped_by_hand", by="ann", note="so"),
        stretch(5, 5, 1, "too_many", late_by_s=1200.0, at_most=3),
    )
    full = judge(LATE, by_hand, on_missed="run_all", at_most=2)
    assert full.stretches[1:] == (stretch(4, 5, 2, "too_many", late_by_s=1200.0, at_most=2),)


def test_what_was_skipped_beforehand_keeps_who_did_it_and_their_note() -> None:
    noted = Range(first=at(2), last=at(3), by="ann", note="audit")
    bare = Range(first=at(5), last=at(7), by="bob", note=None)
    made = judge(LATE, noted, bare)
    assert made.stretches == (
        stretch(1, 1, 1, "coalesced", into="at:2026-03-02T13:00:00Z"),
        stretch(2, 3, 2, "skipped_by_hand", by="ann", note="audit"),
        stretch(5, 5, 1, "skipped_by_hand", by="bob"),
    )
    assert made.openings == (caught_up(at(4), LATE),)
    assert (made.planned_until, made.next_due_at) == (at(5), at(6))
    nothing = judge(at(2) + SECOND, Range(first=at(1) + TICK, last=at(2) - TICK, by="ann", note=None))
    assert [one.due_at for one in nothing.openings] == [at(2)]
    assert [one.reason for one in nothing.stretches] == ["coalesced"]


def test_a_task_with_times_left_is_done_at_the_last_of_them_and_owes_nothing_behind_it() -> None:
    made = judge(LATE, made={"scheduled_runs": 3}, times=5, on_missed="run_all")
    assert [one.due_at for one in made.openings] == [at(1), at(2)]
    assert made.stretches == ()
    assert (made.planned_until, made.next_due_at, made.next_start_at, made.done) == (at(2), None, None, True)
    more = judge(at(2) + SECOND, made={"scheduled_runs": 3}, times=6, on_missed="run_all")
    assert (len(more.openings), more.done, more.next_due_at) == (2, False, at(3))


def test_a_task_without_times_left_plans_nothing_more() -> None:
    made = judge(LATE, made={"scheduled_runs": 7}, times=5)
    assert made == Plan(openings=(), stretches=(), planned_until=NINE, next_due_at=None, next_start_at=None, done=True)
    task = task_of(every(HOUR), times=5)
    assert times_left(replace(task, scheduled_runs=7)) == 0
    assert times_left(replace(task, scheduled_runs=4)) == 1
    assert times_left(task_of(every(HOUR))) is None


def test_the_edge_of_an_age_is_so_long_ago_and_never_before_the_calendar() -> None:
    task = task_of(every(HOUR))
    assert reached_from(task, ZONE, LATE, HOUR) == LATE - HOUR
    first = datetime(1, 1, 3, tzinfo=NINE.tzinfo)
    assert reached_from(task, ZONE, LATE, timedelta(days=3_000_000)) == first
    assert reached_from(task, ZONE, first + HOUR, HOUR) == first
    assert reached_from(task, ZONE, first + HOUR, HOUR - TICK) == first + TICK


def test_with_a_spread_the_edge_takes_in_the_last_occurrence_that_starts_behind_it() -> None:
    task = task_of(every(HOUR), spread=50 * MINUTE)
    start = start_of(task.id, task.definition, ZONE, at(3))
    assert start > at(3) + SECOND
    assert reached_from(task, ZONE, start + HOUR, HOUR) == at(3)
    assert reached_from(task, ZONE, start + HOUR + TICK, HOUR) == start + TICK


def spread_task() -> Task:
    return task_of(every(HOUR), spread=50 * MINUTE, on_missed="run_all", max_age=90 * MINUTE)


def test_lateness_counts_from_the_moment_that_the_spread_gives() -> None:
    task = spread_task()
    now = at(4) + 54 * MINUTE
    made = plan(task, ZONE, now)
    starts = {hour: start_of(task.id, task.definition, ZONE, at(hour)) for hour in (1, 2, 3, 4)}
    assert [(one.due_at, one.start_at, one.late_by) for one in made.openings] == [
        (at(hour), starts[hour], now - starts[hour]) for hour in (3, 4)
    ]
    (stale,) = made.stretches
    assert (stale.last, stale.reason) == (at(2), "stale")
    assert stale.details["late_by_s"] == (now - starts[2]).total_seconds()
    assert now - at(3) > 90 * MINUTE > now - starts[3]
    assert made.next_start_at == start_of(task.id, task.definition, ZONE, at(5))


def failed(rules: Rules, *, retries: int = 0, draw: float = 0.0, **more: Any) -> Step:
    run, now = held(retries=retries), at(1)
    settled = lifecycle.settle(run, "failed", now=now, reason="exit_status", exit_code=1)
    return retried(settled, rules, ended_at=now, draw=draw, **more)


def test_a_retry_that_would_be_too_late_ends_as_stale_with_the_figures() -> None:
    step = failed(Rules(retries=2, retry_after=MINUTE, max_age=30 * SECOND))
    assert (step.after.state, step.after.outcome, step.after.reason) == ("ended", "failed", "stale")
    (entry,) = step.entries
    assert (entry.kind, entry.reason) == ("ended", "stale")
    assert entry.details == {
        "outcome": "failed",
        "exit_code": 1,
        "fence": 1,
        "refused": "stale",
        "failed_by": "exit_status",
        "not_before": "2026-03-02T10:01:00Z",
        "idle_s": 60.0,
        "max_age_s": 30.0,
    }


def test_a_retry_that_its_task_forbids_ends_and_says_by_what() -> None:
    (entry,) = failed(Rules(retries=2), hindered="paused").entries
    assert entry.details == {"outcome": "failed", "exit_code": 1, "fence": 1, "refused": "paused"}
    late = failed(Rules(retries=2, max_age=timedelta(0)), hindered="paused")
    assert late.after.reason == "exit_status", "what its task forbids is told before how late it would be"


def test_the_last_of_several_attempts_says_how_often_it_was_tried_again() -> None:
    (entry,) = failed(Rules(retries=2), retries=2).entries
    assert entry.details == {"outcome": "failed", "exit_code": 1, "fence": 1, "retries": 2, "of": 2}
    (first,) = failed(Rules()).entries
    assert first.details == {"outcome": "failed", "exit_code": 1, "fence": 1}


def test_an_attempt_without_an_error_is_told_without_one() -> None:
    (entry,) = failed(Rules(retries=2)).entries
    assert "error" not in entry.details


@pytest.mark.parametrize(
    ("retries", "draw", "seconds"),
    [
        (0, 0.0, 30),
        (0, 1.0, 36),
        (0, 0.5, 33),
        (1, 0.0, 60),
        (1, 1.0, 72),
        (2, 0.0, 100),
        (2, 1.0, 120),
        (9, 0.0, 100),
        (9, 1.0, 120),
    ],
)
def test_each_wait_is_twice_the_last_up_to_the_longest_and_chance_adds_a_fifth(
    retries: int, draw: float, seconds: float
) -> None:
    rules = Rules(retries=9, retry_after=30 * SECOND, retry_up_to=120 * SECOND)
    assert wait(rules, retries, draw) == timedelta(seconds=seconds)
