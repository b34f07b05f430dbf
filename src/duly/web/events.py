"""Events: list those that came, look at one, emit one."""

import json
from typing import Annotated, Any

from fastapi import APIRouter, Path, Response

from duly.core.fields import KEY_MOST
from duly.operations import event_shapes, events
from duly.web import fields
from duly.web.acting import IdempotencyKey, key_of
from duly.web.bodies import Asked, refuse_others
from duly.web.describing import described
from duly.web.fields import WORD_MOST, Moment, Named, Word
from duly.web.frame import Reads, Runs, answer
from duly.web.pages import Paged, listed

router = APIRouter(tags=["events"])
EMIT: dict[str, Any] = fields.object_of(
    {
        "key": {
            "type": ["string", "null"],
            "minLength": 1,
            "maxLength": KEY_MOST,
            "description": "what makes it this very event",
        },
        "data": {"description": "what is known of it, as any JSON; tasks match it, and their work reads it"},
    }
)
Source = Annotated[str, Path(max_length=WORD_MOST, description="where it comes from, such as `deploy` or `shop.order`")]


@router.get("/events", **described("List the events", right="read", answer="[event_line]"))
def all_(ask: Reads, page: Paged, source: Word = None, key: Word = None, since: Moment = None) -> Response:
    """List the events that came, the newest first, without their data."""
    ask.check_everything("the list of events")
    with ask.store.read() as session:
        begin = None if since is None else fields.instant(since, "since", session.now)
        items, following = events.listed(
            session, source=source, key=key, since=begin, cursor=page.cursor, most=page.most
        )
    return listed(page, items, following)


@router.get("/events/{id}", **described("Show an event", right="read", answer="event"))
def one(ask: Reads, word: Named) -> Response:
    """Show an event with its data and what became of it."""
    ask.check_everything("an event")
    with ask.store.read() as session:
        return answer(event_shapes.emitted(events.told(session, word)))


@router.post(
    "/events/{source}",
    **described(
        "Emit an event",
        right="run",
        status=202,
        body=EMIT,
        example={"key": "2026-12-01-1", "data": {"branch": "main"}},
        answer="event",
        errors=(409,),
    ),
)
def emit(ask: Runs, source: Source, body: Asked, idempotency_key: IdempotencyKey = None) -> Response:
    """Emit an event: it is kept, and starts every task that listens to its source, once.

    The same key again with the same data answers as the first time; with other data it is refused `key_reused`.
    """
    ask.check_everything("an event")
    refuse_others(body, "key", "data")
    data = json.dumps(body["data"], ensure_ascii=False) if "data" in body else None
    done = events.emit(ask.store, source, by=ask.by, key=key_of(body, idempotency_key), data=data)
    return answer(event_shapes.emitted(done), status=202)
