"""Tokens: list them, make one, revoke one; its secret is told once."""

from typing import Any

from fastapi import APIRouter, Response

from duly.errors import Invalid
from duly.operations import tokens as operations
from duly.operations.askers import RIGHTS
from duly.web.bodies import Asked, refuse_others
from duly.web.describing import described
from duly.web.frame import Admin, answer

router = APIRouter(tags=["tokens"])
NEW: dict[str, Any] = {
    "type": "object",
    "required": ["name", "rights"],
    "additionalProperties": False,
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 80},
        "rights": {"type": "array", "minItems": 1, "items": {"enum": list(RIGHTS)}},
        "projects": {"type": "array", "items": {"type": "string"}},
    },
}
EXAMPLE = {"name": "ci", "rights": ["read", "run"], "projects": ["shop"]}


@router.get("/tokens", **described("List the tokens", right="admin", answer="[token]"))
def tokens(ask: Admin) -> Response:
    """List the tokens, revoked ones too, without their secrets."""
    ask.check_everything("the list of tokens")
    with ask.store.read() as session:
        items = [operations.shape(session, one) for one in operations.listed(session)]
    return answer({"items": items, "next": None})


@router.post(
    "/tokens",
    **described(
        "Make a token",
        right="admin",
        status=201,
        body=NEW,
        example=EXAMPLE,
        answer="token_made",
        errors=(409,),
        headers={"Location": "where it is"},
    ),
)
def create(ask: Admin, body: Asked) -> Response:
    """Make a token; the answer is the one place that ever tells its secret."""
    ask.check_everything("making tokens")
    refuse_others(body, "name", "rights", "projects")
    name = body.get("name")
    if not isinstance(name, str):
        raise Invalid("a text is wanted", field="name")
    made = operations.create(
        ask.store, name, rights=_texts(body, "rights"), projects=_texts(body, "projects"), by=ask.by
    )
    with ask.store.read() as session:
        told = operations.shape(session, made.token) | {"secret": made.secret}
    return answer(told, status=201, location=f"/tokens/{made.token.id}")


@router.delete("/tokens/{id}", **described("Revoke a token", right="admin", answer="token"))
def revoke(ask: Admin, id: str) -> Response:  # noqa: A002 - the word of the path
    """Revoke a token or end a browser's session, by name or id; it counts no longer from the next request on."""
    ask.check_everything("revoking tokens")
    gone = operations.revoke(ask.store, id, by=ask.by)
    with ask.store.read() as session:
        return answer(operations.shape(session, gone))


def _texts(body: dict[str, Any], name: str) -> list[str]:
    given = body.get(name, [])
    if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
        raise Invalid("a list of texts is wanted", field=name)
    return given
