"""Runs: list them, look at one, end one, do one again."""

from typing import Annotated, Any

from fastapi import APIRouter, Response

from duly.operations import listing, runs, showing
from duly.operations.retry import retry as open_again
from duly.web import fields
from duly.web.bodies import Asked, refuse_others
from duly.web.describing import described
from duly.web.fields import TRUTH, Moment, Named, Word, choice, one_of
from duly.web.frame import Ask, Reads, Runs, answer
from duly.web.pages import Paged, listed

router = APIRouter(tags=["runs"])
RETRY = fields.object_of({"queue": TRUTH, "anyway": TRUTH})


@router.get("/runs", **described("List the runs", right="read", answer="[run]", headers={"Link": "the next page"}))
def all_(
    ask: Reads,
    page: Paged,
    task: Word = None,
    project: Word = None,
    state: Annotated[str | None, choice(*listing.STATES)] = None,
    outcome: Annotated[str | None, choice(*listing.OUTCOMES)] = None,
    since: Moment = None,
    until: Moment = None,
) -> Response:
    """List the runs, the newest first: of a task or a project, in a state, with an outcome, opened within a span."""
    one_of(state, "state", listing.STATES)
    one_of(outcome, "outcome", listing.OUTCOMES)
    with ask.store.read() as session:
        now = session.now
        items, following = listing.runs(
            session,
            task=fields.task_of_past(ask, session, task),
            state=state,
            outcome=outcome,
            since=None if since is None else fields.instant(since, "since", now),
            until=None if until is None else fields.instant(until, "until", now, bare="ahead"),
            cursor=page.cursor,
            most=page.most,
            projects=fields.projects(ask, project),
        )
        return listed(page, items, following)


@router.get("/runs/{id}", **described("Show a run", right="read", answer="run"))
def one(ask: Reads, word: Named) -> Response:
    """Show a run with its attempts, what it waits for, and the event it was opened for."""
    with ask.store.read() as session:
        return answer(showing.run(session, ask.run(session, word)).shape)


@router.post("/runs/{id}/cancel", **described("End a run", right="run", status=202, answer="run", errors=(409,)))
def cancel(ask: Runs, word: Named, body: Asked) -> Response:
    """Put the wish to end a run on record: a waiting one ends at once, a running one when its holder obeys."""
    refuse_others(body)
    return _answer(ask, runs.cancel(ask.store, _run(ask, word), by=ask.by).id)


@router.post(
    "/runs/{id}/retry",
    **described(
        "Do a run again",
        right="run",
        status=202,
        body=RETRY,
        example={"queue": True},
        answer="run",
        errors=(409,),
        headers={"Location": "where the new run is"},
    ),
)
def retry(ask: Runs, word: Named, body: Asked) -> Response:
    """Open a run by hand that does what an ended one did: the same definition, due instant and input."""
    refuse_others(body, "queue", "anyway")
    opened = open_again(
        ask.store,
        _run(ask, word),
        by=ask.by,
        queue=fields.truth(body, "queue"),
        anyway=fields.truth(body, "anyway"),
        run=ask.asker.run,
    )
    return _answer(ask, opened.id, location=f"/runs/{opened.id}")


def _run(ask: Ask, word: str) -> str:
    with ask.store.read() as session:
        return ask.run(session, word).id


def _answer(ask: Ask, id_: str, **more: Any) -> Response:
    with ask.store.read() as session:
        run = session.runs.by_id(id_)
        assert run is not None
        return answer(listing.run_shape(session, run, session.tasks.by_id(run.task)), status=202, **more)
