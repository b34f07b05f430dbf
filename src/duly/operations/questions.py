"""Questions for people: the list of them, and the answers. Each is answered once, by a person or by its deadline."""

from datetime import datetime

from duly.core import questions
from duly.core.notes import check_note
from duly.core.questions import ANSWER_MOST, DULY, Question, Word
from duly.errors import Invalid, Refused
from duly.operations import awaiting, shapes
from duly.operations.listing import Projects
from duly.operations.lookup import find_question
from duly.store import Session, Store
from duly.store.answering import answer as write_answer
from duly.store.answering import look_over
from duly.store.switches import lift_over

STATES = ("open", "answered", "expired")


def listed(
    session: Session,
    *,
    task: str | None,
    only_open: bool,
    cursor: str | None,
    most: int,
    projects: Projects = None,
    state: str | None = None,
) -> tuple[list[dict[str, object]], str | None]:
    """List questions, the newest first, each with the name of its task; the second value continues it."""
    return awaiting.listed(
        session,
        session.questions,
        prefix="que_",
        seen=questions.seen,
        shape=shapes.question,
        task=task,
        only_open=only_open,
        cursor=cursor,
        most=most,
        projects=projects,
        state=state,
    )


def answer(
    store: Store, word: str, *, by: str, choice: str | None = None, text: str | None = None, note: str | None = None
) -> Question:
    """Answer a question: a permission by `choice` allow or deny, a question by `text`, or by deny to leave it open.

    Its run goes on with the answer. Refused `already_answered` with who and when, or with what its end was.
    """
    check_note(note)
    _check_answer(choice, text)
    with store.write() as session:
        lift_over(session)
        look_over(session)
        one = find_question(session, word)
        if one.state != "open":
            raise _answered(session, one)
        said = _answer_to(one, choice, text)
        after = questions.decided(one, said, by=by, now=session.now, said=text, note=note)
        if not write_answer(session, after):
            again = session.questions.by_id(one.id)
            assert again is not None
            raise _answered(session, again)
        return after


def _check_answer(choice: str | None, text: str | None) -> None:
    if (choice is None) == (text is None):
        raise Invalid(
            "one answer is wanted: allow or deny, or --text TEXT", field="answer", hint="duly answer ID allow"
        )
    if choice is not None and choice not in {"allow", "deny"}:
        raise Invalid(f'"{choice}" is no answer: allow or deny', field="answer", text=choice, at=0)
    if text is not None and not text.strip():
        raise Invalid("the answer is empty", field="text")
    if text is not None and ("\0" in text or len(text) > ANSWER_MOST):
        raise Invalid(f"an answer is at most {ANSWER_MOST:,} characters, and none of them NUL", field="text")


def _answer_to(one: Question, choice: str | None, text: str | None) -> Word:
    """Give the answer in one word; Invalid where it is none to a question of this kind."""
    if one.kind == "permission" and text is not None:
        raise Invalid("it asks for a permission: allow or deny", field="text", hint=f"duly answer {one.id} allow")
    if one.kind == "question" and choice == "allow":
        hint = f"duly answer {one.id} --text TEXT"
        raise Invalid("it asks a question, which wants an answer in words", field="answer", hint=hint)
    return "text" if text is not None else "allow" if choice == "allow" else "deny"


def _answered(session: Session, one: Question) -> Refused:
    when = f" at {_at(one.answered_at)}" if one.answered_at is not None else ""
    answer = shapes.question(one)["answer"]
    if one.state == "answered" and one.answered_by != DULY:
        text = f"{one.answered_by} answered it{when}: {answer}"
    elif one.state == "answered":
        text = f"nobody answered it in its time, so it was denied{when}"
    elif (
        (run := session.runs.by_id(one.run)) is not None
        and run.state == "ended"
        and run.reason != "question_unanswered"
    ):
        text = f"it is asked no longer: its run has ended ({run.outcome})"
    else:
        text = f"nobody answered it in its time, which was over at {_at(one.until)}"
    details = {
        "question": one.id,
        "state": one.state,
        "answer": answer,
        "answered_by": one.answered_by,
        "answered_at": shapes.instant(one.answered_at),
        "note": one.note,
        "run": one.run,
    }
    return Refused("already_answered", text, details=details, hint=f"duly show {one.run}")


def _at(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"
