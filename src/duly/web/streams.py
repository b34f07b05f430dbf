"""The stream: entries of the ledger as they are written, as server-sent events that miss and repeat nothing."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, Header, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from duly.core.names import key_of
from duly.core.reading import shown
from duly.operations.following import Wanted
from duly.store.store import Store
from duly.web.describing import described, problem
from duly.web.frame import Ask, House, Reads, known_still
from duly.web.problems import Unreadable
from duly.web.streaming import EVENTS, Streamed
from duly.web.tail import Still, Tail

SEQ_DIGITS_MOST = 18
SEQ_MOST = 10**SEQ_DIGITS_MOST - 1
EXAMPLE = """retry: 2000
id: 1041

id: 1042
data: {"seq": 1042, "at": "2026-12-01T08:00:00Z", "kind": "claimed", "run": "run_01kbcd5v6w7x8y9z0a1b2c3d4e"}

: beat

event: reset
id: 2077
data: {"after": 17, "last": 2077}

"""

router = APIRouter(tags=["stream"])


@asynccontextmanager
async def life(app: FastAPI) -> AsyncIterator[None]:
    """Have one tail as long as the interface lives; streams end before the server waits for its connections."""
    house: House = app.state.house
    tail = app.state.tail = Tail(house.pool, house.tell, closing=house.closing.is_set)
    tail.start()
    try:
        yield
    finally:
        await run_in_threadpool(tail.stop)


def _events() -> dict[str, Any]:
    told = described("Entries of the ledger as they are written", right="read")
    told["responses"][200] = {
        "description": "server-sent events: an entry each; a comment now and then; `reset` where some are gone",
        "content": {EVENTS: {"schema": {"type": "string"}, "example": EXAMPLE}},
    }
    told["responses"][409] = problem(409)
    return told


@router.get("/stream", **_events())
def stream(
    ask: Reads,
    request: Request,
    last_event_id: Annotated[str | None, Header(description="the last id that was received")] = None,
    after: Annotated[
        int | None, Query(ge=0, le=SEQ_MOST, description="the same for who cannot send headers; 0: from the begin")
    ] = None,
    task: Annotated[str | None, Query(description="only of this task")] = None,
    project: Annotated[str | None, Query(description="only of this project")] = None,
) -> Response:
    """Follow the ledger from the last entry that was received, else from now on."""
    wanted = _wanted(ask, task, project)
    begin = after if not last_event_id else _number(last_event_id)
    tail, still = tail_of(request), still_allowed(ask, request)
    return Streamed(
        tail,
        lambda wake: tail.ledger(wake, wanted=wanted, after=begin, still=still),
        media_type=EVENTS,
    )


def tail_of(request: Request) -> Tail:
    """Give the one tail of this process."""
    tail: Tail = request.app.state.tail
    return tail


def still_allowed(ask: Ask, request: Request) -> Still:
    """Give what tells, while a stream goes on, whether its reader may still read as much as when it came."""

    def still(store: Store) -> bool:
        asker = known_still(request, store, ask.house)
        return asker is not None and asker.may("read") and asker.projects == ask.asker.projects

    return still


def _wanted(ask: Ask, task: str | None, project: str | None) -> Wanted:
    projects = ask.asker.projects
    if project is not None:
        ask.check(project)
        projects = frozenset({key_of(project)})
    if task is None:
        return Wanted(projects=projects)
    with ask.store.read() as session:
        # The ledger outlives the task: a removed one is named by its id.
        removed = session.tasks.by_id(task)
        if removed is not None:
            ask.check(removed.definition.project)
        return Wanted(task=(removed or ask.task(session, task)).id, projects=projects)


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or len(text) > SEQ_DIGITS_MOST:
        raise Unreadable(
            400,
            f"{shown(text)} is no id of an entry",
            field="Last-Event-ID",
            hint="send the last `id:` as it was received, or none",
        )
    return int(text)
