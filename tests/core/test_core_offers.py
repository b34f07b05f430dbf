"""Missed occurrences in the hands of people, gates and outages: what rows and entries say of them, field by field."""

from dataclasses import fields, replace
from datetime import timedelta
from typing import Any

import pytest
from core_values import DAY, HOUR, NINE, SECOND, TICK, every, held, task_of, waiting

from duly.core import gating, offers
from duly.core.admission import BEYOND_PRIORITY
from duly.core.outages import LastSeen, Outage, before_start, is_same
from duly.core.outages import entry as outage_entry
from duly.core.run import Entry, Missed, Run
from duly.core.task import Task

LATER = NINE + 2 * HOUR
ONE = Missed(
    id="mis_one",
    task="tsk_one",
    occurrence="at:2026-03-02T09:00:00Z",
    due_at=NINE,
    until_at=NINE + HOUR,
    count=2,
    reason="missed_offer",
    noticed_at=LATER,
    holder="hld_a",
    state="open",
    expires_at=NINE + DAY,
)
OF_EVENT = replace(ONE, occurrence="event:deploy:7", until_at=NINE, count=1)


def wrote(before: Any, after: Any) -> dict[str, Any]:
    """The fields that the second has otherwise than the first."""
    assert type(before) is type(after)
    pairs = {one.name: (getattr(before, one.name), getattr(after, one.name)) for one in fields(before)}
    return {name: new for name, (old, new) in pairs.items() if old != new}


def task(**rules: Any) -> Task:
    return replace(task_of(every(HOUR), **rules), definition_version=3)


def test_accepting_a_count_runs_its_newest_occurrence_and_an_event_the_event_itself() -> None:
    assert offers.newest_of(ONE) == "at:2026-03-02T10:00:00Z"
    assert offers.newest_of(OF_EVENT) == "event:deploy:7"


def test_an_offer_is_over_at_the_very_instant_at_which_its_window_ends() -> None:
    assert offers.seen(ONE, NINE + DAY - TICK) is ONE
    assert wrote(ONE, offers.seen(ONE, NINE + DAY)) == {"state": "expired", "decided_at": NINE + DAY}
    assert offers.seen(replace(ONE, expires_at=None), NINE + 9 * DAY).state == "open"
    assert offers.seen(replace(ONE, state="declined"), NINE + 9 * DAY).state == "declined"


def test_only_a_run_that_ended_for_being_late_goes_on_when_it_is_accepted() -> None:
    run, one = waiting(state="ended", reason="missed_offer"), replace(ONE, run="run_one")
    assert offers.names_a_run_to_go_on(one, run)
    assert not offers.names_a_run_to_go_on(ONE, run)
    assert not offers.names_a_run_to_go_on(one, replace(run, state="waiting"))
    assert not offers.names_a_run_to_go_on(one, replace(run, reason="stale"))


def test_an_accepted_one_opens_a_run_of_the_person_who_accepted_it() -> None:
    made = offers.run_for(ONE, task(priority=2), id_="run_new", by="ann", anyway=True, now=LATER)
    assert made == Run(
        id="run_new",
        task="tsk_one",
        occurrence="at:2026-03-02T10:00:00Z",
        due_at=NINE + HOUR,
        opened_at=LATER,
        opened_by="offer",
        opened_by_whom="ann",
        not_before=LATER,
        definition_version=3,
        anyway=True,
        queued=True,
        project="default",
        rank=-BEYOND_PRIORITY,
    )
    assert -BEYOND_PRIORITY < -1000, "a person's ask goes before what time brought"
    assert not offers.run_for(ONE, task(), id_="run_new", by="ann", anyway=False, now=LATER).anyway


def test_a_run_that_goes_on_waits_anew_and_remembers_only_how_its_last_attempt_ended() -> None:
    ended = held(
        state="ended",
        outcome="failed",
        reason="missed_offer",
        error="late",
        exit_code=1,
        signal=9,
        ended_at=NINE,
        cancel_asked_at=NINE,
        cancel_asked_by="bob",
        cancel_why="overlap",
        cancel_how="kill",
    )
    step = offers.goes_on(ended, task(), missed="mis_one", by="ann", anyway=True, now=LATER)
    assert wrote(ended, step.after) == {
        "version": 3,
        "state": "waiting",
        "opened_by": "offer",
        "opened_by_whom": "ann",
        "anyway": True,
        "queued": True,
        "rank": -BEYOND_PRIORITY,
        "not_before": LATER,
        "tried": "failed",
        "tried_reason": "missed_offer",
        "cancel_why": "cancelled_by_hand",
        "cancel_how": "term",
        **dict.fromkeys(("outcome", "reason", "error", "exit_code", "signal", "holder", "claim_token")),
        **dict.fromkeys(("started_at", "ended_at", "cancel_asked_at", "cancel_asked_by")),
    }
    assert step.before is ended
    (told,) = step.entries
    assert told == Entry(
        kind="accepted",
        at=LATER,
        task="tsk_one",
        occurrence="at:2026-03-02T09:00:00Z",
        run="run_one",
        by="ann",
        details={"missed": "mis_one", "goes_on": True},
    )
    with pytest.raises(AssertionError):
        offers.goes_on(waiting(), task(), missed="mis_one", by="ann", anyway=True, now=LATER)


