"""Questions of work that lives, and answers: who may give which, once, and what a hand may not do to them."""

from datetime import timedelta
from pathlib import Path

import pytest
from store_offers import refused
from store_parking import end, waits
from store_questions import MAY_I, WHICH, answer, asks, attached, open_of, parked, question
from store_scene import DAY, HOUR, NINE, losing, scene

from duly import clock as machine
from duly.errors import Invalid, StoreUnknown
from duly.holder.settling import Asks, Interrupted
from duly.ids import new
from duly.operations import pruning
from duly.operations import questions as question_operations
from duly.operations.runs import cancel
from duly.ports import Outcome


def test_work_that_lives_while_it_asks_keeps_its_run_held_and_ends_with_its_question(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        won, asked = attached(s)
        run = s.run(won.run.id)
        assert (run.state, run.holder, asked.attached) == ("held", "hld_a", True)
        assert waits(s, run) == ("question", asked.id)
        s.settle(won, Outcome(word="failed", reason="agent_error"))
        assert end(s.run(run.id)) == ("ended", "failed", "agent_error")
        assert question(s, asked).state == "expired"
        assert s.faults() == []


def test_work_that_lives_while_it_asks_is_answered_where_it_is(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        won, asked = attached(s)
        answer(s, asked)
        run = s.run(won.run.id)
        assert (run.state, run.answered_at) == ("held", None)
        assert s.claim() == []
        s.settle(won)
        assert end(s.run(run.id)) == ("ended", "succeeded", None)
        assert s.faults() == []


def test_a_question_whose_commit_was_answered_by_nobody_is_put_once(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        won = s.held()
        verdict = Asks(asked=MAY_I, question=new("que"))
        with losing(s.store), pytest.raises(StoreUnknown):
            s.settle(won, verdict)
        assert s.settle(won, verdict).run is not None
        assert s.kinds(won.run.task).count("parked") == 1


def test_the_question_of_a_holder_that_died_is_closed_with_its_work(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        won, asked = attached(s, on_interrupt="retry")
        s.settle(won, Interrupted(why="holder_died", ended_at=s.clock.now()))
        assert s.run(won.run.id).state == "waiting"
        assert question(s, asked).state == "expired"
        assert s.faults() == []


def test_a_run_that_parks_asks_no_longer_what_it_asked_while_it_lived(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        won, before = attached(s)
        s.settle(won, asks(WHICH))
        assert question(s, before).state == "expired"
        assert open_of(s, won.run.id).text == WHICH.text
        assert s.faults() == []


@pytest.mark.parametrize(
    ("choice", "text", "field"),
    [(None, None, "answer"), ("allow", "x", "answer"), ("yes", None, "answer"), (None, "main", "text")],
)
def test_what_is_no_answer_to_a_permission_is_refused_and_it_stays_open(
    tmp_path: Path, choice: str | None, text: str | None, field: str
) -> None:
    with scene(tmp_path) as s:
        _, asked = parked(s)
        with pytest.raises(Invalid) as caught:
            answer(s, asked, choice, text=text)
        assert caught.value.field == field
        assert question(s, asked).state == "open"


def test_a_question_is_answered_in_words_or_not_at_all(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        _, asked = parked(s, asked=WHICH)
        with pytest.raises(Invalid):
            answer(s, asked, "allow")
        done = answer(s, asked, None, text="main")
        assert (done.answer, done.said) == ("text", "main")


def test_a_question_is_found_by_its_ending_and_an_unknown_one_is_refused(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        _, asked = parked(s)
        store = s.connect()
        said = refused(lambda: question_operations.answer(store, "zzzzzzzz", by="bob", choice="allow"))
        assert said.reason == "unknown_id"
        assert question_operations.answer(store, asked.id[-8:], by="bob", choice="allow").id == asked.id


def test_who_looks_at_the_store_sees_at_once_what_its_deadline_has_decided(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        _, asked = parked(s)
        s.at(asked.until + timedelta(seconds=1))
        with s.store.read() as session:
            ((item,), _) = question_operations.listed(session, task=None, only_open=False, cursor=None, most=9)
            assert session.questions.open_count(session.now) == 0
            assert question_operations.listed(session, task=None, only_open=True, cursor=None, most=9) == ([], None)
        assert item["state"] == "expired"


def test_a_parked_run_of_several_goes_on_on_its_own_seat(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        first = s.held(seats=2, overlap="queue")
        s.at(NINE + 2 * HOUR)
        s.plan()
        (second,) = s.claim()
        assert (first.run.seat, second.run.seat) == (1, 2)
        s.settle(second, asks())
        answer(s, open_of(s, second.run.id))
        s.settle(first)
        (won,) = s.claim()
        assert (won.run.id, won.run.seat) == (second.run.id, 2), "the lower one is free, and not its own"
        assert s.faults() == []


@pytest.mark.parametrize(
    ("hand", "told"),
    [
        ("UPDATE questions SET state = 'expired'", "which is expired"),
        ("DELETE FROM questions", "asks nothing"),
        ("UPDATE questions SET state = 'answered', answer = 'allow'", "the ledger tells of no answer"),
        ("UPDATE runs SET answered_us = 1", "has its answer"),
        ("UPDATE runs SET state = 'ended', outcome = 'failed', seat = NULL", "is open, and its run is ended"),
    ],
)
def test_verify_names_what_a_hand_did_to_a_question(tmp_path: Path, hand: str, told: str) -> None:
    with scene(tmp_path) as s:
        parked(s)
        assert s.faults() == []
        s.sql(hand)
        assert any(told in text for promise, text in s.faults() if promise == "P6"), s.faults()


def test_questions_go_with_their_runs_when_these_are_pruned(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        run, asked = parked(s)
        cancel(s.store, run.id, by="ann")
        # Ids tell the time of the machine that made them.
        s.at(machine.now() + 200 * DAY)
        s.plan()
        for won in s.claim():
            s.settle(won)
        with s.store.read() as session:
            wanted = pruning.wish(session, 90 * DAY)
        pruning.prune(s.store, wanted, take=True)
        with s.store.read() as session:
            assert session.runs.by_id(run.id) is None
            assert session.questions.by_id(asked.id) is None
        assert s.faults() == []
