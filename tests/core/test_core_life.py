"""A run's life: every edge is a new version with legal entries, and the ledger folds back into the row."""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from core_values import DAY, HOUR, MINUTE, NINE, SECOND, TICK, every, held, task_of, waiting

from duly.core import interrupting, lifecycle, reasons
from duly.core.edges import ERROR_MOST
from duly.core.fates import Opening
from duly.core.ledger import attempts, fold
from duly.core.retrying import retried
from duly.core.run import Entry, Run, Step
from duly.core.task import Rules

KINDS = {"opened", "claimed", "returned", "taken_over", "adopted", "handed_over", "swept", "fence_lost"}
KINDS |= {"cancel_asked", "ended", "skipped"}
RETRY = Rules(on_interrupt="retry")
FAIL = Rules(on_interrupt="fail")


def claim(run: Run, *, fence: int, holder: str, now: datetime) -> tuple[Run, Entry]:
    after = replace(
        run,
        state="held",
        reason=None,
        version=run.version + 1,
        attempt=run.attempt + 1,
        fence=fence,
        seat=1,
        holder=holder,
        claim_token=f"token-{fence}",
        lease_end_us=1,
        lease_boot="boot",
        started_at=now,
    )
    return after, lifecycle.claimed(after, now=now, late_by=timedelta(0), crowd={})


def interrupt(
    run: Run, rules: Rules = RETRY, *, now: datetime, ended_at: datetime | None = None, by: str = "hld_b"
) -> Step:
    return interrupting.interrupted(
        run, rules, why="holder_died", now=now, ended_at=ended_at or now, following=None, by=by
    )


def retry(run: Run, *, now: datetime, retries: int = 1) -> Step:
    settled = lifecycle.settle(run, "failed", now=now, reason="exit_status")
    return retried(settled, Rules(retries=retries), ended_at=now, draw=0.5)


def edges() -> dict[str, Step]:
    run, wait = held(), waiting(version=4)
    return {
        "settle": lifecycle.settle(run, "succeeded", now=NINE + SECOND),
        "failed, tried again": retry(run, now=NINE + SECOND),
        "interrupted, tried again": interrupt(run, now=NINE + SECOND),
        "interrupted, ended": interrupt(run, FAIL, now=NINE + SECOND),
        "not confirmed": lifecycle.not_confirmed(run, now=NINE + SECOND, survivors="pid 7"),
        "give back": lifecycle.give_back(run, now=NINE + SECOND, why="no trust left"),
        "take over": lifecycle.take_over(
            run, holder="hld_b", token="t", lease_end_us=9, boot="boot", now=NINE, why="holder_died"
        ),
        "hand over": lifecycle.hand_over(run, place="here", lease_end_us=9, now=NINE),
        "skip": lifecycle.skip(wait, reason="stale", now=NINE, details={}),
        "cancel waiting": lifecycle.cancel_waiting(wait, by="ann", now=NINE),
        "ask cancel": lifecycle.ask_cancel(run, by="ann", now=NINE),
        "stopping": lifecycle.stopping(run, now=NINE),
    }


@pytest.mark.parametrize("edge", edges())
def test_every_edge_is_one_new_version_of_the_same_occurrence(edge: str) -> None:
    step = edges()[edge]
    assert step.after.version == step.before.version + 1
    for name in ("id", "task", "occurrence", "due_at", "opened_by", "definition_version", "attempt", "fence", "input"):
        assert getattr(step.after, name) == getattr(step.before, name), name


@pytest.mark.parametrize("edge", edges())
def test_every_edge_tells_only_legal_entries_of_its_run(edge: str) -> None:
    for entry in edges()[edge].entries:
        assert entry.kind in KINDS
        assert (entry.task, entry.run, entry.occurrence) == ("tsk_one", "run_one", "at:2026-03-02T09:00:00Z")
        if entry.kind == "skipped":
            assert entry.reason in reasons.NO_START
        if entry.kind == "ended":
            assert entry.reason is None or entry.reason in reasons.ENDED


@pytest.mark.parametrize("edge", edges())
def test_a_seat_and_a_lease_are_held_exactly_while_the_run_is(edge: str) -> None:
    after = edges()[edge].after
    holds = after.state == "held"
    assert (after.seat is not None) == holds
    assert (after.lease_end_us is not None) == holds
    assert (after.lease_boot is not None) == holds
    if after.state == "waiting":
        assert (after.holder, after.claim_token, after.started_at) == (None, None, None)
    assert (after.ended_at is not None) == (after.state == "ended")
    assert (after.outcome is not None) == (after.state == "ended")


