"""Parked runs: what a question makes of a run, and each way out."""

from datetime import UTC, datetime, timedelta

import pytest

from duly.core import lifecycle, parking, questions
from duly.core.lateness import idle_lateness
from duly.core.ledger import attempts, fold
from duly.core.permissions import Then
from duly.core.questions import Asked, Question
from duly.core.run import Entry, Run
from duly.core.values import changed

NINE = datetime(2026, 3, 2, 9, tzinfo=UTC)
HOUR = timedelta(hours=1)
ASKED = Asked(kind="permission", text="execute: rm -rf build", about={"tool": "execute"})


def held(**more: object) -> Run:
    run = Run(
        id="run_1",
        task="tsk_1",
        occurrence="at:2026-03-02T09:00:00Z",
        due_at=NINE,
        opened_at=NINE,
        opened_by="schedule",
        not_before=NINE,
        definition_version=1,
        state="held",
        attempt=1,
        fence=1,
        seat=2,
        holder="hld_1",
        claim_token="token",
        lease_end_us=1,
        lease_boot="boot",
        started_at=NINE,
        taken={"agents": 1},
    )
    return changed(run, more)


def asked_of(run: Run, *, now: datetime = NINE, otherwise: Then = "fail", attached: bool = False) -> Question:
    return questions.put(
        run, ASKED, id_="que_1", until=now + 24 * HOUR, otherwise=otherwise, attached=attached, now=now
    )


def parked(*, now: datetime = NINE + HOUR) -> tuple[Run, Question]:
    run = held()
    question = asked_of(run, now=now)
    return parking.park(run, question, now=now, agent={"session": "ses_1", "prompted": True}).after, question


def told(run: Run, kind: str, **details: object) -> Entry:
    return Entry(kind=kind, at=NINE, run=run.id, attempt=1, holder=run.holder, details={"fence": 1, **details})


def story(run: Run) -> list[Entry]:
    return [Entry(kind="opened", at=NINE, run=run.id), told(run, "claimed", seat=run.seat)]


def test_a_parked_run_keeps_its_seat_and_its_session_and_has_neither_holder_nor_lease_nor_limits() -> None:
    run, _ = parked()
    assert (run.state, run.seat, run.question, run.agent["session"]) == ("parked", 2, "que_1", "ses_1")
    assert (run.holder, run.claim_token, run.lease_end_us, run.taken) == (None, None, None, {})
    assert run.worked_for == HOUR


def test_a_run_that_somebody_cancelled_is_not_parked_but_cancelled() -> None:
    run = held(cancel_asked_at=NINE, cancel_asked_by="ann")
    step = parking.park(run, asked_of(run), now=NINE + HOUR)
    assert (step.after.state, step.after.outcome, step.after.reason) == ("ended", "cancelled", "cancelled_by_hand")


def test_the_wait_for_a_person_makes_no_run_late_and_what_comes_after_the_answer_does() -> None:
    run, question = parked(now=NINE + HOUR)
    after = parking.ready(run, question, now=NINE + 21 * HOUR).after
    assert idle_lateness(after, NINE + 22 * HOUR, worked_for=after.worked_for) == HOUR


def test_an_answered_run_stays_parked_on_its_seat_and_its_claim_that_never_began_parks_it_again() -> None:
    run, question = parked()
    ready = parking.ready(run, question, now=NINE + 2 * HOUR).after
    assert (ready.state, ready.seat, ready.answered_at) == ("parked", 2, NINE + 2 * HOUR)
    again = changed(ready, state="held", attempt=2, fence=2, holder="hld_2", started_at=NINE + 2 * HOUR)
    back = lifecycle.give_back(again, now=NINE + 3 * HOUR, why="too little trust")
    assert (back.after.state, back.after.seat, back.after.answered_at) == ("parked", 2, NINE + 2 * HOUR)


def test_what_ends_with_its_answer_given_has_nothing_left_to_go_on_with() -> None:
    run = held(question="que_1", answered_at=NINE)
    assert lifecycle.settle(run, "failed", now=NINE + HOUR).after.answered_at is None


