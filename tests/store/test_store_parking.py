"""Parked runs over real connections: asked, answered once, gone on with on their own seat, or over."""

from pathlib import Path

import pytest
from store_offers import refused
from store_parking import end, waits
from store_people import by_hand, switch
from store_questions import MAY_I, WHICH, answer, asks, bounded, open_of, parked, question
from store_scene import DAY, HOUR, NINE, SECOND, TICK, Scene, losing, scene, without

from duly.core import questions
from duly.core.amounts import Allowance
from duly.core.questions import Question
from duly.core.task import Rules
from duly.errors import StoreUnknown
from duly.holder.planner import Planner
from duly.holder.settling import Returned
from duly.operations import budgets as budget_operations
from duly.operations import limits as limit_operations
from duly.operations.runs import cancel
from duly.store import questions as kept
from duly.store import waiting
from duly.store.answering import answer as write_answer
from duly.store.glances import glance, soonest

UNANSWERED = ("ended", "failed", "question_unanswered")


def turn(s: Scene) -> None:
    """What a turn of whoever serves looks at besides claims."""
    with s.connect().write() as session:
        Planner("hld_b").step(session)


def test_a_run_that_asks_is_parked_with_its_question_and_goes_on_with_the_answer_on_its_seat(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        run, asked = parked(s)
        assert (run.state, run.seat, run.holder, run.agent["session"]) == ("parked", 1, None, "ses_1")
        assert (asked.run, asked.attempt, asked.text, asked.until) == (run.id, 1, MAY_I.text, NINE + HOUR + DAY)
        assert waits(s, run) == ("question", asked.id)
        assert s.claim(holder="hld_b") == [], "nothing goes on before the answer"
        s.at(NINE + 2 * HOUR)
        done = answer(s, asked, note="once")
        assert (done.state, done.answer, done.answered_by, done.note) == ("answered", "allow", "bob", "once")
        assert s.run(run.id).state == "parked", "it never passes through waiting"
        (won,) = s.claim(s.connect(), holder="hld_b")
        assert (won.run.id, won.run.attempt, won.run.seat) == (run.id, 2, 1)
        assert won.run.fence > run.fence
        s.settle(won, holder="hld_b")
        assert end(s.run(run.id)) == ("ended", "succeeded", None)
        assert s.faults() == []
        assert [one for one in s.kinds(run.task) if one not in {"defined", "opened", "stretch"}] == [
            *("claimed", "parked", "answered", "claimed", "ended"),
        ]


def test_the_seat_of_a_parked_run_is_not_free_and_who_is_skipped_is_told_of_the_question(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        run, asked = parked(s)
        s.at(NINE + 2 * HOUR)
        s.plan()
        assert s.claim() == []
        (skipped,) = [one for one in s.entries(run.task) if one.kind == "skipped"]
        assert skipped.reason == "already_running"
        assert (skipped.details["run"], skipped.details["question"]) == (run.id, asked.id)
        said = refused(lambda: by_hand(s))
        assert (said.reason, said.details["question"]) == ("already_running", asked.id)
        assert s.faults() == []


def test_an_answered_run_keeps_its_seat_from_those_that_queue_for_it(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        run, asked = parked(s, overlap="queue")
        s.at(NINE + 2 * HOUR)
        s.plan()
        answer(s, asked)
        won = s.claim()
        assert [one.run.id for one in won] == [run.id]
        s.settle(won[0])
        assert [one.run.attempt for one in s.claim()] == [1], "and then comes who waited"


def test_of_two_answers_one_wins_and_the_other_is_told_who_was_first(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        _, asked = parked(s)
        first = answer(s, asked, "deny")
        said = refused(lambda: answer(s, asked, "allow"))
        assert (said.reason, said.details["answered_by"], said.details["answer"]) == ("already_answered", "bob", "deny")
        assert question(s, asked) == first


def late_answer(s: Scene, stale: Question) -> bool:
    after = questions.decided(stale, "allow", by="eve", now=s.clock.now(), said=None, note=None)
    with s.connect().write() as session:
        return write_answer(session, after)


def test_an_answer_is_written_only_while_its_question_is_open(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        run, stale = parked(s)
        answer(s, stale, "deny")
        assert not late_answer(s, stale), "read while it was open, written when it was not"
        assert question(s, stale).answer == "deny"
        assert s.kinds(run.task).count("answered") == 1
        with without(kept.DECIDE, "questions.state = 'open'"), s.connect().write() as session:
            after = questions.decided(stale, "allow", by="eve", now=s.clock.now(), said=None, note=None)
            assert session.questions.decide(after), "the state is what refuses it"


@pytest.mark.parametrize("guard", ["read", "write"])
def test_a_parked_run_is_claimed_only_with_its_answer(tmp_path: Path, guard: str) -> None:
    with scene(tmp_path) as s:
        parked(s)
        assert s.claim() == []
        with without(waiting.READY, "runs.state = 'parked' AND runs.answered_us IS NOT NULL", "runs.state = 'parked'"):
            if guard == "read":
                assert s.claim() == [], "its claim asks once more"
                return
            condition = "(runs.state = 'parked' AND runs.answered_us IS NOT NULL)"
            with without(waiting.CLAIM, "runs.state = 'parked' AND runs.answered_us IS NOT NULL", "1 = 1"):
                assert s.claim(), f"{condition} is what refuses it"


def test_a_question_that_nobody_answers_fails_its_run_at_its_deadline_and_frees_the_seat(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        run, asked = parked(s, retries=3)
        asked = bounded(s, asked, 2 * HOUR)
        with s.store.read() as session:
            assert soonest(glance(session, "")) <= asked.until  # type: ignore[operator]
        s.at(asked.until - TICK)
        turn(s)
        assert s.run(run.id).state == "parked"
        s.at(asked.until)
        turn(s)
        assert end(s.run(run.id)) == UNANSWERED
        assert question(s, asked).state == "expired"
        assert s.task(run.task).failures_in_a_row == 1
        assert refused(lambda: answer(s, asked)).reason == "already_answered"
        assert s.run(run.id).seat is None
        assert s.faults() == []


def test_a_question_that_nobody_answers_may_be_denied_by_its_deadline_and_the_run_goes_on(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        run, asked = parked(s)
        asked = bounded(s, asked, 2 * HOUR, "deny")
        s.at(asked.until)
        turn(s)
        done = question(s, asked)
        assert (done.state, done.answer, done.answered_by) == ("answered", "deny", "duly")
        assert [one.run.id for one in s.claim()] == [run.id]
        assert s.faults() == []


def test_an_answer_at_the_deadline_itself_comes_too_late_whoever_serves(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        run, asked = parked(s)
        asked = bounded(s, asked, 2 * HOUR)
        s.at(asked.until)
        said = refused(lambda: answer(s, asked))
        assert said.reason == "already_answered"
        assert end(s.run(run.id)) != UNANSWERED, "what is refused writes nothing"
        turn(s)
        assert end(s.run(run.id)) == UNANSWERED


def test_a_question_has_the_time_and_the_end_that_its_rules_give_it(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        won = s.held()
        delivery = s.delivery(won, asks())
        delivery.holding.rules = Rules(unattended="park", answer_within=3 * HOUR, then="deny")
        with s.store.write() as session:
            s.settler().step(session, [delivery])
        asked = open_of(s, won.run.id)
        assert (asked.until - asked.asked_at, asked.otherwise) == (3 * HOUR, "deny")


def test_many_failures_by_questions_hold_their_task(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        run, asked = parked(s, pause_after=1)
        s.at(asked.until)
        turn(s)
        assert end(s.run(run.id)) == UNANSWERED
        with s.store.read() as session:
            assert [one.target for one in session.pauses.all()] == [run.task]


def test_a_parked_run_is_cancelled_by_its_end_and_its_question_is_asked_no_longer(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        run, asked = parked(s)
        assert end(cancel(s.store, run.id, by="ann")) == ("ended", "cancelled", "cancelled_by_hand")
        assert question(s, asked).state == "expired"
        assert refused(lambda: answer(s, asked)).reason == "already_answered"
        assert s.faults() == []


def test_an_answered_run_that_has_not_gone_on_yet_is_cancelled_like_any_parked_one(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        run, asked = parked(s)
        answer(s, asked)
        assert end(cancel(s.store, run.id, by="ann")) == ("ended", "cancelled", "cancelled_by_hand")
        assert s.claim() == []
        assert question(s, asked).state == "answered"
        assert s.faults() == []


def test_a_newer_occurrence_takes_the_seat_of_a_parked_run_where_its_rule_says_so(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        run, asked = parked(s, overlap="cancel_running")
        s.at(NINE + 2 * HOUR)
        s.plan()
        (won,) = s.claim()
        assert won.run.id != run.id
        assert end(s.run(run.id)) == ("ended", "cancelled", "overlap")
        assert question(s, asked).state == "expired"
        assert s.faults() == []


def test_removing_a_task_ends_what_is_parked(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        run, asked = parked(s)
        switch(s, "remove")
        assert end(s.run(run.id)) == ("ended", "cancelled", "cancelled_by_hand")
        assert question(s, asked).state == "expired"
        assert s.faults() == []


@pytest.mark.parametrize(("off", "on"), [("pause", "unpause"), ("disable", "enable")])
def test_an_answered_run_of_a_task_that_is_held_goes_on_when_that_is_over(tmp_path: Path, off: str, on: str) -> None:
    with scene(tmp_path) as s:
        run, asked = parked(s)
        switch(s, off)
        assert s.run(run.id).state == "parked", "live runs stay"
        answer(s, asked)
        assert s.claim() == []
        assert waits(s, run) == ("pause", None)
        switch(s, on)
        assert [one.run.id for one in s.claim()] == [run.id]
        assert s.faults() == []


def test_what_may_not_go_on_yet_keeps_no_other_answered_run_from_it(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        _, first = parked(s, "one")
        second, asked = parked(s, "two")
        switch(s, "pause", "one")
        answer(s, first)
        answer(s, asked)
        assert [one.run.id for one in s.claim(free=1)] == [second.id]


def test_a_parked_run_leaves_its_limits_to_others_and_asks_for_them_again(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        limit_operations.set_limit(s.store, "gpu", 1, rate=None, rate_for=None, by="ann")
        run, asked = parked(s, limits={"gpu": 1})
        other = s.held("two", limits={"gpu": 1})
        answer(s, asked)
        assert s.claim() == []
        assert waits(s, run) == ("limit", "gpu")
        s.settle(other)
        assert run.id in [one.run.id for one in s.claim()]
        assert s.faults() == []


def test_a_parked_run_is_one_run_of_its_budget_however_often_it_asks(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        budget_operations.set_budget(s.store, "store", Allowance(runs=1, per="month"), by="ann")
        run, asked = parked(s)
        answer(s, asked)
        (won,) = s.claim()
        assert won.run.id == run.id
        s.settle(won, asks(WHICH))
        answer(s, open_of(s, run.id), choice=None, text="main")
        (again,) = s.claim()
        assert again.run.attempt == 3
        s.settle(again)
        assert s.faults() == []


def test_the_wait_for_a_person_is_not_counted_as_lateness_and_the_wait_after_it_is(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        run, asked = parked(s, "one", max_age=2 * HOUR)
        late, later = parked(s, "two", max_age=2 * HOUR)
        s.at(NINE + 20 * HOUR)
        answer(s, asked)
        answer(s, later)
        assert [one.run.id for one in s.claim(free=1)] == [run.id]
        s.at(NINE + 22 * HOUR + SECOND)
        s.claim()
        assert end(s.run(late.id)) == ("ended", "abandoned", "stale")
        assert s.faults() == []


def test_a_claim_that_never_began_parks_its_run_again_with_its_answer(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        run, asked = parked(s)
        answer(s, asked)
        (won,) = s.claim()
        s.settle(won, Returned(why="too little of the lease was left"))
        assert (s.run(run.id).state, s.run(run.id).seat) == ("parked", 1)
        (again,) = s.claim(s.connect(), holder="hld_b")
        assert (again.run.id, again.run.attempt) == (run.id, 3)
        assert s.faults() == []


def test_a_park_whose_commit_was_answered_by_nobody_is_written_once(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        won = s.held()
        with losing(s.store), pytest.raises(StoreUnknown):
            s.settle(won, asks())
        settled = s.settle(won, asks())
        assert settled.run is not None
        assert (settled.run.state, settled.run.question) == ("parked", open_of(s, won.run.id).id)
        assert s.kinds(won.run.task).count("parked") == 1
        assert s.faults() == []


def test_a_holder_that_lost_its_run_parks_nothing(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        won = s.held()
        s.sql("UPDATE runs SET claim_token = 'theirs', version = version + 1 WHERE id = ?", won.run.id)
        assert s.settle(won, asks()).run is None
        assert s.run(won.run.id).state == "held"
        with s.store.read() as session:
            assert session.questions.listed() == []


def test_a_wish_to_cancel_that_came_before_the_question_is_obeyed(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        won = s.held()
        cancel(s.store, won.run.id, by="ann")
        s.settle(won, asks())
        assert end(s.run(won.run.id)) == ("ended", "cancelled", "cancelled_by_hand")
        with s.store.read() as session:
            assert session.questions.listed() == []