def test_an_edge_from_the_wrong_state_is_impossible() -> None:
    acts: tuple[Callable[[], Step], ...] = (
        lambda: lifecycle.settle(waiting(), "failed", now=NINE),
        lambda: interrupt(waiting(), now=NINE),
        lambda: lifecycle.give_back(waiting(), now=NINE, why=""),
        lambda: lifecycle.skip(held(), reason="stale", now=NINE, details={}),
        lambda: lifecycle.cancel_waiting(held(), by="ann", now=NINE),
        lambda: lifecycle.ask_cancel(waiting(), by="ann", now=NINE),
        lambda: lifecycle.settle(held(state="ended"), "failed", now=NINE),
    )
    for act in acts:
        with pytest.raises(AssertionError):
            act()


def test_an_interrupted_run_is_tried_again_once_and_ends_abandoned_the_second_time() -> None:
    first = interrupt(held(), now=NINE + MINUTE)
    assert (first.after.state, first.after.interruptions) == ("waiting", 1)
    assert first.after.not_before == NINE + MINUTE
    again, _ = claim(first.after, fence=2, holder="hld_b", now=NINE + 2 * MINUTE)
    second = interrupt(again, now=NINE + 3 * MINUTE)
    assert (second.after.state, second.after.outcome, second.after.reason) == ("ended", "abandoned", "holder_died")
    assert second.after.error is not None
    assert "second time" in second.after.error


def test_without_the_rule_an_interrupted_run_ends_abandoned_at_once() -> None:
    step = interrupt(held(), FAIL, now=NINE + MINUTE)
    assert (step.after.state, step.after.outcome, step.after.reason) == ("ended", "abandoned", "holder_died")
    assert [entry.kind for entry in step.entries] == ["swept", "ended"]


def test_a_run_that_somebody_cancelled_is_never_tried_again() -> None:
    step = interrupt(held(cancel_asked_at=NINE, cancel_asked_by="ann"), now=NINE + MINUTE)
    assert step.after.state == "ended"


def test_an_interruption_in_the_seventh_hour_is_judged_by_its_two_idle_minutes() -> None:
    rules = Rules(on_interrupt="retry", on_missed="skip", grace=5 * MINUTE, max_age=6 * HOUR)
    cut_off = NINE + 7 * HOUR
    step = interrupt(held(), rules, now=cut_off + 2 * MINUTE, ended_at=cut_off)
    assert step.after.state == "waiting"
    assert step.after.worked_for == 7 * HOUR
    late = interrupt(held(), rules, now=cut_off + 5 * MINUTE + TICK, ended_at=cut_off)
    assert (late.after.outcome, late.after.reason) == ("abandoned", "missed_skip")
    found_late = interrupt(held(), rules, now=NINE + 13 * HOUR + TICK, ended_at=cut_off)
    assert (found_late.after.outcome, found_late.after.reason) == ("abandoned", "stale")


def test_idle_lateness_leaves_out_the_spans_of_all_attempts() -> None:
    rules = Rules(on_interrupt="retry", max_age=HOUR)
    run = held(attempt=2, fence=2, worked_for=3 * HOUR, started_at=NINE + 4 * HOUR)
    at = NINE + 10 * HOUR  # 3 h and 6 h worked, 1 h idle
    assert interrupt(run, rules, now=at, ended_at=at).after.state == "waiting"
    late = interrupt(run, rules, now=at + TICK, ended_at=at)
    assert (late.after.outcome, late.after.reason) == ("abandoned", "stale")


def test_work_seen_last_before_it_began_counts_as_no_time_at_all() -> None:
    step = interrupt(held(started_at=NINE + HOUR), now=NINE + 2 * HOUR, ended_at=NINE)
    assert step.after.worked_for == timedelta(0)


def test_an_interrupted_run_by_hand_is_tried_again_however_late() -> None:
    rules = Rules(on_interrupt="retry", max_age=timedelta(0), on_missed="skip", grace=timedelta(0))
    assert interrupt(held(opened_by="manual"), rules, now=NINE + 30 * DAY, ended_at=NINE).after.state == "waiting"


def test_a_retry_that_is_refused_at_its_start_keeps_the_outcome_of_its_last_attempt() -> None:
    retry = interrupt(held(), now=NINE + MINUTE).after
    step = lifecycle.skip(retry, reason="stale", now=NINE + 8 * HOUR, details={})
    assert (step.after.state, step.after.reason) == ("ended", "stale")
    assert step.after.outcome == "abandoned", "it was opened and started, so it was not skipped"