def test_a_question_that_nobody_answers_fails_its_run_or_is_denied_as_its_rules_had_it() -> None:
    run, question = parked()
    over = questions.at_deadline(question)
    assert (over.state, over.answer) == ("expired", None)
    step = parking.unanswered(run, over, now=question.until)
    assert (step.after.state, step.after.outcome, step.after.reason) == ("ended", "failed", "question_unanswered")
    assert step.after.seat is None
    denied = questions.at_deadline(changed(question, otherwise="deny"))
    assert (denied.state, denied.answer, denied.answered_by) == ("answered", "deny", "duly")


@pytest.mark.parametrize(("late", "over"), [(timedelta(0), True), (-timedelta(microseconds=1), False)])
def test_a_question_is_over_at_its_deadline_and_not_before(late: timedelta, over: bool) -> None:
    question = asked_of(held())
    assert questions.is_over(question, question.until + late) is over


def test_an_answered_run_waits_for_its_task_to_go_on_and_ends_only_where_it_is_too_late() -> None:
    run, question = parked()
    ready = parking.ready(run, question, now=NINE + 2 * HOUR).after
    assert parking.not_admitted(ready, "paused", now=NINE, details={}) is None
    assert parking.not_admitted(ready, "disabled", now=NINE, details={}) is None
    step = parking.not_admitted(ready, "stale", now=NINE + 9 * HOUR, details={})
    assert step is not None
    assert (step.after.outcome, step.after.reason, step.after.seat) == ("abandoned", "stale", None)


def test_the_ledger_of_a_parked_run_folds_into_its_row_and_its_attempt_has_ended_there() -> None:
    run = held()
    step = parking.park(run, asked_of(run), now=NINE + HOUR)
    entries = [*story(run), *step.entries]
    folded = fold(entries)
    assert (folded.state, folded.answered, folded.faults) == ("parked", False, ())
    assert [one.ended_at for one in attempts(entries)] == [NINE + HOUR]
    question = questions.decided(asked_of(run), "allow", by="ann", now=NINE + 2 * HOUR, said=None, note=None)
    entries.append(questions.answered(question, step.after, now=NINE + 2 * HOUR))
    assert fold(entries).answered
    claim = Entry(kind="claimed", at=NINE, run=run.id, attempt=2, holder="hld_2", details={"fence": 2, "seat": 2})
    assert fold([*entries, claim]).faults == ()


def test_folding_tells_a_claim_without_an_answer_and_one_on_another_seat() -> None:
    run = held()
    step = parking.park(run, asked_of(run), now=NINE + HOUR)
    early = Entry(kind="claimed", at=NINE, run=run.id, attempt=2, holder="hld_2", details={"fence": 2, "seat": 1})
    assert fold([*story(run), *step.entries, early]).faults == (
        "claimed while its question was open",
        "claimed on seat 1 while it was parked on seat 2",
    )


def test_a_run_whose_work_lives_while_it_asks_stays_held() -> None:
    run = held()
    step = parking.ask(run, asked_of(run, attached=True), now=NINE + HOUR)
    assert (step.after.state, step.after.holder, step.after.question) == ("held", "hld_1", "que_1")
    folded = fold([*story(run), *step.entries])
    assert (folded.state, folded.faults) == ("held", ())
    assert attempts([*story(run), *step.entries])[0].ended_at is None


def test_what_an_agent_makes_up_is_kept_as_far_as_it_is_text() -> None:
    made_up = Asked(
        kind="question",
        text="a\0b\ud800" + "x" * 9_000,
        options=("o" * 900,) * 90,
        about={"deep": "y" * 30_000},
    )
    question = questions.put(
        held(), made_up, id_="que_1", until=NINE + HOUR, otherwise="fail", attached=False, now=NINE
    )
    assert question.text.startswith("a\N{REPLACEMENT CHARACTER}b?x")
    assert (len(question.text), len(question.options), len(question.options[0])) == (4_000, 50, 500)
    assert question.about == {}
    for about in ({"a": "\0"}, {"a": "\ud800"}, {"a": object()}):
        bad = changed(made_up, about=about)
        one = questions.put(held(), bad, id_="que_1", until=NINE, otherwise="fail", attached=False, now=NINE)
        assert one.about == {}
