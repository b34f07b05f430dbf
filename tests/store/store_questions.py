"""Runs whose work asks something, as the tests of the store need them."""

from datetime import timedelta
from typing import Any

from store_scene import Scene

from duly.clock import to_us
from duly.core.questions import Asked, Question
from duly.core.run import Run
from duly.holder.dispatcher import Won
from duly.holder.settling import Asks
from duly.ids import new
from duly.operations import questions as question_operations
from duly.ports import Parked

MAY_I = Asked(kind="permission", text="execute: make clean", about={"tool": "execute"})
WHICH = Asked(kind="question", text="Which branch?", options=("main", "next"))
SPOKEN = {"session": "ses_1", "prompted": True, "usage": {"tokens_in": 10, "tokens_out": 5}}


def asks(asked: Asked = MAY_I) -> Parked:
    return Parked(asked=asked, agent=SPOKEN)


def parked(s: Scene, name: str = "one", asked: Asked = MAY_I, **rules: Any) -> tuple[Run, Question]:
    """A task of its own with one run that has asked, at NINE and an hour."""
    won = s.held(name, **rules)
    s.settle(won, asks(asked))
    return s.run(won.run.id), open_of(s, won.run.id)


def bounded(s: Scene, asked: Question, within: timedelta, otherwise: str = "fail") -> Question:
    """The same question, of rules that give it so long."""
    until_us = to_us(asked.asked_at + within)
    s.sql("UPDATE questions SET until_us = ?, otherwise = ? WHERE id = ?", until_us, otherwise, asked.id)
    return question(s, asked)


def attached(s: Scene, name: str = "one", **rules: Any) -> tuple[Won, Question]:
    """The same, whose work lives and waits."""
    won = s.held(name, **rules)
    s.settle(won, Asks(asked=MAY_I, question=new("que")))
    return won, open_of(s, won.run.id)


def open_of(s: Scene, run: str) -> Question:
    with s.store.read() as session:
        (one,) = session.questions.open_of(run)
    return one


def question(s: Scene, one: Question) -> Question:
    with s.store.read() as session:
        found = session.questions.by_id(one.id)
    assert found is not None
    return found


def answer(s: Scene, one: Question, choice: str | None = "allow", **told: Any) -> Question:
    """Answer from another process, as a person does."""
    return question_operations.answer(s.connect(), one.id, by="bob", choice=choice, **told)