@pytest.mark.parametrize("refused", ["stale", "paused", "disabled", "task_removed", "queue_full"])
def test_an_end_that_is_no_success_always_has_a_reason_of_the_ends(refused: str) -> None:
    retry = interrupt(held(), now=NINE + MINUTE).after
    again, _ = claim(retry, fence=2, holder="hld_b", now=NINE + MINUTE)
    back = lifecycle.give_back(again, now=NINE + 2 * MINUTE, why="it had not begun").after
    for run in (retry, back):
        after = lifecycle.skip(run, reason=refused, now=NINE + HOUR, details={}).after
        assert after.outcome == "abandoned"
        assert after.reason in reasons.ENDED


def test_what_is_given_back_is_free_of_charge_but_keeps_its_number() -> None:
    step = lifecycle.give_back(held(attempt=3, fence=9, interruptions=1, worked_for=MINUTE), now=NINE + HOUR, why="x")
    assert (step.after.state, step.after.attempt, step.after.fence) == ("waiting", 3, 9)
    assert (step.after.interruptions, step.after.worked_for) == (1, MINUTE)


def test_a_claim_given_back_after_somebody_cancelled_it_does_not_wait_to_be_started() -> None:
    asked = lifecycle.ask_cancel(held(), by="ann", now=NINE).after
    step = lifecycle.give_back(asked, now=NINE + SECOND, why="it had not begun")
    assert (step.after.state, step.after.outcome) == ("ended", "cancelled")


def test_taking_over_keeps_attempt_and_fence_and_gives_a_new_token() -> None:
    step = edges()["take over"]
    assert (step.after.attempt, step.after.fence, step.after.seat) == (1, 1, 1)
    assert (step.after.holder, step.after.claim_token, step.after.handed_to) == ("hld_b", "t", None)
    assert step.entries[0].details["from"] == "hld_a"


def test_an_end_keeps_who_held_it_and_by_which_claim() -> None:
    after = edges()["settle"].after
    assert (after.holder, after.claim_token) == ("hld_a", "token")


def test_an_error_is_kept_up_to_its_limit_and_an_empty_one_is_none() -> None:
    long = lifecycle.settle(held(), "failed", now=NINE, error="x" * 5000).after.error
    assert long == "x" * ERROR_MOST
    assert lifecycle.settle(held(), "failed", now=NINE, error="").after.error is None


def walk(seed: int) -> tuple[Run, list[Entry]]:
    """Take legal edges at random until the run ends or has gone on long enough."""
    draw = random.Random(seed)
    now, fence = NINE, 0
    opening = Opening(due_at=NINE, start_at=NINE, opened_by="schedule", late_by=timedelta(0))
    run, first = lifecycle.opened(task_of(every(HOUR)), opening, id_="run_one", now=now, holder="hld_a")
    entries = [first]
    for _ in range(draw.randrange(1, 12)):
        now += timedelta(seconds=draw.randrange(600))
        holder = draw.choice(["hld_a", "hld_b", "hld_c"])
        if run.state == "waiting":
            choice = draw.choice(["claim", "claim", "claim", "skip", "cancel"])
            if choice == "claim":
                fence += draw.randrange(1, 4)
                run, entry = claim(run, fence=fence, holder=holder, now=now)
                entries.append(entry)
                continue
            step = (
                lifecycle.skip(run, reason="disabled", now=now, details={})
                if choice == "skip"
                else lifecycle.cancel_waiting(run, by="ann", now=now)
            )
        elif run.state == "held":
            choice = draw.choice(
                ["settle", "fail", "interrupt", "give back", "take over", "hand over", "ask", "unconfirmed"]
            )
            match choice:
                case "settle":
                    step = lifecycle.settle(run, draw.choice(["succeeded", "failed", "timed_out"]), now=now)
                case "fail":
                    step = retry(run, now=now, retries=draw.randrange(4))
                case "interrupt":
                    step = interrupt(run, draw.choice([RETRY, FAIL]), now=now, by=holder)
                case "give back":
                    step = lifecycle.give_back(run, now=now, why="x")
                case "take over":
                    step = lifecycle.take_over(
                        run, holder=holder, token="t", lease_end_us=5, boot="boot", now=now, why="holder_died"
                    )
                case "hand over":
                    step = lifecycle.hand_over(run, place="here", lease_end_us=5, now=now)
                case "ask":
                    step = lifecycle.ask_cancel(run, by="ann", now=now)
                case _:
                    step = lifecycle.not_confirmed(run, now=now, survivors="pid 7")
        else:
            break
        assert step.before is run
        run = step.after
        entries += step.entries
    return run, entries


