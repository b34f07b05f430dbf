"""What each edge of a run's life writes into the row, and what it tells the ledger: these fields, and no others."""

from dataclasses import fields, replace
from datetime import timedelta
from typing import Any

import pytest
from core_values import HOUR, MINUTE, NINE, SECOND, every, held, task_of, waiting

from duly.core import edges, interrupting, lifecycle
from duly.core.fates import Opening
from duly.core.ledger import never_began
from duly.core.run import Entry, Run, Step
from duly.core.task import Rules

LATER = NINE + HOUR
OF_RUN = {"task": "tsk_one", "occurrence": "at:2026-03-02T09:00:00Z", "run": "run_one"}
RELEASED: dict[str, Any] = {
    "seat": None,
    "taken": {},
    "lease_end_us": None,
    "lease_boot": None,
    "handed_to": None,
    "stopping_since": None,
}
"""What is given back by every run that is held no longer."""


def whole(**changes: Any) -> Run:
    """A held run in which each field says something, so that what an edge leaves behind is seen."""
    told: dict[str, Any] = {
        "version": 7,
        "attempt": 3,
        "fence": 9,
        "seat": 2,
        "taken": {"gpu": 1},
        "handed_to": "place",
        "stopping_since": NINE,
        "worked_for": MINUTE,
        "retries": 1,
        "tried": "failed",
        "tried_reason": "exit_status",
        "reason": "exit_status",
        "exit_code": 1,
        "signal": 9,
        "error": "before",
        "log_bytes": 5,
        "log_cut": 6,
    }
    return held(**(told | changes))


def wrote(step: Step) -> dict[str, Any]:
    """What the row has that it had not."""
    pairs = {one.name: (getattr(step.before, one.name), getattr(step.after, one.name)) for one in fields(Run)}
    return {name: after for name, (before, after) in pairs.items() if before != after}


def entry(kind: str, attempt: int | None = 3, holder: str | None = "hld_a", **more: Any) -> Entry:
    return Entry(kind=kind, at=LATER, attempt=attempt, holder=holder, **(OF_RUN | more))


def test_an_end_writes_what_the_work_left_and_tells_by_which_claim() -> None:
    step = lifecycle.settle(
        whole(),
        "failed",
        now=LATER,
        reason="exit_status",
        error="it broke",
        exit_code=3,
        signal=15,
        log_bytes=70,
        log_cut=7,
        details={"usage": 4},
    )
    ended = {"version": 8, "state": "ended", "outcome": "failed", "ended_at": LATER, "error": "it broke"}
    left = {"exit_code": 3, "signal": 15, "log_bytes": 70, "log_cut": 7, "worked_for": MINUTE + HOUR}
    assert wrote(step) == RELEASED | ended | left | {"tried": None, "tried_reason": None}
    told = {"outcome": "failed", "fence": 9, "usage": 4, "exit_code": 3}
    assert step.entries == (entry("ended", reason="exit_status", details=told),)


def test_a_success_leaves_nothing_of_the_failures_before_it() -> None:
    step = lifecycle.settle(whole(), "succeeded", now=LATER)
    after = step.after
    assert (after.reason, after.error, after.exit_code, after.signal, after.log_bytes, after.log_cut) == (
        *(None, None, None, None),
        *(0, 0),
    )
    assert step.entries == (entry("ended", details={"outcome": "succeeded", "fence": 9}),)


@pytest.mark.parametrize(
    ("until", "worked"),
    [(NINE + MINUTE, MINUTE), (NINE + 2 * HOUR, HOUR), (NINE, timedelta(0)), (NINE - MINUTE, timedelta(0))],
)
def test_work_that_ended_before_it_was_settled_counts_until_its_end_and_never_beyond_now(
    until: Any, worked: timedelta
) -> None:
    after = lifecycle.settle(whole(), "failed", now=LATER, worked_until=until).after
    assert after.worked_for == MINUTE + worked


def test_a_claim_that_never_began_has_worked_for_no_time() -> None:
    assert lifecycle.settle(whole(started_at=None), "failed", now=LATER).after.worked_for == MINUTE


def test_an_opened_run_says_for_which_instant_by_whom_and_how_late() -> None:
    task = task_of(every(HOUR), priority=3)
    opening = Opening(
        due_at=NINE, start_at=NINE + MINUTE, opened_by="catch_up", late_by=timedelta(seconds=90.25), queues=True
    )
    run, told = lifecycle.opened(task, opening, id_="run_one", now=LATER, holder="hld_a")
    assert run == waiting(
        opened_by="catch_up",
        opened_at=LATER,
        not_before=NINE + MINUTE,
        spread=MINUTE,
        overlap="queue",
        project="default",
        rank=-3,
    )
    assert told == entry("opened", None, reason="catch_up", details={"late_by_s": 90.25})


