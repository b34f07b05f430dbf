"""What every route asks for: the store, and who asks, with the right it needs.

How a route is added:

1. One file a noun, `web/NOUN.py`, with `router = APIRouter(tags=["NOUN"])`, and its name in `making.NOUNS`. Paths are
   written without `/api/v1`. Routes are plain `def` functions; only what streams is `async`.
2. The first parameter says which right the route needs: `ask: Reads`, `Runs`, `Answers`, `Writes` or `Admin`. It stands
   first, because parameters are looked at in order: who has no right is refused before anything of theirs is read.
   `ask.store` is a connection of the route's own until it returns; `ask.by` is the name that is written down.
3. What is of one project: `ask.task(session, word)` and `ask.run(session, word)` find by id or name and refuse who is
   held to other projects; `ask.check(project)` refuses, `ask.sees(project)` says (for lists); `ask.check_everything`
   refuses who is held to projects at all, where something is of the whole store.
4. A body is read by `body: Asked` (see `bodies.py`), after `ask`. Errors are raised as everywhere (`Invalid`,
   `Refused`, `StoreAway`): `problems.py` makes the answer of them.
5. What is answered is a dict of `operations.shapes`, by `answer(dict, status=…, version=…, location=…)`.
6. The decorator tells what the route is by `**described(...)` (see `describing.py`), which makes the OpenAPI page.

What streams takes `ask: Reads` too: the store is given back before the stream begins, so that a stream takes
connections of its own from `ask.house.pool`, for as long as it needs one.
"""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Annotated, Any, Protocol

from fastapi import Depends, FastAPI, Request, Response
from starlette.concurrency import run_in_threadpool
from starlette.types import ASGIApp

from duly.core.run import Run
from duly.core.task import Task
from duly.errors import StoreAway
from duly.operations import reaching, tasks, tokens
from duly.operations.askers import Asker, check_everything, check_project, check_right
from duly.store.pool import Pool
from duly.store.store import Session, Store
from duly.store.tokens import Kind
from duly.web.pace import Pace
from duly.web.problems import Unknown
from duly.web.queries import refuse_unread
from duly.web.reach import SAFE, Reach

PREFIX = "/api/v1"
COOKIE = "duly_session"
AT_ONCE = 8
"""Requests that have a connection to the store at one time; more wait for one of them."""

Tell = Callable[[str, Mapping[str, object]], None]
Life = Callable[[FastAPI], AbstractAsyncContextManager[None]]


class Switch(Protocol):
    """Switches a task on or off; one that a file defines in the file, where that lies on this host."""

    def __call__(self, store: Store, word: str, *, on: bool, by: str, run: str | None) -> Task:
        """Give the task as it stands then."""


def switch(store: Store, word: str, *, on: bool, by: str, run: str | None) -> Task:
    """Switch a task in the store alone."""
    return tasks.enable(store, word, by=by, run=run) if on else tasks.disable(store, word, by=by)


@dataclass(frozen=True, slots=True, kw_only=True)
class House:
    """What the interface lives among in the process that serves."""

    pool: Pool
    tell: Tell
    reach: Reach
    environ: Mapping[str, str]
    holder: str | None = None
    closing: threading.Event = field(default_factory=threading.Event)
    """Set when the process stops: streams end by themselves."""
    trouble: Callable[[], str | None] = lambda: None
    """What is wrong with the loops beside it; None where they turn."""
    mounts: Mapping[str, ASGIApp] = field(default_factory=dict)
    """What others answer, by the begin of the path."""
    switch: Switch = switch
    lives: Sequence[Life] = ()
    """What begins and ends with the interface."""
    pace: Pace = field(default_factory=Pace)
    room: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One request: who asks, and a connection to the store until the route returns."""

    asker: Asker
    store: Store
    house: House

    @property
    def by(self) -> str:
        """The name that is written down."""
        return self.asker.name if self.asker.run is None else f"{self.asker.name} in {self.asker.run}"

    def sees(self, project: str) -> bool:
        """Whether a project, by its name or key, is one of theirs."""
        return self.asker.sees(project)

    def check(self, project: str) -> None:
        """Refuse who is held to other projects."""
        check_project(self.asker, project)

    def check_everything(self, what: str) -> None:
        """Refuse who is held to projects, where something is of the whole store."""
        check_everything(self.asker, what)

    def task(self, session: Session, word: str) -> Task:
        """Find the task a word means, and refuse who is held to other projects, with no word of what is there."""
        return reaching.task(session, self.asker, word)

    def run(self, session: Session, word: str) -> Run:
        """Find the run a word means, and refuse who is held to other projects, with no word of what is there."""
        return reaching.run(session, self.asker, word)


def answer(
    told: object,
    *,
    status: int = 200,
    version: int | None = None,
    location: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Answer with JSON; `version` makes the ETag `"v7"`, `location` a path below `/api/v1`."""
    given = dict(headers or {})
    if version is not None:
        given["ETag"] = f'"v{version}"'
    if location is not None:
        given["Location"] = PREFIX + location
    return Response(as_json(told), status_code=status, headers=given, media_type="application/json")


