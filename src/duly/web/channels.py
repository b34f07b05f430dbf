"""Channels: where people and programs are told what they should know."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Response

from duly.core.channels import DEFAULT_EVERY
from duly.core.spans import read_span
from duly.operations import channels
from duly.web import fields
from duly.web.bodies import Asked, refuse_others
from duly.web.describing import described
from duly.web.fields import WORD_MOST
from duly.web.frame import Admin, Reads, answer, nothing

router = APIRouter(tags=["store"])
CHANNEL: dict[str, Any] = fields.object_of(
    {
        "url": {
            "type": "string",
            "description": "http or https for a webhook, else an Apprise URL; secrets are only named: `${NAME}`",
        },
        "secret": {"type": ["string", "null"], "description": "the name of the secret that signs what is sent"},
        "every": {"type": ["string", "null"], "description": "at most one message in so long"},
        "only_named": fields.TRUTH,
    },
    "url",
)
Name = Annotated[str, Path(max_length=WORD_MOST)]
WHOLE = "a channel"


@router.get("/channels", **described("List the channels", right="read", answer="[channel]"))
def all_(ask: Reads) -> Response:
    """List the channels, with what waits for each and whether it takes what it is sent."""
    ask.check_everything(WHOLE)
    with ask.store.read() as session:
        found = channels.listed(session)
    return answer({"items": [channels.shape(one) for one in found], "next": None})


@router.get("/channels/{name}", **described("Show a channel", right="read", answer="channel"))
def one(ask: Reads, name: Name) -> Response:
    """Show a channel as it stands; what may be a secret in its address is hidden."""
    ask.check_everything(WHOLE)
    with ask.store.read() as session:
        return answer(channels.shape(channels.one(session, name)))


@router.put(
    "/channels/{name}",
    **described(
        "Set a channel",
        right="admin",
        body=CHANNEL,
        example={"url": "https://example.org/hook", "secret": "HOOK_KEY"},
        answer="channel",
        errors=(409,),
    ),
)
def set_(ask: Admin, name: Name, body: Asked) -> Response:
    """Set a channel, a new one or in the place of the one of its name; what is not given goes to its default."""
    ask.check_everything(WHOLE)
    refuse_others(body, "url", "secret", "every", "only_named")
    every = fields.text(body, "every")
    wish = channels.read(
        name,
        body.get("url"),
        secret=fields.text(body, "secret"),
        every=DEFAULT_EVERY if every is None else read_span(every, field="every", zero=True),
        only_named=fields.truth(body, "only_named"),
    )
    done, _ = channels.set_channel(ask.store, wish, by=ask.by)
    with ask.store.read() as session:
        return answer(channels.shape(channels.one(session, done.name)))


@router.delete("/channels/{name}", **described("Remove a channel", right="admin", status=204))
def remove(ask: Admin, name: Name) -> Response:
    """Remove a channel; what waits for it is not told any more."""
    ask.check_everything(WHOLE)
    channels.remove_channel(ask.store, name, by=ask.by)
    return nothing()