def test_a_run_that_does_not_queue_by_its_opening_leaves_overlap_to_its_task() -> None:
    opening = Opening(due_at=NINE, start_at=NINE, opened_by="schedule", late_by=timedelta(0))
    run, told = lifecycle.opened(task_of(every(HOUR)), opening, id_="run_one", now=NINE, holder=None)
    assert (run.overlap, run.spread, run.rank, told.holder) == (None, timedelta(0), 0, None)


def test_a_run_by_hand_is_told_with_who_asked_and_when() -> None:
    told = lifecycle.opened_by_hand(waiting(opened_by="manual", opened_by_whom="ann", opened_at=LATER))
    assert told == entry("opened", None, None, reason="manual", by="ann")


def test_a_claim_is_told_with_fence_seat_lateness_and_the_crowd_it_saw() -> None:
    late = timedelta(microseconds=1_234_567)
    told = lifecycle.claimed(whole(), now=LATER, late_by=late, crowd={"gpu": [1, 2]})
    assert told == entry("claimed", details={"fence": 9, "seat": 2, "late_by_s": 1.234567, "gpu": [1, 2]})


def test_a_backfill_waits_behind_all_others() -> None:
    opening = Opening(due_at=NINE, start_at=NINE, opened_by="backfill", late_by=timedelta(0))  # type: ignore[arg-type]
    run, _ = lifecycle.opened(task_of(every(HOUR)), opening, id_="run_one", now=NINE, holder=None)
    assert run.rank > 1000


def interrupt(run: Run, rules: Rules, why: interrupting.Interruption = "holder_died", told: str | None = None) -> Step:
    return interrupting.interrupted(
        run, rules, why=why, now=LATER, ended_at=NINE + MINUTE, following=None, by="hld_b", told=told
    )


def test_an_interrupted_run_that_is_tried_again_waits_with_the_outcome_of_the_attempt_that_is_gone() -> None:
    step = interrupt(whole(tried=None, tried_reason=None), Rules(on_interrupt="retry"), "lease_lost")
    waits = {"version": 8, "state": "waiting", "holder": None, "claim_token": None, "started_at": None}
    why = {"reason": "lease_lost", "tried": "abandoned", "tried_reason": "lease_lost", "interruptions": 1}
    left = {"exit_code": None, "signal": None, "not_before": LATER, "worked_for": 2 * MINUTE}
    error = {"error": "its holder lost the lease, and its work ended with it"}
    assert wrote(step) == RELEASED | waits | why | left | error
    swept = entry("swept", reason="lease_lost", by="hld_b", details={"fence": 9, "next": "retry"})
    assert step.entries == (swept,)


def test_an_interrupted_run_that_is_not_tried_again_ends_and_counts_the_time_it_was_known_to_work() -> None:
    step = interrupt(whole(), Rules(on_interrupt="fail"))
    assert (step.after.outcome, step.after.reason, step.after.worked_for) == ("abandoned", "holder_died", 2 * MINUTE)
    assert step.entries == (
        entry("swept", reason="holder_died", by="hld_b", details={"fence": 9}),
        entry("ended", reason="holder_died", details={"outcome": "abandoned", "fence": 9}),
    )


DIED = "the process that held the run died"
TEXTS: dict[str, tuple[Run, Rules]] = {
    f"{DIED}, and its work ended with it": (held(), Rules(on_interrupt="fail")),
    f"{DIED}, for the second time": (held(interruptions=1), Rules(on_interrupt="retry")),
    f"{DIED}, and it was too late to try again": (held(), Rules(on_interrupt="retry", max_age=MINUTE)),
    f"{DIED}, and the task skips what it missed": (held(), Rules(on_interrupt="retry", on_missed="skip")),
    f"{DIED}, and whether it goes on is a person's to decide": (
        held(),
        Rules(on_interrupt="retry", on_missed="offer"),
    ),
}


@pytest.mark.parametrize("text", TEXTS)
def test_an_interruption_says_what_happened_and_why_it_ends_there(text: str) -> None:
    run, rules = TEXTS[text]
    assert interrupt(run, rules).after.error == text


def test_a_lease_that_was_lost_is_told_as_that() -> None:
    error = interrupt(held(), Rules(on_interrupt="fail"), "lease_lost").after.error
    assert error == "its holder lost the lease, and its work ended with it"


@pytest.mark.parametrize("policy", ["retry", "fail"])
def test_who_knows_more_of_an_interruption_says_it_in_its_own_words_kept_up_to_a_limit(policy: Any) -> None:
    assert interrupt(held(), Rules(on_interrupt=policy), told="the disk was full").after.error == "the disk was full"
    kept = interrupt(held(), Rules(on_interrupt=policy), told="x" * 5000).after.error
    assert kept == "x" * edges.ERROR_MOST


