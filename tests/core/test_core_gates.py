"""Gates: what a *no* before the start makes of a claimed run."""

from typing import Any

import pytest
from core_values import MINUTE, NINE, SECOND, held, waiting
from test_core_life import OPENED, claim
from test_core_retries import end

from duly.core import gating, lifecycle, reasons
from duly.core.ledger import attempts, fold
from duly.core.run import Run, Step

CLAIMED, CLAIM = claim(waiting(), fence=1, holder="hld_a", now=NINE)


def not_now(run: Run, **more: Any) -> Step:
    told: dict[str, Any] = {"reason": "gate_closed", "told": "the gate said not now", "details": {"exit_code": 1}}
    return gating.not_now(run, now=NINE + SECOND, **(told | more))


@pytest.mark.parametrize("reason", ["gate_closed", "gate_failed"])
def test_a_gate_that_does_not_open_skips_its_run_and_gives_everything_back_in_one_write(reason: str) -> None:
    run = held(taken={"gpu": 1})
    step = not_now(run, reason=reason)
    after = step.after
    assert after.version == run.version + 1
    assert (after.state, after.outcome, after.reason) == ("ended", "skipped", reason)
    assert reason in reasons.NO_START
    assert (after.seat, after.lease_end_us, after.taken, after.started_at) == (None, None, {}, None)
    assert (after.holder, after.claim_token) == ("hld_a", "token"), "a lost answer is read back by the token"
    assert after.error == "the gate said not now"
    assert after.ended_at == NINE + SECOND
    assert [entry.kind for entry in step.entries] == ["returned", "skipped"]
    assert dict(step.entries[1].details) == {"exit_code": 1}


def test_the_story_of_a_closed_gate_has_an_attempt_that_was_given_back_and_no_fault() -> None:
    entries = [OPENED, CLAIM, *not_now(CLAIMED).entries]
    assert fold(entries).faults == ()
    assert (fold(entries).outcome, fold(entries).reason) == ("skipped", "gate_closed")
    [told] = attempts(entries)
    assert (told.outcome, told.reason, told.ended_at) == (None, "returned", NINE + SECOND)


def test_a_retry_whose_gate_does_not_open_ends_with_the_outcome_of_its_last_attempt() -> None:
    first = end(CLAIMED, "timed_out", error="too long")
    again, claimed = claim(first.after, fence=2, holder="hld_b", now=NINE + 2 * MINUTE)
    step = not_now(again)
    after = step.after
    assert (after.state, after.outcome, after.reason, after.error) == ("ended", "timed_out", "timeout", "too long")
    assert step.entries[-1].details["refused"] == "gate_closed"
    entries = [OPENED, CLAIM, *first.entries, claimed, *step.entries]
    folded = fold(entries)
    assert (folded.faults, folded.state, folded.outcome, folded.reason) == ((), "ended", "timed_out", "timeout")
    assert [(one.outcome, one.reason) for one in attempts(entries)] == [("timed_out", "timeout"), (None, "returned")]


def test_a_run_that_was_cancelled_while_its_gate_was_asked_is_cancelled() -> None:
    asked = lifecycle.ask_cancel(CLAIMED, by="ann", now=NINE).after
    after = not_now(asked).after
    assert (after.state, after.outcome, after.reason) == ("ended", "cancelled", "cancelled_by_hand")


def test_an_open_gate_is_told_by_who_holds_the_run_and_changes_nothing() -> None:
    began = gating.began(CLAIMED, now=NINE + SECOND, details={"gate": "open"})
    before = fold([OPENED, CLAIM])
    assert fold([OPENED, CLAIM, began]) == before
    stranger = gating.began(held(holder="hld_b"), now=NINE, details={})
    assert fold([OPENED, CLAIM, stranger]).faults
