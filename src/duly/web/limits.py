"""Limits: how many runs of all tasks that name one may be live, and how many may start in a span."""

from datetime import timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Path, Response

from duly.core.limits import Limit
from duly.core.spans import read_span
from duly.errors import Invalid, Refused
from duly.operations import limits, shapes
from duly.store import Session
from duly.web import fields
from duly.web.bodies import Asked, refuse_others
from duly.web.describing import described
from duly.web.fields import WHOLE_WORD, WORD_MOST
from duly.web.frame import Admin, Reads, answer, nothing

router = APIRouter(tags=["store"])
LIMIT: dict[str, Any] = fields.object_of(
    {
        "n": {"type": "integer", "minimum": 1, "maximum": limits.MOST_MOST, "description": "live at once"},
        "per": {
            "description": "starts in a span as well, such as `10/1m`",
            "anyOf": [
                {"type": ["string", "null"]},
                fields.object_of({"starts": {"type": "integer"}, "within": {"type": "string"}}, "starts", "within"),
            ],
        },
    },
    "n",
)
Key = Annotated[str, Path(max_length=WORD_MOST), WHOLE_WORD]
WHOLE = "a limit"


@router.get("/limits", **described("List the limits", right="read", answer="[limit]"))
def all_(ask: Reads) -> Response:
    """List the limits that are set, and those that tasks name without anybody having set them."""
    ask.check_everything(WHOLE)
    with ask.store.read() as session:
        found = limits.limits(session)
    return answer({"items": [shapes.limit(one.limit, tasks=one.tasks) for one in found], "next": None})


@router.get("/limits/{key}", **described("Show a limit", right="read", answer="limit"))
def one(ask: Reads, key: Key) -> Response:
    """Show a limit as it stands."""
    ask.check_everything(WHOLE)
    with ask.store.read() as session:
        found = next((one for one in limits.limits(session) if one.limit.key == key), None)
    if found is None:
        raise Refused("unknown_id", "no such limit is set, and no task names it")
    return answer(shapes.limit(found.limit, tasks=found.tasks))


@router.put(
    "/limits/{key}",
    **described(
        "Set a limit", right="admin", body=LIMIT, example={"n": 3, "per": "10/1m"}, answer="limit", errors=(409,)
    ),
)
def set_(ask: Admin, key: Key, body: Asked) -> Response:
    """Set how much a limit allows; refused below what runs now, or below a task's own weight."""
    ask.check_everything(WHOLE)
    refuse_others(body, "n", "per")
    most = fields.whole(body, "n")
    if most is None:
        raise Invalid("it is missing", field="n")
    rate, rate_for = _rate(body.get("per"))
    done = limits.set_limit(ask.store, key, most, rate=rate, rate_for=rate_for, by=ask.by)
    with ask.store.read() as session:
        return answer(_shape(session, done))


@router.delete("/limits/{key}", **described("Remove a limit", right="admin", status=204, errors=(409,)))
def remove(ask: Admin, key: Key) -> Response:
    """Set a limit back to what it is unset."""
    ask.check_everything(WHOLE)
    limits.remove_limit(ask.store, key, by=ask.by)
    return nothing()


def _rate(given: object) -> tuple[int | None, timedelta | None]:
    if given is None:
        return None, None
    if isinstance(given, str):
        return limits.read_rate(given, "per")
    if not isinstance(given, dict):
        raise Invalid("a text such as 10/1m is wanted", field="per")
    refuse_others(given, "starts", "within")
    starts, within = fields.whole(given, "starts"), fields.text(given, "within")
    if starts is None or within is None:
        raise Invalid("starts and within are wanted", field="per", hint='{"starts": 10, "within": "1m"}')
    return starts, read_span(within, field="per.within")


def _shape(session: Session, limit: Limit) -> dict[str, object]:
    return shapes.limit(limit, tasks=len(session.crowd.named_by(limit.key)))
