"""Missed occurrences: list them, and answer those that are offered."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from duly.core import offers
from duly.core.run import Missed
from duly.operations import listing, missed, reaching, shapes
from duly.web import fields
from duly.web.bodies import Asked, refuse_others
from duly.web.describing import described
from duly.web.fields import NOTE, TRUTH, Named, Word, choice, one_of
from duly.web.frame import Ask, Reads, Runs, answer
from duly.web.pages import Paged, listed

router = APIRouter(tags=["missed"])
ACCEPT = fields.object_of({"anyway": TRUTH | {"description": "run it though its task is paused"}})
DECLINE = fields.object_of({"note": NOTE})


@router.get("/missed", **described("List what was missed", right="read", answer="[missed]"))
def all_(
    ask: Reads,
    page: Paged,
    task: Word = None,
    project: Word = None,
    only_open: Annotated[bool, Query(alias="open", description="those that wait for an answer")] = False,
    state: Annotated[str | None, choice(*missed.STATES)] = None,
) -> Response:
    """List missed occurrences, the newest first."""
    one_of(state, "state", missed.STATES)
    with ask.store.read() as session:
        items, following = missed.listed(
            session,
            task=fields.task_of_past(ask, session, task),
            only_open=only_open,
            state=state,
            cursor=page.cursor,
            most=page.most,
            projects=fields.projects(ask, project),
        )
        return listed(page, items, following)


@router.get("/missed/{id}", **described("Show what was missed", right="read", answer="missed"))
def one(ask: Reads, word: Named) -> Response:
    """Show a missed occurrence, with its answer where it has one."""
    found = _found(ask, word)
    with ask.store.read() as session:
        return answer(shapes.missed(offers.seen(found, session.now)))


@router.post(
    "/missed/{id}/accept",
    **described(
        "Run what was missed",
        right="run",
        status=202,
        body=ACCEPT,
        answer="accepted",
        errors=(409,),
        headers={"Location": "where the run is"},
    ),
)
def accept(ask: Runs, word: Named, body: Asked) -> Response:
    """Run a missed occurrence all the same, of a count the newest; it waits for its seat and its limits."""
    refuse_others(body, "anyway")
    anyway = fields.truth(body, "anyway")
    done = missed.accept(ask.store, _found(ask, word).id, by=ask.by, anyway=anyway, run=ask.asker.run)
    with ask.store.read() as session:
        run = listing.run_shape(session, done.run, session.tasks.by_id(done.run.task))
    return answer(run | {"missed": shapes.missed(done.missed)}, status=202, location=f"/runs/{done.run.id}")


@router.post(
    "/missed/{id}/decline",
    **described(
        "Decline what is offered",
        right="run",
        body=DECLINE,
        example={"note": "no longer needed"},
        answer="missed",
        errors=(409,),
    ),
)
def decline(ask: Runs, word: Named, body: Asked) -> Response:
    """Say that an offer is not wanted: it does not run. Who said so and why is kept."""
    refuse_others(body, "note")
    return answer(shapes.missed(missed.decline(ask.store, _found(ask, word).id, by=ask.by, note=fields.note(body))))


def _found(ask: Ask, word: str) -> Missed:
    with ask.store.read() as session:
        return reaching.missed(session, ask.asker, word)
