"""What is asked about a task or a run: what comes next, why something ran or did not, whether a fence is current."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from duly.errors import Invalid
from duly.operations import holding, previewing, shapes_why, skipping
from duly.operations import why as asked_why
from duly.operations.serving import alive
from duly.operations.why_since import not_as_planned
from duly.store import Session
from duly.web import fields
from duly.web.describing import described
from duly.web.fields import Moment, Named
from duly.web.frame import Ask, Reads, answer
from duly.web.pages import Paged, listed

router = APIRouter(tags=["tasks"])
FENCE_MOST = 2**63 - 1
NEXT_USUAL = 5
Number = Annotated[int | None, Query(ge=1, le=previewing.NEXT_MOST, description="how many instants")]
Limit = Annotated[int | None, Query(ge=1, le=previewing.NEXT_MOST, description="the same, as of all lists")]


@router.get("/next", **described("What is due next", right="read", answer="[coming]", errors=()))
def next_of_all(ask: Reads, n: Number = None, limit: Limit = None) -> Response:
    """List the next instants of all tasks together, the earliest first."""
    ask.check_everything("what is due next")
    most = n or limit or NEXT_USUAL
    with ask.store.read() as session:
        tasks = previewing.coming(session, most)
        items = skipping.marked(session, previewing.next_of(tasks, now=session.now, most=most))
    return answer({"items": items, "next": None})


@router.get("/tasks/{id}/next", **described("When a task is due next", right="read", answer="[coming]"))
def next_(ask: Reads, word: Named, n: Number = None, limit: Limit = None) -> Response:
    """List a task's next instants, with who skipped them; none of one that is broken."""
    with ask.store.read() as session:
        task = ask.task(session, word)
        found = [] if task.broken is not None else [task]
        most = n or limit or NEXT_USUAL
        items = skipping.marked(session, previewing.next_of(found, now=session.now, most=most))
    return answer({"items": items, "next": None})


@router.get("/tasks/{id}/why", **described("Why a task ran, did not, or will not", right="read", answer="why"))
def why(ask: Reads, word: Named, page: Paged, at: Moment = None, since: Moment = None) -> Response:
    """Say the fate of an instant and the rule behind it; `since`: list what did not run as planned from there on."""
    if at is not None and since is not None:
        raise Invalid("`at` asks about one instant and `since` about many", field="since")
    with ask.store.read() as session:
        task = fields.task_of_past(ask, session, word)
        assert task is not None
        if since is None:
            return _why(ask, session, task, at)
        begin = fields.instant(since, "since", session.now)
        if page.cursor is not None:
            begin = max(begin, fields.instant(page.cursor, "cursor", session.now))
        told = shapes_why.since(not_as_planned(session, task, begin))
    following = told.pop("next")
    items = told.pop("items")
    assert isinstance(items, list)
    return listed(page, items, None if following is None else str(following), told)


@router.get("/runs/{id}/why", **described("Why a run stands as it does", right="read", answer="why"))
def why_run(ask: Reads, word: Named, at: Moment = None) -> Response:
    """Say what became of a run and why; with `at`, how it stood then."""
    with ask.store.read() as session:
        return _why(ask, session, ask.run(session, word).id, at)


@router.get("/tasks/{id}/fence", **described("Whether a fence is current", right="read", answer="fence"))
def fence(
    ask: Reads, word: Named, fence: Annotated[int, Query(ge=-FENCE_MOST, le=FENCE_MOST, description="as it was given")]
) -> Response:
    """Say whether the attempt that was given a fence still holds its run, and if not, why."""
    with ask.store.read() as session:
        return answer(holding.fence(session, ask.task(session, word), fence))


def _why(ask: Ask, session: Session, id_: str, at: str | None) -> Response:
    moment = None if at is None else fields.instant(at, "at", session.now)
    found = asked_why.why(
        session,
        id_,
        moment,
        alive=alive(ask.store, session),
        boot=ask.store.clock.lease_boot(),
        projects=ask.asker.projects,
    )
    return answer(shapes_why.why(found))
