"""The door for agents inside of `serve`: Streamable HTTP at `/mcp/`, with tokens, behind the guards of the interface.

The library for it is loaded at the first request: who never asks pays nothing for it.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

from fastapi import FastAPI
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from duly import config, zones
from duly.app import agents_door
from duly.errors import Refused
from duly.operations.askers import RIGHTS, Asker
from duly.store import Store
from duly.store.pool import Pool
from duly.web.frame import House, asker_of
from duly.web.problems import Unknown

BEGIN = "/mcp"
ASKER = "duly.asker"
"""Where a request carries who asks, once that is known."""
AT_ONCE = 8
"""Calls that have a connection to the store at one time; more wait for one of them."""


def with_door(house: House) -> House:
    """Give the house with this door in it, where the library for it is installed."""
    if find_spec("mcp") is None:
        return house
    door = Door(house)
    return replace(house, mounts={**house.mounts, BEGIN: door}, lives=(*house.lives, door.life))


class Door:
    """Lets in who has a token; each request is answered by itself, and nothing is kept between two."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._wanted = asyncio.Event()
        self._ready: asyncio.Future[ASGIApp] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        asker = await run_in_threadpool(self._asker, Request(scope))
        assert self._ready is not None, "the door is there while its life lasts"
        self._wanted.set()
        inner = await asyncio.shield(self._ready)
        await inner({**scope, ASKER: asker}, receive, send)

    @asynccontextmanager
    async def life(self, _app: FastAPI) -> AsyncIterator[None]:
        """Be there while inside."""
        self._ready = asyncio.get_running_loop().create_future()
        over = asyncio.Event()
        living = asyncio.create_task(self._live(self._ready, over))
        try:
            yield
        finally:
            over.set()
            self._wanted.set()
            await living
            self._ready.cancel()

    async def _live(self, ready: "asyncio.Future[ASGIApp]", over: asyncio.Event) -> None:
        """Make the server when it is first wanted; one that cannot be made is told to all who ask."""
        await self._wanted.wait()
        if over.is_set():
            return
        try:
            server, inner = await run_in_threadpool(self._made)
        except Exception as fault:  # noqa: BLE001 - each request is answered with it, and reported by the guards
            ready.set_exception(fault)
            return
        async with server.session_manager.run():
            ready.set_result(inner)
            await over.wait()

    def _asker(self, request: Request) -> Asker:
        """Recognise who asks: by a token alone, since what a browser brings along by itself is no wish of its user."""
        if "authorization" not in request.headers:
            raise Unknown("a token is wanted: Authorization: Bearer TOKEN")
        with self._house.pool.lent() as store:
            found = asker_of(request, store, self._house)
        name = found.name if found.run is None else f"{found.name} in {found.run}"
        rights = frozenset(RIGHTS) if found.may("admin") else found.rights
        return replace(found, name=f"{name} over mcp", rights=rights)

    def _made(self) -> tuple[Any, ASGIApp]:
        from mcp.server.transport_security import TransportSecuritySettings

        from duly.mcp.desk import Desk
        from duly.mcp.making import make_server

        environ = self._house.environ
        rails = agents_door.rails_of(config.load(environ), environ, {})
        desk = Desk(Pooled(self._house.pool), asker=_carried, rails=rails, zone=zones.machine_zone())
        server = make_server(desk)
        inner = server.streamable_http_app(
            streamable_http_path="/",
            stateless_http=True,
            json_response=True,
            # Hosts, origins and sizes were looked at before, by the guards of the whole interface.
            transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        )
        return server, inner


class Pooled:
    """The store of the process that serves, by connections that are lent for one call."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._room = threading.BoundedSemaphore(AT_ONCE)

    @contextmanager
    def reading(self) -> Iterator[Store]:
        """Have a connection while inside."""
        with self._room, self._pool.lent() as store:
            yield store

    changing = reading


def _carried(ctx: Any) -> Asker:
    """Give who asks, as the request of a call carries it."""
    request = ctx.request_context.request
    asker = None if request is None else request.scope.get(ASKER)
    if not isinstance(asker, Asker):
        raise Refused("not_allowed", "nobody known asks")
    return asker