def test_each_answer_writes_who_decided_when_and_no_more() -> None:
    accepted = offers.accepted(ONE, "run_new", by="ann", now=LATER)
    assert wrote(ONE, accepted) == {"state": "accepted", "run": "run_new", "decided_by": "ann", "decided_at": LATER}
    declined = offers.declined(ONE, by="ann", note="no need", now=LATER)
    assert wrote(ONE, declined) == {
        "state": "declined",
        "decided_by": "ann",
        "decided_at": LATER,
        "note": "no need",
    }
    assert wrote(ONE, offers.expired(ONE)) == {"state": "expired", "decided_at": NINE + DAY}
    closed = offers.closed(ONE, by="ann", now=LATER)
    assert wrote(ONE, closed) == {"state": "closed", "decided_by": "ann", "decided_at": LATER}
    with pytest.raises(AssertionError):
        offers.expired(replace(ONE, expires_at=None))


def test_what_became_of_a_record_is_told_with_its_count_its_bounds_and_its_note() -> None:
    declined = offers.declined(ONE, by="ann", note="no need", now=LATER)
    assert offers.told(declined, "declined", now=LATER, reason="why") == Entry(
        kind="declined",
        at=LATER,
        task="tsk_one",
        occurrence="at:2026-03-02T09:00:00Z",
        reason="why",
        by="ann",
        count=2,
        until_at=NINE + HOUR,
        details={"missed": "mis_one", "note": "no need"},
    )


def test_an_accepted_record_of_one_is_told_as_the_run_that_it_opened() -> None:
    run = waiting(id="run_new", occurrence="event:deploy:7")
    told = offers.told(offers.accepted(OF_EVENT, "run_new", by="ann", now=LATER), "accepted", now=LATER, run=run)
    assert told == Entry(
        kind="accepted",
        at=LATER,
        task="tsk_one",
        occurrence="event:deploy:7",
        run="run_new",
        by="ann",
        count=1,
        details={"missed": "mis_one"},
    )
    newest = offers.told(ONE, "accepted", now=LATER, run=waiting(occurrence="at:2026-03-02T10:00:00Z"))
    assert newest.occurrence == "at:2026-03-02T10:00:00Z"


def test_a_closed_gate_says_in_words_why_the_claim_was_given_back_and_keeps_the_figures() -> None:
    run = held(error="of the attempt before")
    step = gating.not_now(run, now=LATER, reason="gate_closed", told="it said no", details={"exit_code": 1})
    assert step.before is run
    returned, skipped = step.entries
    assert returned.details == {"why": "it said no", "fence": 1}
    assert (returned.at, returned.holder) == (LATER, "hld_a")
    assert (skipped.kind, skipped.at, skipped.reason) == ("skipped", LATER, "gate_closed")
    assert (step.after.error, step.after.ended_at) == ("it said no", LATER)


def test_a_gate_that_let_a_run_go_is_told_with_its_claim() -> None:
    assert gating.began(held(attempt=2, fence=5), now=LATER, details={"gate": "open"}) == Entry(
        kind="began",
        at=LATER,
        task="tsk_one",
        occurrence="at:2026-03-02T09:00:00Z",
        run="run_one",
        attempt=2,
        holder="hld_a",
        details={"fence": 5, "gate": "open"},
    )


SLEPT = Outage(cause="suspend", since=NINE, until=NINE + HOUR + timedelta(microseconds=1600), details={"more": 1})


def of_sleep() -> Entry:
    return outage_entry(SLEPT, now=LATER, holder="hld_a", host="edith", others=2)


def test_an_outage_is_told_with_cause_bounds_length_and_where_it_was() -> None:
    assert of_sleep() == Entry(
        kind="outage",
        at=LATER,
        reason="suspend",
        holder="hld_a",
        until_at=SLEPT.until,
        details={
            "cause": "suspend",
            "since": "2026-03-02T09:00:00Z",
            "until": "2026-03-02T10:00:00.001600Z",
            "for_s": 3600.002,
            "host": "edith",
            "others": 2,
            "more": 1,
        },
    )


def test_before_a_start_it_is_told_who_was_last_and_whether_it_had_left() -> None:
    last = LastSeen(holder="hld_a", boot="one", seen_at=NINE, left=True)
    found = before_start(last, boot="one", now=LATER)
    assert found == Outage(cause="stopped", since=NINE, until=LATER, details={"last": "hld_a", "left": True})


@pytest.mark.parametrize(
    ("changes", "same"),
    [
        ({}, True),
        ({"until_at": SLEPT.until + 10 * SECOND}, True),
        ({"until_at": SLEPT.until - 10 * SECOND}, True),
        ({"until_at": SLEPT.until + 10 * SECOND + TICK}, False),
        ({"until_at": None}, False),
        ({"reason": "boot"}, False),
        ({"details": {"host": "edith", "for_s": 7200.0032}}, True),
        ({"details": {"host": "edith", "for_s": 7201}}, False),
        ({"details": {"host": "edith", "for_s": "an hour"}}, False),
        ({"details": {"host": "edith"}}, False),
        ({"details": {"host": "frank", "for_s": 3600}}, False),
        ({"details": {"for_s": 3600}}, False),
    ],
)
def test_an_entry_is_of_the_same_outage_if_cause_host_end_and_about_the_length_agree(
    changes: dict[str, Any], same: bool
) -> None:
    assert is_same(replace(of_sleep(), **changes), SLEPT, "edith") is same
