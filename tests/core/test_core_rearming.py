"""Safe retry (G10): which failures wait for another attempt, for how long, until when, and what overtakes them."""

from datetime import timedelta
from typing import Any

import pytest
from core_values import DAY, HOUR, MINUTE, NINE, held, task_of, waiting

from duly.core import lifecycle
from duly.core.admission import Skipped, admit
from duly.core.ledger import attempts
from duly.core.rearming import AFTER, REARMED, is_superseded, made, rearmed
from duly.core.run import Run, Step
from duly.core.task import Rules

LATER = NINE + DAY
ANY = Rules()


def fail(run: Run, rules: Rules = ANY, **more: Any) -> Step:
    told: dict[str, Any] = {"reason": "agent_error", "error": "529 overloaded", "agent": {"session": "s"}}
    ended = lifecycle.settle(run, "failed", now=NINE + MINUTE, worked_until=NINE + MINUTE, **told)
    given: dict[str, Any] = {"before": 0, "ended_at": NINE + MINUTE, "draw": 0.0, "scheduled": 7, "following": LATER}
    return rearmed(ended, rules, **(given | more))


@pytest.mark.parametrize(("before", "minutes"), [(0, 5), (1, 15), (2, 30), (3, 60)])
def test_a_run_that_failed_unseen_waits_longer_each_time_and_gives_its_seat_back(before: int, minutes: int) -> None:
    step = fail(held(), before=before)
    after = step.after
    assert (after.state, after.outcome, after.seat, after.holder, after.retries) == ("waiting", None, None, None, 0)
    assert after.not_before == NINE + MINUTE + timedelta(minutes=minutes)
    assert (after.tried, after.tried_reason, after.error) == ("failed", "agent_error", "529 overloaded")
    assert after.agent[REARMED] == 7
    [entry] = step.entries
    assert (entry.kind, entry.reason) == ("returned", "agent_error")
    assert (entry.details["safe_retry"], entry.details["of"], entry.details["next"]) == (before + 1, 4, "retry")
    assert made([entry]) == 1
    most = fail(held(), before=before, draw=1.0).after.not_before
    assert after.not_before < most <= NINE + MINUTE + timedelta(minutes=minutes * 1.2)


def test_the_attempt_that_failed_so_has_ended_in_the_story() -> None:
    step = fail(held())
    begin = lifecycle.claimed(held(), now=NINE, late_by=timedelta(0), crowd={})
    [attempt] = attempts([begin, *step.entries])
    assert (attempt.outcome, attempt.reason, attempt.ended_at) == ("failed", "agent_error", NINE + MINUTE)


def test_after_the_last_of_them_it_ends_as_it_failed() -> None:
    step = fail(held(), before=len(AFTER))
    assert (step.after.state, step.after.outcome, step.after.reason) == ("ended", "failed", "agent_error")
    assert step.entries[-1].details["safe_retries"] == 4


@pytest.mark.parametrize("opened_by", ["manual", "offer", "backfill"])
def test_what_a_person_asked_for_ends_at_once(opened_by: str) -> None:
    assert fail(held(opened_by=opened_by)).after.state == "ended"
    assert fail(held(opened_by="event")).after.state == "waiting"


def test_what_was_to_be_cancelled_or_may_not_start_now_ends() -> None:
    assert fail(held(cancel_asked_at=NINE, cancel_asked_by="me")).after.state == "ended"
    for why in ("disabled", "paused", "task_removed", "superseded"):
        step = fail(held(), hindered=why)
        assert (step.after.state, step.after.reason) == ("ended", "agent_error")
        assert step.entries[-1].details["refused"] == why


@pytest.mark.parametrize(
    ("rules", "reason"),
    [
        (Rules(), None),
        (Rules(max_age=timedelta(minutes=5)), None),
        (Rules(max_age=timedelta(minutes=5) - timedelta(microseconds=1)), "stale"),
        (Rules(on_missed="skip"), "missed_skip"),
        (Rules(on_missed="offer"), "missed_offer"),
        (Rules(on_missed="skip", grace=HOUR), None),
    ],
)
def test_it_is_judged_by_the_late_table_at_the_moment_of_its_next_try(rules: Rules, reason: str | None) -> None:
    step = fail(held(), rules)
    assert step.after.state == ("waiting" if reason is None else "ended")
    if reason is not None:
        assert (step.after.reason, step.entries[-1].reason) == (reason, reason)
        assert step.entries[-1].details["failed_by"] == "agent_error"


def test_a_newer_occurrence_overtakes_it_and_one_that_waits_for_anything_else_is_not_overtaken() -> None:
    run = fail(held()).after
    assert (is_superseded(run, 7), is_superseded(run, 8)) == (False, True)
    assert not is_superseded(waiting(agent={REARMED: 7}), 8), "it was never tried"
    task = task_of()
    given: dict[str, Any] = {"paused": False, "kinds": ["command"], "now": run.not_before}
    assert task.scheduled_runs == 0
    assert admit(waiting(tried="failed", agent={REARMED: -1}), task, Rules(), **given) == Skipped(reason="superseded")
