"""What the work of a run asks a person, and the one answer that each question has.

open ──▶ answered (a person; or, under `then: deny`, the deadline) · expired (the deadline; its run has ended)
"""

import json
from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from typing import Literal

from duly.core.permissions import Then
from duly.core.run import Entry, Run
from duly.core.values import changed, value

Kind = Literal["permission", "question"]
Word = Literal["allow", "deny", "text"]
"""An answer: to a permission yes or no; to a question its text, or that it is not answered (deny)."""
QuestionState = Literal["open", "answered", "expired"]
DULY = "duly"
"""Who answers where nobody did in time."""
TEXT_MOST = 4_000
"""Characters of a question that are kept."""
TOLD_MOST = 200
"""Characters of a question that its ledger entry tells."""
ANSWER_MOST = 10_000
"""Characters of an answer in words."""
OPTIONS_MOST = 50
OPTION_MOST = 500
ABOUT_MOST = 20_000
"""Characters of the facts of a question; more are not kept."""


@value
class Asked:
    """What an agent asks: to be allowed something, or to be told something."""

    kind: Kind
    text: str
    options: tuple[str, ...] = ()
    """What it offers to choose from; an answer in other words is one as well."""
    about: Mapping[str, object] = field(default_factory=dict)
    """Facts of it, for the rule that is set before the session goes on, and for whoever answers."""
    key: str = ""
    """The agent's own name for this question, by which the answer finds it while its work lives."""


@value
class Answered:
    """The answer to what an agent asked; `by` a person, or by the deadline (`duly`)."""

    asked: Asked
    answer: Word
    said: str | None = None
    """The answer in words, where it is a text."""
    note: str | None = None
    by: str
    at: datetime


@value
class Question:
    """One question of one attempt, as the store keeps it."""

    id: str
    run: str
    task: str
    attempt: int
    asked_at: datetime
    until: datetime
    otherwise: Then
    """What the deadline decides."""
    attached: bool
    """Its work lives and waits; else that has ended, and its session goes on with the answer."""
    kind: Kind
    text: str
    options: tuple[str, ...] = ()
    about: Mapping[str, object] = field(default_factory=dict)
    state: QuestionState = "open"
    answer: Word | None = None
    said: str | None = None
    note: str | None = None
    answered_by: str | None = None
    answered_at: datetime | None = None


def put(
    run: Run, asked: Asked, *, id_: str, until: datetime, otherwise: Then, attached: bool, now: datetime
) -> Question:
    """Make the question that the present attempt of a run asks."""
    return Question(
        id=id_,
        run=run.id,
        task=run.task,
        attempt=run.attempt,
        asked_at=now,
        until=until,
        otherwise=otherwise,
        attached=attached,
        kind=asked.kind,
        text=_kept(asked.text, TEXT_MOST),
        options=tuple(_kept(one, OPTION_MOST) for one in asked.options[:OPTIONS_MOST]),
        about=_facts(asked.about),
    )


def _kept(text: str, most: int) -> str:
    """What an agent makes up may be no text that a database takes."""
    return text[:most].replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode()


def _facts(about: Mapping[str, object]) -> Mapping[str, object]:
    """The facts, as far as they are JSON and not too many."""
    try:
        text = json.dumps(about, ensure_ascii=True)
    except (TypeError, ValueError, RecursionError):
        return {}
    return {} if len(text) > ABOUT_MOST or "\\u0000" in text or "\\ud" in text.lower() else about


def is_over(one: Question, now: datetime) -> bool:
    """Say whether nobody has answered within its time: at the deadline itself it is over."""
    return one.state == "open" and one.until <= now


def decided(one: Question, answer: Word, *, by: str, now: datetime, said: str | None, note: str | None) -> Question:
    """Give the question with its answer."""
    assert one.state == "open"
    return changed(one, state="answered", answer=answer, said=said, note=note, answered_by=by, answered_at=now)


def at_deadline(one: Question) -> Question:
    """Give the question as its deadline leaves it: denied, or not answered at all."""
    if one.otherwise == "deny":
        return decided(one, "deny", by=DULY, now=one.until, said=None, note=None)
    return changed(one, state="expired")


def seen(one: Question, now: datetime) -> Question:
    """Give the question as it stands at this moment, whether or not anybody has written that its time is over."""
    return at_deadline(one) if is_over(one, now) else one


def given(one: Question) -> Answered:
    """Give the answer to what was asked, for the work that goes on with it."""
    assert one.state == "answered"
    assert one.answer is not None
    assert one.answered_at is not None
    asked = Asked(kind=one.kind, text=one.text, options=one.options, about=one.about)
    return Answered(
        asked=asked,
        answer=one.answer,
        said=one.said,
        note=one.note,
        by=one.answered_by or DULY,
        at=one.answered_at,
    )


def told(one: Question) -> dict[str, object]:
    """Tell a question in the details of an entry."""
    short = " ".join(one.text.split())
    return {"question": one.id, "asks": one.kind, "text": short if len(short) <= TOLD_MOST else short[:TOLD_MOST] + "…"}


def answered(one: Question, run: Run, *, now: datetime) -> Entry:
    """Tell the answer of a question of this run."""
    details: dict[str, object] = {"question": one.id, "answer": one.answer}
    details |= {name: text for name, text in (("said", one.said), ("note", one.note)) if text is not None}
    return Entry(
        kind="answered",
        at=now,
        task=run.task,
        occurrence=run.occurrence,
        run=run.id,
        attempt=one.attempt,
        reason="question_unanswered" if one.answered_by == DULY else None,
        by=one.answered_by,
        details=details,
    )
