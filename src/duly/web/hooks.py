"""Events from senders without a token of ours: they prove by a signature, or a secret, that they are who they say.

It is the same address as for those with a token. Who brings neither `Authorization` nor a browser's session is heard
here, and refused as one without a token where the source wants no other proof.
"""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Request, Response
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool
from starlette.routing import Match
from starlette.types import Scope

from duly import config
from duly.errors import Invalid, Refused
from duly.operations import event_shapes, senders
from duly.secrets import Secrets
from duly.store import Store
from duly.web.fields import WORD_MOST
from duly.web.frame import COOKIE, House, LentStore, answer, lent
from duly.web.problems import Unknown


class Tokenless(APIRoute):
    """Is there for requests alone that bring neither a token of ours nor a session."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Leave the others to the route behind it."""
        for name, value in scope.get("headers", ()):
            if name == b"authorization" or (name == b"cookie" and COOKIE.encode() + b"=" in value):
                return Match.NONE, {}
        return super().matches(scope)


router = APIRouter(route_class=Tokenless)
Source = Annotated[str, Path(max_length=WORD_MOST)]


async def _sent(request: Request, source: Source) -> bytes:
    """Read what was sent where its source may take it; who sends slowly holds no connection to the store meanwhile."""
    house: House = request.app.state.house
    async with lent(house) as store:
        await run_in_threadpool(_check_wanted, request, store, source)
    return await request.body()


@router.post("/events/{source}", include_in_schema=False)
def received(request: Request, body: Annotated[bytes, Depends(_sent)], store: LentStore, source: Source) -> Response:
    """Take an event whose sender has shown what its source wants."""
    house: House = request.app.state.house
    headers: dict[str, tuple[str, ...]] = {}
    for name, value in request.headers.items():
        headers[name] = (*headers.get(name, ()), value)
    try:
        done = senders.receive(store, source, headers=headers, body=body, secrets=_secrets(house))
    except senders.Unshown as fault:
        raise _unknown(request, fault) from fault
    return answer(_told(event_shapes.emitted(done)), status=202)


def _check_wanted(request: Request, store: Store, source: str) -> None:
    try:
        with store.read() as session:
            senders.wanted(session, source)
    except senders.Unshown as fault:
        raise _unknown(request, fault) from fault


def _unknown(request: Request, fault: senders.Unshown) -> Unknown:
    """Count a wrong proof, and give the answer to it."""
    house: House = request.app.state.house
    house.pace.failed(request.client.host if request.client is not None else "")
    return Unknown(fault.message)


def _told(whole: dict[str, Any]) -> dict[str, Any]:
    """Tell a sender what became of its event, and nothing of the tasks that took it."""
    return {name: whole[name] for name in ("id", "source", "key", "at", "again")}


def _secrets(house: House) -> Secrets:
    """Give the secrets as they stand now, so that one which was changed counts at once."""
    try:
        return config.secrets_of(config.load(house.environ), house.environ)
    except Invalid as fault:
        house.tell("secrets of sources cannot be looked up", {"error": fault.message, "place": fault.field})
        raise Refused("not_allowed", senders.NOT_HERE) from fault