@pytest.mark.parametrize("seed", range(0, 1000, 100))
def test_the_entries_of_a_legal_walk_fold_back_into_the_row(seed: int) -> None:
    for one in range(seed, seed + 100):
        run, entries = walk(one)
        folded = fold(entries)
        assert folded.faults == (), (one, folded.faults)
        assert (folded.state, folded.outcome, folded.reason) == (run.state, run.outcome, run.reason), one
        assert (folded.attempt, folded.fence) == (run.attempt, run.fence), one
        if run.state == "held":
            assert (folded.holder, folded.seat) == (run.holder, run.seat), one
        told = attempts(entries)
        assert len(told) == run.attempt
        assert [item.ended_at is None for item in told[:-1]] == [False] * len(told[:-1])
        assert (bool(told) and told[-1].ended_at is None) == (run.state == "held")


def entry(kind: str, holder: str | None = None, attempt: int | None = None, **details: object) -> Entry:
    reason = details.pop("reason", None)
    return Entry(
        kind=kind,
        at=NINE,
        task="tsk_one",
        run="run_one",
        occurrence="at:x",
        attempt=attempt,
        holder=holder,
        reason=None if reason is None else str(reason),
        details=details,
    )


OPENED = entry("opened")
CLAIM_A = entry("claimed", "hld_a", 1, fence=1, seat=1)
CLAIM_B = entry("claimed", "hld_b", 2, fence=2, seat=1)
SWEPT_A = entry("swept", "hld_a", 1, fence=1, next="retry")
ENDED_A = entry("ended", "hld_a", 1, fence=1, outcome="succeeded")
ILLEGAL: dict[str, Sequence[Entry]] = {
    "opened twice": [OPENED, OPENED],
    "claimed before it was opened": [CLAIM_A],
    "claimed twice at once": [OPENED, CLAIM_A, CLAIM_B],
    "claimed after its end": [OPENED, CLAIM_A, ENDED_A, CLAIM_B],
    "claimed with the fence of the attempt before": [
        OPENED, CLAIM_A, SWEPT_A, entry("claimed", "hld_b", 2, fence=1, seat=1)
    ],
    "claimed with the number of the attempt before": [
        OPENED, CLAIM_A, SWEPT_A, entry("claimed", "hld_b", 1, fence=2, seat=1)
    ],
    "ended by who did not hold it": [OPENED, CLAIM_A, entry("ended", "hld_b", 1, fence=1, outcome="failed")],
    "ended with an old fence": [OPENED, CLAIM_A, SWEPT_A, CLAIM_B, entry("ended", "hld_b", 2, fence=1, outcome="x")],
    "ended by the holder of an attempt that was swept": [OPENED, CLAIM_A, SWEPT_A, CLAIM_B, ENDED_A],
    "ended by its old holder while it waits for its retry": [OPENED, CLAIM_A, SWEPT_A, ENDED_A],
    "ended twice": [OPENED, CLAIM_A, ENDED_A, ENDED_A],
    "given back by who did not hold it": [OPENED, CLAIM_A, entry("returned", "hld_b", 1, fence=1)],
    "given back while it waits": [OPENED, entry("returned", "hld_a", 1, fence=1)],
    "swept after its end": [OPENED, CLAIM_A, ENDED_A, SWEPT_A],
    "taken over from who did not hold it": [
        OPENED, CLAIM_A, entry("taken_over", "hld_c", 1, fence=1, **{"from": "hld_b"})
    ],
    "ended by the former holder after it was taken over": [
        OPENED, CLAIM_A, entry("taken_over", "hld_b", 1, fence=1, **{"from": "hld_a"}), ENDED_A
    ],
    "skipped while it is held": [OPENED, CLAIM_A, entry("skipped", reason="stale")],
    "skipped after its end": [OPENED, CLAIM_A, ENDED_A, entry("skipped", reason="stale")],
    "handed over by who did not hold it": [OPENED, CLAIM_A, entry("handed_over", "hld_b", 1, fence=1)],
}  # fmt: skip


@pytest.mark.parametrize("walked", ILLEGAL)
def test_an_illegal_walk_is_named_as_a_fault(walked: str) -> None:
    assert fold(ILLEGAL[walked]).faults, walked


def test_what_a_loser_tells_of_itself_is_no_fault_and_changes_nothing() -> None:
    before = fold([OPENED, CLAIM_A, SWEPT_A, CLAIM_B])
    loser = lifecycle.fence_lost("run_one", task="tsk_one", attempt=1, fence=1, holder="hld_a", now=NINE)
    after = fold([OPENED, CLAIM_A, SWEPT_A, CLAIM_B, loser])
    assert after == before