def test_work_that_cannot_be_proven_gone_ends_with_the_names_of_what_is_left() -> None:
    after = lifecycle.not_confirmed(whole(), now=LATER, survivors="pid 7").after
    assert (after.outcome, after.reason, after.error) == ("abandoned", "end_not_confirmed", "pid 7")
    assert after.ended_at == LATER


def test_a_claim_given_back_leaves_the_row_as_it_waited_and_says_why() -> None:
    step = lifecycle.give_back(whole(), now=LATER, why="no trust left")
    back = {"version": 8, "state": "waiting", "holder": None, "claim_token": None, "started_at": None}
    assert wrote(step) == RELEASED | back
    details = {"why": "no trust left", "fence": 9}
    assert step.entries == (entry("returned", reason="returned", details=details),)


def test_a_claim_given_back_because_its_holder_died_is_counted_until_it_is_once_too_often() -> None:
    step = lifecycle.give_back(whole(), now=LATER, why="x", died=True, deaths=3)
    told = entry("returned", reason="returned", details={"why": "x", "fence": 9, "died": True})
    assert step.entries == (told,)
    alive = lifecycle.give_back(whole(), now=LATER, why="x").entries
    claimed = lifecycle.claimed(whole(), now=LATER, late_by=timedelta(0), crowd={"died": True})
    assert lifecycle.deaths_of([told, *alive, claimed, told]) == 2
    last = lifecycle.give_back(whole(), now=LATER, why="x", died=True, deaths=4)
    assert (last.after.state, last.after.outcome, last.after.reason) == ("ended", "abandoned", "holder_died")
    text = "5 processes died one after another before its work began: it may be what kills them"
    assert last.after.error == text
    assert last.entries[0].details == {"outcome": "abandoned", "fence": 9, "deaths": 5}
    assert lifecycle.give_back(whole(), now=LATER, why="x", deaths=9).after.state == "waiting"


def test_only_a_claim_that_was_given_back_never_began() -> None:
    assert never_began(lifecycle.give_back(whole(), now=LATER, why="x"))
    assert not never_began(lifecycle.settle(whole(), "failed", now=LATER, reason="returned"))
    failed = lifecycle.give_back(whole(), now=LATER, why="x")
    (told,) = failed.entries
    again = replace(failed, entries=(replace(told, reason="exit_status"),))
    assert not never_began(again), "an attempt that failed and is tried again began"


def test_a_claim_that_was_to_be_cancelled_ends_when_it_is_given_back() -> None:
    run = whole(cancel_asked_at=NINE, cancel_asked_by="run_two", cancel_why="overlap")
    after = lifecycle.give_back(run, now=LATER, why="x").after
    assert (after.state, after.outcome, after.reason, after.ended_at) == ("ended", "cancelled", "overlap", LATER)
    assert after.error == "it was cancelled before it began"


def test_who_takes_over_is_told_with_from_whom_and_why() -> None:
    step = lifecycle.take_over(
        whole(), holder="hld_b", token="new", lease_end_us=900, boot="other", now=LATER, why="holder_died"
    )
    lease = {"holder": "hld_b", "claim_token": "new", "lease_end_us": 900, "lease_boot": "other", "handed_to": None}
    assert wrote(step) == lease | {"version": 8}
    details = {"from": "hld_a", "why": "holder_died", "fence": 9}
    assert step.entries == (entry("taken_over", holder="hld_b", details=details),)


def test_living_work_is_told_to_be_adopted_by_its_new_holder() -> None:
    assert lifecycle.adopted(whole(), now=LATER, holder="hld_b") == entry(
        "adopted", holder="hld_b", details={"fence": 9}
    )


def test_living_work_that_is_left_to_the_next_names_the_place_and_until_when() -> None:
    step = lifecycle.hand_over(whole(handed_to=None), place="here", lease_end_us=900, now=LATER)
    assert wrote(step) == {"version": 8, "handed_to": "here", "lease_end_us": 900}
    assert step.entries == (entry("handed_over", details={"fence": 9}),)


def test_a_waiting_run_that_is_skipped_says_why_and_by_whom() -> None:
    step = lifecycle.skip(waiting(version=4), reason="paused", now=LATER, details={"scope": "store"}, by="ann")
    assert wrote(step) == {
        "version": 5,
        "state": "ended",
        "outcome": "skipped",
        "reason": "paused",
        "ended_at": LATER,
    }
    assert step.entries == (entry("skipped", None, None, reason="paused", by="ann", details={"scope": "store"}),)


