"""What a WHEN means, before anything is written: its words, its canonical form, its next instants."""

from typing import Any

from fastapi import APIRouter, Response

from duly import zones
from duly.core import when
from duly.errors import Invalid
from duly.operations import previewing
from duly.web import fields
from duly.web.bodies import Asked, refuse_others
from duly.web.describing import described
from duly.web.fields import INSTANT
from duly.web.frame import Reads, answer

router = APIRouter(tags=["preview"])
PREVIEW_MOST, PREVIEW_USUAL = 1_000, 10
PREVIEW: dict[str, Any] = fields.object_of(
    {
        "when": {"type": "array", "minItems": 1, "maxItems": 20, "items": {"type": ["string", "object"]}},
        "zone": {"type": "string", "description": "of its times, by IANA name; else that of the machine that serves"},
        "after": INSTANT | {"description": "stands for now"},
        "n": {"type": "integer", "minimum": 1, "maximum": PREVIEW_MOST, "default": PREVIEW_USUAL},
        "gap": {"enum": ["run", "skip"]},
        "fold": {"enum": ["first", "second", "both"]},
    },
    "when",
)


@router.post(
    "/preview",
    **described(
        "Say what a WHEN means",
        right="read",
        body=PREVIEW,
        example={"when": ["weekly mon-fri 09:00"], "zone": "Europe/Berlin", "n": 3},
        answer="preview",
    ),
)
def preview(ask: Reads, body: Asked) -> Response:
    """Say what triggers mean, and when they come; nothing is written."""
    refuse_others(body, "when", "zone", "after", "n", "gap", "fold")
    name = fields.text(body, "zone")
    place = fields.here() if name is None else zones.zone(name)
    with ask.store.read() as session:
        now = session.now
    after = fields.text(body, "after")
    if after is not None:
        now = fields.instant(after, "after", now, bare="ahead", zone=place)
    texts = _texts(body)
    triggers = when.read_all(texts, now=now, zone=place)
    gap, fold = previewing.bends({key: body.get(key) for key in ("gap", "fold")}, triggers)
    found = previewing.preview(triggers, place, after=now, most=_number(body), gap=gap, fold=fold)
    warned = zones.warning(name) if name is not None else None
    notes = [note for text in texts if triggers for note in when.read(text, now=now, zone=place).warnings]
    return answer(found | {"warnings": [*([warned] if warned else []), *notes]})


def _texts(body: dict[str, Any]) -> list[str]:
    given = fields.needed(body, "when")
    if isinstance(given, str):
        return [given]
    if not isinstance(given, list) or not given:
        raise Invalid("a list of triggers is wanted", field="when", hint='["daily 09:00"]')
    return [previewing.text_of(one, at) for at, one in enumerate(given)]


def _number(body: dict[str, Any]) -> int:
    count = fields.whole(body, "n")
    count = PREVIEW_USUAL if count is None else count
    if not 1 <= count <= PREVIEW_MOST:
        raise Invalid(f"{count} is not between 1 and {PREVIEW_MOST:,}", field="n")
    return count
