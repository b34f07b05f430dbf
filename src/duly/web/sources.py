"""Sources of events: what is wanted of who sends to them; secrets are only named."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Response

from duly.core.senders import PRESETS
from duly.core.spans import read_span
from duly.errors import Invalid
from duly.operations import senders
from duly.web import fields
from duly.web.bodies import Asked, refuse_others
from duly.web.describing import described
from duly.web.fields import WORD_MOST
from duly.web.frame import Admin, Reads, answer, nothing

router = APIRouter(tags=["store"])
TEXT: dict[str, Any] = {"type": ["string", "null"]}
SOURCE: dict[str, Any] = fields.object_of(
    {
        "hmac": TEXT | {"description": "the name of the secret by which a signature is made"},
        "token": TEXT | {"description": "the name of the secret that stands in a header"},
        "preset": {"enum": [*PRESETS, None], "description": "how it is signed; generic is Standard Webhooks"},
        "header": TEXT | {"description": "where the token stands"},
        "within": TEXT | {"description": "how far a signature's moment may be from now, such as `5m`"},
        "queue": {
            "type": ["integer", "null"],
            "minimum": 1,
            "maximum": senders.QUEUE_MOST,
            "description": "how many runs may wait of what it sent before no more is taken",
        },
    }
)
Name = Annotated[str, Path(max_length=WORD_MOST)]
WHOLE = "a source"


@router.get("/sources", **described("List the sources", right="read", answer="[source]"))
def all_(ask: Reads) -> Response:
    """List every source that is set, was heard of, or is listened to."""
    ask.check_everything(WHOLE)
    with ask.store.read() as session:
        found = senders.sources(session)
    return answer({"items": [senders.shape(one) for one in found], "next": None})


@router.get("/sources/{name}", **described("Show a source", right="read", answer="source"))
def one(ask: Reads, name: Name) -> Response:
    """Show what a source wants, and the last that was heard of it."""
    ask.check_everything(WHOLE)
    with ask.store.read() as session:
        return answer(senders.shape(senders.one_source(session, name)))


@router.put(
    "/sources/{name}",
    **described(
        "Set a source",
        right="admin",
        body=SOURCE,
        example={"hmac": "REPO_SECRET", "preset": "github"},
        answer="source",
    ),
)
def set_(ask: Admin, name: Name, body: Asked) -> Response:
    """Set what a source wants of who sends to it without a token of ours; written whole."""
    ask.check_everything(WHOLE)
    refuse_others(body, "hmac", "token", "preset", "header", "within", "queue")
    within = fields.text(body, "within")
    preset = fields.text(body, "preset")
    if preset is not None and preset not in PRESETS:
        raise Invalid(f"one of {', '.join(PRESETS)} is wanted", field="preset", details={"allowed": list(PRESETS)})
    done = senders.set_source(
        ask.store,
        name,
        by=ask.by,
        hmac=fields.text(body, "hmac"),
        token=fields.text(body, "token"),
        preset=next((one for one in PRESETS if one == preset), None),
        header=fields.text(body, "header"),
        within=None if within is None else read_span(within, field="within"),
        queue=fields.whole(body, "queue"),
    )
    return answer(senders.shape(done))


@router.delete("/sources/{name}", **described("Remove a source", right="admin", status=204))
def remove(ask: Admin, name: Name) -> Response:
    """Want a token of ours of who sends to a source, and nothing else."""
    ask.check_everything(WHOLE)
    senders.remove_source(ask.store, name, by=ask.by)
    return nothing()
