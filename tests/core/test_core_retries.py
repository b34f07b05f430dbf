"""Retries: which attempts are tried again, after how long, until when; and what the story tells of them."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from core_values import DAY, HOUR, MINUTE, NINE, SECOND, TICK, held, waiting
from hypothesis import given, settings
from hypothesis import strategies as st
from test_core_life import OPENED, claim, interrupt

from duly.core import lifecycle, reasons
from duly.core.ledger import attempts, fold
from duly.core.retrying import AGAIN, backs_off, retried, wait
from duly.core.run import Entry, Run, RunOutcome, Step
from duly.core.task import Rules

THREE = Rules(retries=3)
REASONS = {"failed": "exit_status", "timed_out": "timeout", "cancelled": "cancelled_by_hand", "succeeded": None}


def end(
    run: Run,
    outcome: RunOutcome = "failed",
    rules: Rules = THREE,
    *,
    now: datetime = NINE + MINUTE,
    ended_at: datetime | None = None,
    draw: float = 0.0,
    hindered: str | None = None,
    **more: Any,
) -> Step:
    told: dict[str, Any] = {"reason": REASONS[outcome], "exit_code": 1 if outcome == "failed" else None} | more
    settled = lifecycle.settle(run, outcome, now=now, worked_until=ended_at, **told)
    return retried(settled, rules, ended_at=ended_at or now, draw=draw, hindered=hindered)


@pytest.mark.parametrize(
    ("outcome", "retries", "made", "expected"),
    [
        ("failed", 0, 0, "ended"),
        ("failed", 1, 0, "waiting"),
        ("failed", 1, 1, "ended"),
        ("failed", 3, 2, "waiting"),
        ("failed", 3, 3, "ended"),
        ("failed", 3, 7, "ended"),  # the rule was lowered since
        ("timed_out", 1, 0, "waiting"),
        ("timed_out", 1, 1, "ended"),
        ("succeeded", 3, 0, "ended"),
        ("cancelled", 3, 0, "ended"),
    ],
)
def test_what_failed_or_ran_too_long_is_tried_again_while_retries_are_left(
    outcome: RunOutcome, retries: int, made: int, expected: str
) -> None:
    after = end(held(retries=made), outcome, Rules(retries=retries)).after
    assert after.state == expected
    assert after.retries == made + (expected == "waiting")
    assert after.outcome == (outcome if expected == "ended" else None)


def test_a_retry_gives_everything_back_that_it_held_and_keeps_what_it_failed_by() -> None:
    run = held(taken={"gpu": 2}, handed_to="here", stopping_since=NINE)
    after = end(run, error="disk full", log_bytes=7).after
    assert (after.seat, after.holder, after.claim_token, after.lease_end_us, after.lease_boot) == (None,) * 5
    assert (after.taken, after.handed_to, after.stopping_since, after.started_at, after.ended_at) == ({}, *(None,) * 4)
    assert (after.tried, after.tried_reason, after.reason) == ("failed", "exit_status", "exit_status")
    assert (after.error, after.exit_code, after.log_bytes) == ("disk full", 1, 7)
    assert (after.attempt, after.fence, after.version) == (1, 1, run.version + 1)


def test_the_story_of_a_retry_tells_its_outcome_its_number_and_its_time() -> None:
    [entry] = end(held(retries=1), error="x" * 500).entries
    assert (entry.kind, entry.reason, entry.holder, entry.attempt) == ("returned", "exit_status", "hld_a", 1)
    assert dict(entry.details) == {
        "outcome": "failed", "exit_code": 1, "fence": 1, "next": "retry", "retry": 2, "of": 3,
        "not_before": "2026-03-02T09:02:00Z", "error": "x" * 200,
    }  # fmt: skip


def test_the_last_failure_says_how_often_it_was_tried_again() -> None:
    [entry] = end(held(retries=3)).entries
    assert (entry.kind, entry.details["retries"], entry.details["of"]) == ("ended", 3, 3)


def test_what_somebody_asked_to_end_is_not_tried_again_even_if_it_failed_first() -> None:
    after = end(held(cancel_asked_at=NINE, cancel_asked_by="ann")).after
    assert (after.state, after.outcome) == ("ended", "failed")


@pytest.mark.parametrize("why", ["disabled", "paused", "task_removed"])
def test_a_retry_that_could_not_start_ends_at_once_and_says_why(why: str) -> None:
    step = end(held(), hindered=why)
    assert (step.after.state, step.after.outcome, step.after.reason) == ("ended", "failed", "exit_status")
    assert step.entries[0].details["refused"] == why


@pytest.mark.parametrize(
    ("retries", "draw", "seconds"),
    [
        (0, 0.0, 30), (0, 1.0, 36), (0, 0.5, 33), (1, 0.0, 60), (2, 0.0, 120), (6, 0.0, 1920), (6, 1.0, 2304),
        (7, 1.0, 3600), (7, 0.0, 3000), (99, 0.0, 3000), (99, 1.0, 3600),
    ],
)  # fmt: skip
def test_each_wait_is_twice_the_one_before_up_to_an_hour_with_a_fifth_left_to_chance(
    retries: int, draw: float, seconds: float
) -> None:
    assert wait(Rules(), retries, draw) == timedelta(seconds=seconds)


def test_a_first_wait_as_long_as_the_longest_is_left_to_no_chance() -> None:
    rules = Rules(retry_after=HOUR, retry_up_to=HOUR)
    assert {wait(rules, retries, draw) for retries in (0, 5) for draw in (0.0, 0.5, 1.0)} == {HOUR}
    close = Rules(retry_after=55 * MINUTE, retry_up_to=HOUR)
    assert (wait(close, 0, 0.0), wait(close, 3, 0.0), wait(close, 3, 1.0)) == (55 * MINUTE, 55 * MINUTE, HOUR)


@given(
    after=st.timedeltas(SECOND, 3650 * DAY),
    up_to=st.timedeltas(SECOND, 3650 * DAY),
    retries=st.integers(0, 100),
    draw=st.floats(0, 1),
)
def test_no_wait_is_longer_than_its_most_or_shorter_than_its_least(
    after: timedelta, up_to: timedelta, retries: int, draw: float
) -> None:
    rules = Rules(retry_after=after, retry_up_to=up_to)
    found = wait(rules, retries, draw)
    assert found <= up_to
    assert found >= min(after, up_to)
    assert found <= wait(rules, retries + 1, 1.0)


def test_the_wait_counts_from_the_end_of_the_work_and_a_retry_found_late_is_due_at_once() -> None:
    ended_at = NINE + MINUTE
    assert end(held(), now=ended_at + 10 * SECOND, ended_at=ended_at).after.not_before == ended_at + 30 * SECOND
    assert end(held(), now=ended_at + HOUR, ended_at=ended_at).after.not_before == ended_at + HOUR


# The ceiling of the late table: a retry is never asked for its policy, and by its idle lateness for max_age.


@pytest.mark.parametrize(
    ("worked", "idle", "opened_by", "expected"),
    [
        (timedelta(0), HOUR, "schedule", "waiting"),
        (timedelta(0), HOUR + TICK, "schedule", "stale"),
        (7 * HOUR, HOUR, "schedule", "waiting"),
        (7 * HOUR, HOUR + TICK, "catch_up", "stale"),
        (timedelta(0), HOUR + TICK, "event", "stale"),
        (timedelta(0), 30 * DAY, "manual", "waiting"),
        (timedelta(0), 30 * DAY, "offer", "waiting"),
        (timedelta(0), 30 * DAY, "backfill", "waiting"),
    ],
)
def test_a_retry_is_judged_when_it_is_scheduled_by_how_long_it_will_have_been_idle(
    worked: timedelta, idle: timedelta, opened_by: str, expected: str
) -> None:
    rules = Rules(retries=1, max_age=HOUR, on_missed="skip", grace=timedelta(0))
    started = NINE + idle - 30 * SECOND  # the wait of 30 s is idle too
    step = end(held(started_at=started, opened_by=opened_by), rules=rules, now=started + worked, error="no")
    if expected == "waiting":
        assert (step.after.state, step.after.worked_for) == ("waiting", worked)
        return
    assert (step.after.state, step.after.outcome, step.after.reason) == ("ended", "failed", "stale")
    assert (step.after.error, step.after.exit_code) == ("no", 1)
    [entry] = step.entries
    assert (entry.kind, entry.reason) == ("ended", "stale")
    assert entry.details["failed_by"] == "exit_status"
    assert entry.details["idle_s"] == idle.total_seconds()
    assert entry.details["max_age_s"] == 3600


def test_work_that_ended_long_before_it_was_found_was_idle_since_then() -> None:
    rules = Rules(retries=1, max_age=6 * HOUR)
    ended_at = NINE + 10 * MINUTE
    in_time = end(held(), rules=rules, now=NINE + 6 * HOUR + 10 * MINUTE, ended_at=ended_at)
    assert (in_time.after.state, in_time.after.worked_for) == ("waiting", 10 * MINUTE)
    late = end(held(), rules=rules, now=NINE + 6 * HOUR + 10 * MINUTE + TICK, ended_at=ended_at)
    assert (late.after.state, late.after.reason) == ("ended", "stale")


def test_an_end_told_from_before_its_start_or_from_the_future_counts_as_none_and_as_now() -> None:
    assert end(held(), ended_at=NINE - HOUR).after.worked_for == timedelta(0)
    assert end(held(), ended_at=NINE + DAY).after.worked_for == MINUTE


@pytest.mark.parametrize("why", ["stale", "paused", "disabled", "task_removed", "schedule_changed", "skipped_by_hand"])
def test_a_retry_that_is_ended_while_it_waits_keeps_the_outcome_of_its_last_attempt(why: str) -> None:
    again = end(held(), "timed_out", error="too long").after
    step = lifecycle.skip(again, reason=why, now=NINE + HOUR, details={}, by="ann")
    assert (step.after.state, step.after.outcome) == ("ended", "timed_out")
    assert step.after.reason == ("stale" if why == "stale" else "timeout")
    assert step.after.error == "too long"
    [entry] = step.entries
    assert (entry.kind, entry.details["outcome"], entry.details["refused"]) == ("ended", "timed_out", why)


@pytest.mark.parametrize("why", ["stale", "paused"])
def test_a_retry_whose_claim_was_given_back_still_ends_with_the_outcome_before(why: str) -> None:
    again, _ = claim(end(held()).after, fence=2, holder="hld_b", now=NINE + HOUR)
    back = lifecycle.give_back(again, now=NINE + HOUR, why="it had not begun").after
    after = lifecycle.skip(back, reason=why, now=NINE + 2 * HOUR, details={}).after
    assert (after.outcome, after.exit_code) == ("failed", 1)
    assert after.reason in reasons.ENDED
    assert after.reason == ("stale" if why == "stale" else "exit_status")


def test_a_cancelled_retry_was_cancelled() -> None:
    after = lifecycle.cancel_waiting(end(held()).after, by="ann", now=NINE + HOUR).after
    assert (after.state, after.outcome, after.reason) == ("ended", "cancelled", "cancelled_by_hand")


def test_retries_and_interruptions_are_counted_apart() -> None:
    rules = Rules(retries=1, on_interrupt="retry")
    first = end(held(), rules=rules).after
    second, _ = claim(first, fence=2, holder="hld_a", now=NINE + 2 * MINUTE)
    cut = interrupt(second, rules, now=NINE + 3 * MINUTE).after
    assert (cut.state, cut.retries, cut.interruptions, cut.tried, cut.exit_code) == ("waiting", 1, 1, "abandoned", None)
    third, _ = claim(cut, fence=3, holder="hld_a", now=NINE + 4 * MINUTE)
    assert end(third, rules=rules, now=NINE + 5 * MINUTE).after.state == "ended", "its one retry is made"


def test_a_run_backs_off_until_the_time_of_its_retry_has_come_and_only_after_a_failure() -> None:
    again = end(held()).after
    assert backs_off(again, again.not_before - TICK)
    assert not backs_off(again, again.not_before)
    assert not backs_off(waiting(not_before=NINE + HOUR), NINE)
    assert not backs_off(held(tried="failed", not_before=NINE + HOUR), NINE)


def test_the_attempts_of_a_run_that_failed_twice_and_succeeded_are_told_with_their_ends() -> None:
    run, entries = held(), [OPENED]
    for fence, outcome in ((1, "failed"), (2, "timed_out"), (3, "succeeded")):
        run, claimed = claim(
            run if fence > 1 else waiting(), fence=fence, holder=f"hld_{fence}", now=NINE + fence * HOUR
        )
        step = end(run, outcome, now=NINE + fence * HOUR + MINUTE)  # type: ignore[arg-type]
        run, entries = step.after, [*entries, claimed, *step.entries]
    told = [(one.attempt, one.outcome, one.reason, one.holder) for one in attempts(entries)]
    assert told == [
        (1, "failed", "exit_status", "hld_1"),
        (2, "timed_out", "timeout", "hld_2"),
        (3, "succeeded", None, "hld_3"),
    ]
    assert fold(entries).faults == ()


@st.composite
def ends(draw: st.DrawFn) -> list[tuple[str, int, float]]:
    """What becomes of one attempt after the other: how it ended, how long it took, what chance gave it."""
    kinds = ["failed", "failed", "failed", "timed_out", "succeeded", "cancelled", "interrupted", "returned"]
    one = st.tuples(st.sampled_from(kinds), st.integers(0, 20_000), st.floats(0, 1))
    return draw(st.lists(one, min_size=1, max_size=12))


@settings(max_examples=300)
@given(
    walked=ends(),
    retries=st.integers(0, 4),
    retry_after=st.integers(1, 4000),
    max_age=st.integers(0, 40_000),
    on_interrupt=st.sampled_from(["retry", "fail"]),
    opened_by=st.sampled_from(["schedule", "manual"]),
)
def test_whatever_becomes_of_its_attempts_a_run_is_tried_no_more_often_than_its_rules_say(
    walked: list[tuple[str, int, float]],
    retries: int,
    retry_after: int,
    max_age: int,
    on_interrupt: Any,
    opened_by: str,
) -> None:
    rules = Rules(
        retries=retries, retry_after=timedelta(seconds=retry_after), max_age=timedelta(seconds=max_age),
        on_interrupt=on_interrupt,
    )  # fmt: skip
    run, now = waiting(opened_by=opened_by), NINE
    entries: list[Entry] = [OPENED]
    performed = 0
    for fence, (kind, seconds, draw) in enumerate(walked, 1):
        if run.state == "ended":
            break
        now = max(now, run.not_before)
        run, told = claim(run, fence=fence, holder="hld_a", now=now)
        now += timedelta(seconds=seconds)
        if kind == "returned":
            step = lifecycle.give_back(run, now=now, why="it had not begun")
        elif kind == "interrupted":
            step = interrupt(run, rules, now=now, by="hld_b")
        else:
            step = end(run, kind, rules, now=now, draw=draw, error="it said so")  # type: ignore[arg-type]
        performed += kind != "returned"
        if step.after.state == "waiting" and kind in AGAIN:
            lateness = step.after.not_before - run.due_at - step.after.worked_for
            assert lateness <= rules.max_age or opened_by == "manual"
            assert timedelta(0) < step.after.not_before - now <= rules.retry_up_to
        run, entries = step.after, [*entries, told, *step.entries]
        folded = fold(entries)
        assert folded.faults == ()
        assert (folded.state, folded.outcome, folded.reason) == (run.state, run.outcome, run.reason)
    assert performed <= 1 + retries + (on_interrupt == "retry")
    assert len(attempts(entries)) == run.attempt
    if run.state == "ended":
        assert run.outcome == attempts(entries)[-1].outcome
        assert run.outcome == "succeeded" or run.reason in reasons.ENDED
        assert (run.tried, run.tried_reason) == (None, None)
