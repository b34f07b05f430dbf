"""Holders of work that asks: parked and gone on with by another, or alive and answered where it is."""

import threading
from collections.abc import Callable, Mapping
from datetime import timedelta

import pytest
from holder_scene import WITHIN_S, Stage, until_idle
from sqlalchemy import bindparam, update

from duly.clock import to_us
from duly.core.questions import Answered, Asked, Question
from duly.core.run import Run
from duly.holder.holder import Holder
from duly.operations import questions, runs
from duly.ports import Assignment, How, Outcome, Parked
from duly.store.sql import Statement
from duly.store.tables import questions as table

MAY_I = Asked(kind="permission", text="execute: make clean", key="call_1")
DONE = Outcome(word="succeeded")
MINUTE = timedelta(minutes=1)
SHORTER = Statement(
    lambda: update(table).where(table.c.id == bindparam("que")).values(until_us=bindparam("until_us"), otherwise="deny")
)


class Talks:
    """What the work of one test does: it asks by its script, and what it was given is kept."""

    def __init__(self) -> None:
        self.starts: list[Assignment] = []
        self.answers: list[Answered] = []
        self.stops: list[str] = []
        self.asks_alive = False
        self.breaks = False
        self.over = threading.Event()
        self.changed = threading.Condition()

    def wait(self, until: Callable[[], bool]) -> None:
        with self.changed:
            assert self.changed.wait_for(until, WITHIN_S)

    def note(self, where: list[object], what: object) -> None:
        with self.changed:
            where.append(what)
            self.changed.notify_all()


class Talking:
    """Asks at its first start: it ends so, or it lives and waits for the answer, and then until the test lets it go."""

    kept = False
    at_once = True

    def __init__(self, talks: Talks) -> None:
        self._talks = talks
        self._answered = threading.Event()
        self._stopped = threading.Event()
        self.on_asked: Callable[[Asked], None] = lambda _asked: None

    def check(self, action: Mapping[str, object]) -> None:
        return None

    def perform(self, assignment: Assignment, checkpoint: Mapping[str, object] | None) -> Outcome | Parked:
        talks = self._talks
        talks.note(talks.starts, assignment)  # type: ignore[arg-type]
        if assignment.task_name == "quick" or assignment.resumes is not None:
            return DONE
        if not talks.asks_alive:
            return Parked(asked=MAY_I, agent={"session": "ses_1", "prompted": True})
        self.on_asked(MAY_I)
        while not (self._answered.wait(0.01) and talks.over.is_set()):
            if self._stopped.is_set():
                return Outcome(word="cancelled", reason="cancelled_by_hand")
        return DONE

    def answer(self, given: Answered) -> None:
        if self._talks.breaks:
            raise ConnectionError("the agent is gone")
        self._talks.note(self._talks.answers, given)  # type: ignore[arg-type]
        self._answered.set()

    def stop(self, how: How) -> None:
        self._talks.stops.append(how)
        self._stopped.set()


@pytest.fixture
def talks() -> Talks:
    return Talks()


def holder(stage: Stage, talks: Talks, slots: int = 1) -> Holder:
    return stage.holder(slots=slots, runner=lambda: Talking(talks))


def by_hand(stage: Stage, name: str) -> Run:
    return runs.run_now(stage.open(), name, by="ann")


def standing(stage: Stage, run: Run) -> Run:
    return next(one for one in stage.read().runs if one.id == run.id)


def turn_until(holder: Holder, stage: Stage, run: Run, state: str) -> Run:
    """Turn until the run stands so; its work is done in threads of its own."""
    for _ in range(2_000):
        holder.step()
        found = standing(stage, run)
        if found.state == state:
            return found
        holder._inbox.wait(0.01)
    raise AssertionError(standing(stage, run))


def open_of(stage: Stage, run: Run) -> list[Question]:
    with stage.store.read() as session:
        return session.questions.open_of(run.id)


def ask_alive(stage: Stage, talks: Talks, holder: Holder, name: str = "asks") -> tuple[Run, Question]:
    talks.asks_alive = True
    run = by_hand(stage, name)
    for _ in range(2_000):
        holder.step()
        if asked := open_of(stage, run):
            return run, asked[0]
        holder._inbox.wait(0.01)
    raise AssertionError(standing(stage, run))


def answer(stage: Stage, question: Question, choice: str = "allow") -> None:
    questions.answer(stage.open(), question.id, by="bob", choice=choice)


def test_another_holder_goes_on_in_the_same_session_with_the_answer(stage: Stage, talks: Talks) -> None:
    stage.add("asks", "manual")
    first = holder(stage, talks)
    run = by_hand(stage, "asks")
    turn_until(first, stage, run, "parked")
    assert first.holdings.get(run.id) is None
    (question,) = open_of(stage, run)
    first.die()
    stage.holders.remove(first)
    answer(stage, question)
    second = holder(stage, talks)
    ended = turn_until(second, stage, run, "ended")
    assert (ended.outcome, ended.attempt, ended.agent["session"]) == ("succeeded", 2, "ses_1")
    resumes = talks.starts[-1].resumes
    assert resumes is not None
    assert (resumes.session, resumes.prompted, resumes.why) == ("ses_1", True, "answered")
    assert resumes.answer is not None
    assert (resumes.answer.answer, resumes.answer.by, resumes.answer.asked.text) == ("allow", "bob", MAY_I.text)