def test_a_waiting_retry_that_is_refused_ends_with_its_last_outcome_and_tells_what_refused_it() -> None:
    run = waiting(version=4, attempt=1, tried="failed", tried_reason="exit_status", reason="exit_status")
    step = lifecycle.skip(run, reason="paused", now=LATER, details={"scope": "store"}, by="ann")
    assert wrote(step) == {
        "version": 5,
        "state": "ended",
        "outcome": "failed",
        "tried": None,
        "tried_reason": None,
        "ended_at": LATER,
    }
    told = {"scope": "store", "outcome": "failed", "refused": "paused"}
    assert step.entries == (entry("ended", 1, None, reason="exit_status", by="ann", details=told),)


@pytest.mark.parametrize(
    ("changes", "last"),
    [
        ({}, None),
        ({"tried": "failed", "tried_reason": "exit_status", "reason": "x"}, ("failed", "exit_status")),
        ({"tried": "failed", "reason": "timeout"}, ("failed", "timeout")),
        ({"tried": "failed"}, ("failed", "preflight")),
        ({"interruptions": 1}, ("abandoned", "holder_died")),
        ({"interruptions": 1, "reason": "lease_lost"}, ("abandoned", "lease_lost")),
    ],
)
def test_the_outcome_of_the_last_attempt_is_known_as_far_as_the_row_tells(changes: Any, last: Any) -> None:
    assert lifecycle.last_outcome(waiting(**changes)) == last


def test_a_waiting_run_is_cancelled_by_a_person_with_wish_and_end() -> None:
    step = lifecycle.cancel_waiting(waiting(version=4), by="ann", now=LATER)
    assert wrote(step) == {
        "version": 5,
        "state": "ended",
        "outcome": "cancelled",
        "reason": "cancelled_by_hand",
        "ended_at": LATER,
        "cancel_asked_at": LATER,
        "cancel_asked_by": "ann",
    }
    assert step.entries == (
        entry("cancel_asked", None, None, reason="cancelled_by_hand", by="ann"),
        entry("ended", None, None, reason="cancelled_by_hand", by="ann", details={"outcome": "cancelled"}),
    )


def test_the_wish_to_end_a_held_run_stands_on_the_row_with_why_and_how() -> None:
    step = lifecycle.ask_cancel(whole(), by="ann", now=LATER)
    assert wrote(step) == {"version": 8, "cancel_asked_at": LATER, "cancel_asked_by": "ann"}
    assert (step.after.cancel_why, step.after.cancel_how) == ("cancelled_by_hand", "term")
    assert step.entries == (entry("cancel_asked", holder=None, reason="cancelled_by_hand", by="ann"),)
    step = lifecycle.ask_cancel(whole(), by="run_two", now=LATER, why="overlap", how="kill")
    assert (step.after.cancel_why, step.after.cancel_how) == ("overlap", "kill")
    assert step.entries[0].reason == "overlap"


def test_work_that_was_asked_to_end_says_since_when_and_the_ledger_nothing() -> None:
    step = lifecycle.stopping(whole(stopping_since=None), now=LATER)
    assert (wrote(step), step.entries) == ({"version": 8, "stopping_since": LATER}, ())


def test_who_lost_its_fence_is_told_with_the_attempt_and_fence_that_it_had() -> None:
    told = lifecycle.fence_lost("run_one", task="tsk_one", attempt=3, fence=9, holder="hld_a", now=LATER)
    assert told == entry("fence_lost", occurrence=None, reason="fence_lost", details={"fence": 9})


def test_an_outcome_found_after_its_attempt_was_given_up_is_told_once_and_contradicts_nothing_else() -> None:
    claim = lifecycle.claimed(whole(), now=NINE, late_by=timedelta(0), crowd={})
    given_up = [claim, *lifecycle.not_confirmed(whole(), now=NINE + SECOND, survivors="x").entries]

    def late(entries: list[Entry], fence: int = 9, outcome: Any = "succeeded") -> Entry | None:
        return lifecycle.outcome_late(
            held(), entries, fence=fence, outcome=outcome, now=LATER, details={"exit_code": 0}
        )

    told = late(given_up)
    assert told == entry("outcome_late", details={"fence": 9, "outcome": "succeeded", "exit_code": 0})
    assert told is not None
    assert late([*given_up, told]) is None, "it is told once"
    other = lifecycle.outcome_late(held(), given_up, fence=9, outcome="failed", now=LATER, details={})
    assert other is not None
    assert other.details == {"fence": 9, "outcome": "failed"}
    assert late(given_up, fence=8) is None, "no attempt had this fence"
    assert late([claim, *lifecycle.settle(whole(), "failed", now=NINE).entries]) is None, "its end is known"
    assert late(given_up, outcome="abandoned") is None
    assert late(given_up, outcome="cancelled") is None
