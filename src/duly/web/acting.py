"""What is done to a task: run it, switch it, hold it, skip what is to come, fill what never ran."""

from typing import Annotated, Any

from fastapi import APIRouter, Header, Response

from duly.core.fields import KEY_MOST
from duly.errors import Invalid
from duly.operations import filling, listing, runs, shapes, skipping, standing, tasks
from duly.operations.skipping import AT, BEFORE, NEXT
from duly.web import fields
from duly.web.bodies import Asked, refuse_others
from duly.web.describing import described
from duly.web.fields import INSTANT, NOTE, TRUTH, Named
from duly.web.frame import Ask, Runs, Writes, answer

router = APIRouter(tags=["tasks"])
KEY: dict[str, Any] = {"type": "string", "minLength": 1, "maxLength": KEY_MOST}
RUN = fields.object_of(
    {
        "input": {"type": ["string", "null"], "description": "what the work reads in DULY_INPUT"},
        "args": {"type": "array", "items": {"type": "string"}, "description": "further arguments, for this run only"},
        "key": KEY | {"description": "the same key again answers with the first run"},
        "queue": TRUTH | {"description": "wait for the end of a run that is live"},
        "anyway": TRUTH | {"description": "run though it is paused, and without asking its gate"},
    }
)
PAUSE = fields.object_of({"until": INSTANT, "note": NOTE})
SKIP = fields.object_of(
    {
        "next": TRUTH | {"description": "the next one that would run"},
        "at": INSTANT | {"description": "the one that is due at exactly this instant"},
        "before": INSTANT | {"description": "all that are due before this instant"},
        "note": NOTE,
    }
)
BACKFILL = fields.object_of(
    {"from": INSTANT, "to": INSTANT, "overlap": {"enum": [*filling.OVERLAPS]}, "anyway": TRUTH, "dry_run": TRUTH},
    "from",
    "to",
)
IdempotencyKey = Annotated[
    str | None, Header(alias="Idempotency-Key", max_length=KEY_MOST, description="the same as `key` in the body")
]


@router.post(
    "/tasks/{id}/run",
    **described(
        "Run a task now",
        right="run",
        status=202,
        body=RUN,
        example={"input": "numbers of May", "key": "2026-05"},
        answer="run",
        errors=(409,),
        headers={"Location": "where the run is"},
    ),
)
def run(ask: Runs, word: Named, body: Asked, idempotency_key: IdempotencyKey = None) -> Response:
    """Open a run by hand, whatever the schedule says; the same key again answers with the run it opened first."""
    refuse_others(body, "input", "args", "key", "queue", "anyway")
    task = _task(ask, word)
    opened = runs.run_now(
        ask.store,
        task,
        by=ask.by,
        input_=fields.text(body, "input"),
        args=fields.texts(body, "args"),
        key=key_of(body, idempotency_key),
        queue=fields.truth(body, "queue"),
        anyway=fields.truth(body, "anyway"),
        run=ask.asker.run,
    )
    with ask.store.read() as session:
        told = listing.run_shape(session, opened, session.tasks.by_id(opened.task))
    return answer(told, status=202, location=f"/runs/{opened.id}")


@router.post("/tasks/{id}/enable", **described("Switch a task on", right="write", answer="task", errors=(409,)))
def enable(ask: Writes, word: Named, body: Asked) -> Response:
    """Switch a task on; it owes nothing of the time it was off."""
    return _switched(ask, word, body, on=True)


@router.post("/tasks/{id}/disable", **described("Switch a task off", right="write", answer="task", errors=(409,)))
def disable(ask: Writes, word: Named, body: Asked) -> Response:
    """Switch a task off: what waits ends skipped, a live run goes on."""
    return _switched(ask, word, body, on=False)


