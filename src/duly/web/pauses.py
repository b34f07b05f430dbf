"""Holds of the whole store, of projects and of tasks: list them, make one, lift one."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from duly.errors import Invalid
from duly.operations import shapes, standing, tasks
from duly.web import fields
from duly.web.bodies import Asked, refuse_others
from duly.web.describing import described
from duly.web.fields import INSTANT, NOTE, WORD_MOST, choice, one_of
from duly.web.frame import Ask, Reads, Writes, answer

router = APIRouter(tags=["pauses"])
SCOPES = ("store", "project", "task")
PAUSE: dict[str, Any] = fields.object_of(
    {
        "scope": {"enum": [*SCOPES]},
        "target": {"type": ["string", "null"], "description": "which project or task; nothing of the store"},
        "until": INSTANT,
        "note": NOTE,
    },
    "scope",
)


@router.get("/pauses", **described("List the holds", right="read", answer="[pause]"))
def all_(ask: Reads) -> Response:
    """List the holds there are now, the oldest first."""
    with ask.store.read() as session:
        found = [one for one in session.pauses.all() if standing.held_project(session, one, ask.asker.projects)]
        items = [standing.pause(session, one) for one in found]
    return answer({"items": items, "next": None})


@router.post(
    "/pauses",
    **described(
        "Hold tasks",
        right="write",
        body=PAUSE,
        example={"scope": "project", "target": "shop", "until": "2h", "note": "the shop moves"},
        answer="pause",
    ),
)
def pause(ask: Writes, body: Asked) -> Response:
    """Hold a task, a project or the store; asked again for the same, its end and note are replaced."""
    refuse_others(body, "scope", "target", "until", "note")
    scope, target = _scope(ask, fields.needed(body, "scope"), fields.text(body, "target"))
    with ask.store.read() as session:
        until = fields.moment(body, "until", session.now, bare="ahead")
    done = tasks.pause(ask.store, scope, target, until=until, note=fields.note(body), by=ask.by)
    with ask.store.read() as session:
        return answer(standing.pause(session, done.pause) | {"tasks": done.tasks})


@router.delete("/pauses", **described("Lift a hold", right="write", answer="unpaused", errors=(409,)))
def unpause(
    ask: Writes,
    scope: Annotated[str, choice(*SCOPES)],
    target: Annotated[str | None, Query(max_length=WORD_MOST)] = None,
) -> Response:
    """Lift the hold of a task, a project or the store; `pause` is null where there was none."""
    done = tasks.unpause(ask.store, *_scope(ask, scope, target), by=ask.by, run=ask.asker.run)
    if done is None:
        return answer({"pause": None, "tasks": 0})
    return answer({"pause": shapes.pause(done.pause), "tasks": done.tasks})


def _scope(ask: Ask, given: object, target: str | None) -> tuple[str, str]:
    """Give what is meant, as the store has it, and refuse who does not reach it."""
    if not isinstance(given, str):
        raise Invalid("a text is wanted", field="scope")
    scope = str(one_of(given, "scope", SCOPES))
    if scope == "store":
        ask.check_everything("a hold of all tasks")
        if target:
            raise Invalid("the whole store has none", field="target")
        return scope, ""
    if not target:
        raise Invalid(f"which {scope} is missing", field="target")
    if scope == "project":
        ask.check(target)
        return scope, target
    with ask.store.read() as session:
        return scope, ask.task(session, target).id