def nothing() -> Response:
    """Answer that it is done, without a word."""
    return Response(status_code=204)


def as_json(told: object) -> bytes:
    """Write JSON; halves of characters, which no UTF-8 has, are written as the question marks they are."""
    text = json.dumps(told, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.encode("utf-8", "replace")


@asynccontextmanager
async def lent(house: House) -> AsyncIterator[Store]:
    """Lend a connection; who waits for one waits without a thread, so that those who have one get theirs."""
    async with house.room:
        store = await run_in_threadpool(house.pool.take)
        sound = left = False
        try:
            yield store
            sound = True
        except StoreAway:
            raise
        except asyncio.CancelledError:
            left = True  # a thread may be at work with it still: to close it under its hands ends the process
            raise
        except Exception:
            sound = True  # what was asked failed, not the connection
            raise
        finally:
            if not left:
                house.pool.give(store, sound=sound)


async def _store(request: Request) -> AsyncIterator[Store]:
    async with lent(request.app.state.house) as store:
        yield store


LentStore = Annotated[Store, Depends(_store, scope="function")]


def _asking(right: str) -> Any:
    async def known(request: Request) -> Asker:
        house: House = request.app.state.house
        async with lent(house) as store:
            asker = await run_in_threadpool(asker_of, request, store, house)
        check_right(asker, right)
        refuse_unread(request)
        if request.method not in SAFE:
            await request.body()  # before there is a connection for the route: who sends slowly holds none
        return asker

    async def ask(request: Request, asker: Annotated[Asker, Depends(known)], store: LentStore) -> Ask:
        return Ask(asker=asker, store=store, house=request.app.state.house)

    return Depends(ask, scope="function")


def asker_of(request: Request, store: Store, house: House) -> Asker:
    """Recognise who asks by their token, else by their browser's session; refuses who asks too much."""
    secret, found = _recognised(request, store, house)
    if found is None:
        house.pace.failed(request.client.host if request.client is not None else "")
        raise Unknown("no such token counts")
    house.pace.asked(secret)
    return found


def known_still(request: Request, store: Store, house: House) -> Asker | None:
    """Recognise who asked once more, while their answer goes on: it counts as no request, and as no guess."""
    return _recognised(request, store, house)[1]


def _recognised(request: Request, store: Store, house: House) -> tuple[str, Asker | None]:
    given = request.headers.getlist("authorization")
    kinds: tuple[Kind, ...] = ("token", "run")
    cookie = request.cookies.get(COOKIE)
    if not given and cookie is None:
        raise Unknown("a token is wanted: Authorization: Bearer TOKEN")
    if given:
        scheme, _, secret = given[0].partition(" ")
        secret = secret.strip()
        if len(given) > 1 or scheme.lower() != "bearer" or not secret:
            raise Unknown("one header Authorization: Bearer TOKEN is wanted")
    else:
        house.reach.check_own_page(request.method, request.headers)
        secret, kinds = str(cookie), ("session",)
    with store.read() as session:
        return secret, tokens.asker_of(session, secret, kinds)


Reads = Annotated[Ask, _asking("read")]
Runs = Annotated[Ask, _asking("run")]
Answers = Annotated[Ask, _asking("answer")]
Writes = Annotated[Ask, _asking("write")]
Admin = Annotated[Ask, _asking("admin")]