@router.post(
    "/tasks/{id}/pause",
    **described(
        "Hold a task", right="write", body=PAUSE, example={"until": "2h", "note": "the disk is full"}, answer="pause"
    ),
)
def pause(ask: Writes, word: Named, body: Asked) -> Response:
    """Hold a task: nothing opens by time until the hold is lifted or over; again, its end and note are replaced."""
    refuse_others(body, "until", "note")
    with ask.store.read() as session:
        task = ask.task(session, word)
        until = fields.moment(body, "until", session.now, bare="ahead")
    done = tasks.pause(ask.store, "task", task.id, until=until, note=fields.note(body), by=ask.by)
    with ask.store.read() as session:
        return answer(standing.pause(session, done.pause) | {"tasks": done.tasks})


@router.post("/tasks/{id}/unpause", **described("Lift a task's hold", right="write", answer="unpaused", errors=(409,)))
def unpause(ask: Writes, word: Named, body: Asked) -> Response:
    """Lift the hold of a task; nothing of the time held is run. `pause` is null where there was none."""
    refuse_others(body)
    done = tasks.unpause(ask.store, "task", _task(ask, word), by=ask.by, run=ask.asker.run)
    if done is None:
        return answer({"pause": None, "tasks": 0})
    return answer({"pause": shapes.pause(done.pause), "tasks": done.tasks})


@router.post(
    "/tasks/{id}/skip",
    **described("Skip occurrences", right="run", body=SKIP, example={"next": True}, answer="skipped", errors=(409,)),
)
def skip(ask: Runs, word: Named, body: Asked) -> Response:
    """Let occurrences not run, also ones to come: the next, the one at an instant, or all before one."""
    refuse_others(body, "next", "at", "before", "note")
    wanted = [fields.truth(body, "next"), body.get("at") is not None, body.get("before") is not None]
    if sum(wanted) != 1:
        raise Invalid("one of next, at and before says what is meant", field="next")
    with ask.store.read() as session:
        task = ask.task(session, word)
        at = fields.moment(body, "at", session.now, bare="ahead")
        before = fields.moment(body, "before", session.now, bare="ahead")
    what = NEXT if wanted[0] else AT if at is not None else BEFORE
    asked = skipping.Ask(what=what, at=at or before)
    return answer(skipping.shape(skipping.skip(ask.store, task.id, asked, by=ask.by, note=fields.note(body))))


@router.post(
    "/tasks/{id}/backfill",
    **described(
        "Fill the past",
        right="run",
        body=BACKFILL,
        example={"from": "7d", "to": "now", "dry_run": True},
        answer="backfilled",
        errors=(409,),
    ),
)
def backfill(ask: Runs, word: Named, body: Asked) -> Response:
    """Open a run for each occurrence between two instants that has none; they wait behind everything else."""
    refuse_others(body, "from", "to", "overlap", "anyway", "dry_run")
    with ask.store.read() as session:
        task = ask.task(session, word)
        first, last = (fields.moment(body, name, session.now) for name in ("from", "to"))
    if first is None or last is None:
        raise Invalid("it is missing", field="from" if first is None else "to", hint="7d, or now")
    asked = filling.Ask(first=first, last=last, overlap=fields.text(body, "overlap") or filling.OVERLAPS[0])
    done = filling.backfill(
        ask.store,
        task.id,
        asked,
        by=ask.by,
        anyway=fields.truth(body, "anyway"),
        dry_run=fields.truth(body, "dry_run"),
        run=ask.asker.run,
    )
    return answer(filling.shape(done))


def key_of(body: dict[str, Any], header: str | None) -> str | None:
    """Give the key of what is asked, from the body or its header; Invalid where they differ."""
    given = fields.text(body, "key")
    if given is not None and header is not None and given != header:
        raise Invalid("the header Idempotency-Key says another one", field="key")
    return given if given is not None else header


def _task(ask: Ask, word: str) -> str:
    with ask.store.read() as session:
        return ask.task(session, word).id


def _switched(ask: Ask, word: str, body: dict[str, Any], *, on: bool) -> Response:
    refuse_others(body)
    task = ask.house.switch(ask.store, _task(ask, word), on=on, by=ask.by, run=ask.asker.run)
    with ask.store.read() as session:
        return answer(listing.shape(listing.one(session, task)), version=task.version)
