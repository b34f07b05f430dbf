"""Questions that runs ask people: list them, and answer one."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from duly.core.questions import ANSWER_MOST, Question, seen
from duly.operations import questions, reaching, shapes
from duly.web import fields
from duly.web.bodies import Asked, refuse_others
from duly.web.describing import described
from duly.web.fields import NOTE, Named, Word, choice, one_of
from duly.web.frame import Answers, Ask, Reads, answer
from duly.web.pages import Paged, listed

router = APIRouter(tags=["questions"])
ANSWER = fields.object_of(
    {
        "answer": {"enum": ["allow", "deny"], "description": "of a permission; deny leaves a question open"},
        "text": {"type": "string", "maxLength": ANSWER_MOST, "description": "of a question"},
        "note": NOTE,
    }
)


@router.get("/questions", **described("List the questions", right="read", answer="[question]"))
def all_(
    ask: Reads,
    page: Paged,
    task: Word = None,
    project: Word = None,
    only_open: Annotated[bool, Query(alias="open", description="those that wait for an answer")] = False,
    state: Annotated[str | None, choice(*questions.STATES)] = None,
) -> Response:
    """List what runs ask people, the newest first."""
    one_of(state, "state", questions.STATES)
    with ask.store.read() as session:
        items, following = questions.listed(
            session,
            task=fields.task_of_past(ask, session, task),
            only_open=only_open,
            state=state,
            cursor=page.cursor,
            most=page.most,
            projects=fields.projects(ask, project),
        )
        return listed(page, items, following)


@router.get("/questions/{id}", **described("Show a question", right="read", answer="question"))
def one(ask: Reads, word: Named) -> Response:
    """Show what a run asks, with its answer where it has one."""
    found = _found(ask, word)
    with ask.store.read() as session:
        return answer(shapes.question(seen(found, session.now)))


@router.post(
    "/questions/{id}/answer",
    **described(
        "Answer a question",
        right="answer",
        body=ANSWER,
        example={"answer": "allow"},
        answer="question",
        errors=(409,),
    ),
)
def decide(ask: Answers, word: Named, body: Asked) -> Response:
    """Answer a permission by allow or deny, a question by a text; its run goes on with the answer."""
    refuse_others(body, "answer", "text", "note")
    done = questions.answer(
        ask.store,
        _found(ask, word).id,
        by=ask.by,
        choice=fields.text(body, "answer"),
        text=fields.text(body, "text"),
        note=fields.note(body),
    )
    return answer(shapes.question(done))


def _found(ask: Ask, word: str) -> Question:
    with ask.store.read() as session:
        return reaching.question(session, ask.asker, word)