def test_a_parked_run_leaves_its_slot_to_others(stage: Stage, talks: Talks) -> None:
    stage.add("asks", "manual")
    stage.add("quick", "manual")
    one = holder(stage, talks, slots=1)
    run = by_hand(stage, "asks")
    turn_until(one, stage, run, "parked")
    other = by_hand(stage, "quick")
    assert turn_until(one, stage, other, "ended").outcome == "succeeded"
    assert standing(stage, run).state == "parked"


def test_the_loop_wakes_at_the_deadline_of_a_question_and_ends_its_run(stage: Stage, talks: Talks) -> None:
    stage.add("asks", "manual")
    one = holder(stage, talks)
    run = by_hand(stage, "asks")
    turn_until(one, stage, run, "parked")
    until_idle(one)
    (question,) = open_of(stage, run)
    assert one.writer.soonest == question.until
    stage.clock.pass_(question.until - stage.clock.now())
    until_idle(one)
    ended = standing(stage, run)
    assert (ended.state, ended.outcome, ended.reason) == ("ended", "failed", "question_unanswered")


def test_work_that_lives_while_it_asks_gives_its_slot_away_and_is_answered_when_it_has_one_again(
    stage: Stage, talks: Talks
) -> None:
    stage.add("asks", "manual")
    stage.add("other", "manual")
    one = holder(stage, talks, slots=1)
    run, question = ask_alive(stage, talks, one)
    assert standing(stage, run).state == "held"
    other, asked = ask_alive(stage, talks, one, "other")
    answer(stage, question)
    until_idle(one)
    talks.wait(lambda: len(talks.answers) == 1)
    assert one.writer._carriers.free == 0, "it has the one slot again"
    answer(stage, asked)
    for _ in range(5):
        one.step()
    assert len(talks.answers) == 1, "the other's answer waits for a slot"
    assert talks.answers[0].asked == MAY_I, "with the agent's own name for it"
    talks.over.set()
    assert turn_until(one, stage, run, "ended").outcome == "succeeded"
    assert turn_until(one, stage, other, "ended").outcome == "succeeded"
    assert one.writer._carriers.free == 1


def test_work_that_lives_and_is_answered_by_nobody_is_ended_at_the_deadline(stage: Stage, talks: Talks) -> None:
    stage.add("asks", "manual")
    one = holder(stage, talks)
    run, question = ask_alive(stage, talks, one)
    stage.clock.civil = question.until
    ended = turn_until(one, stage, run, "ended")
    assert (ended.outcome, ended.reason) == ("failed", "question_unanswered")
    assert talks.stops == ["term"]


def test_work_that_lives_is_denied_at_the_deadline_where_its_rules_say_so(stage: Stage, talks: Talks) -> None:
    stage.add("asks", "manual")
    one = holder(stage, talks)
    run, question = ask_alive(stage, talks, one)
    _deny_within(stage, question, MINUTE)
    talks.over.set()
    stage.clock.civil = question.asked_at + MINUTE
    assert turn_until(one, stage, run, "ended").outcome == "succeeded"
    assert [(given.answer, given.by) for given in talks.answers] == [("deny", "duly")]


def test_a_runner_that_cannot_take_its_answer_fails_and_its_holder_goes_on(stage: Stage, talks: Talks) -> None:
    stage.add("asks", "manual")
    stage.add("quick", "manual")
    one = holder(stage, talks)
    run, question = ask_alive(stage, talks, one)
    talks.breaks = True
    answer(stage, question)
    ended = turn_until(one, stage, run, "ended")
    assert (ended.outcome, ended.reason) == ("failed", "agent_error")
    assert turn_until(one, stage, by_hand(stage, "quick"), "ended").outcome == "succeeded"


def test_work_that_is_cancelled_while_it_asks_ends_and_is_asked_about_no_longer(stage: Stage, talks: Talks) -> None:
    stage.add("asks", "manual")
    one = holder(stage, talks)
    run, _ = ask_alive(stage, talks, one)
    runs.cancel(stage.open(), run.id, by="ann")
    ended = turn_until(one, stage, run, "ended")
    assert (ended.outcome, ended.reason) == ("cancelled", "cancelled_by_hand")
    assert open_of(stage, run) == []
    assert one.writer._carriers.free == 1


def test_who_serves_until_idle_stays_for_what_is_parked(stage: Stage, talks: Talks) -> None:
    stage.add("asks", "manual")
    one = holder(stage, talks)
    run = by_hand(stage, "asks")
    turn_until(one, stage, run, "parked")
    until_idle(one)
    assert not one._is_idle()
    answer(stage, open_of(stage, run)[0])
    turn_until(one, stage, run, "ended")
    until_idle(one)
    assert one._is_idle()


def _deny_within(stage: Stage, question: Question, within: timedelta) -> None:
    with stage.open().write() as session:
        session.line.run(SHORTER, que=question.id, until_us=to_us(question.asked_at + within))
