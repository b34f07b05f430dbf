"""The interface put together: every noun's routes, the guards before them, and what lives beside them.

A noun is added by its name in NOUNS; its file has a `router` (`frame.py` says how a route is written). What answers
outside of `/api/v1` (health, metrics) is named in OUTSIDE. What others answer is mounted by `House.mounts`, and what
begins and ends with the interface is one of `House.lives`, or an async context manager `life(app)` of a noun's file.
"""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from importlib import import_module
from typing import Any

from fastapi import FastAPI
from starlette.types import ASGIApp

from duly import __version__
from duly.web import describing, problems
from duly.web.frame import COOKIE, PREFIX, House
from duly.web.guards import Guards, fault_of_ours

NOUNS = (
    "status",
    "tasks",
    "acting",
    "asking",
    "runs",
    "missed",
    "questions",
    "hooks",
    "events",
    "sources",
    "ledger",
    "pauses",
    "projects",
    "limits",
    "budgets",
    "channels",
    "defaults",
    "preview",
    "tokens",
    "streams",
    "logs",
)
OUTSIDE: tuple[str, ...] = ("login", "manual", "health")


def make_app(house: House) -> ASGIApp:
    """Make the whole interface over a house; the guards are part of it."""
    return Guards(inner(house), house)


def inner(house: House) -> FastAPI:
    """Make the routes without the guards, for who has to look at them."""
    files = [*((name, PREFIX) for name in NOUNS), *((name, "") for name in OUTSIDE)]
    rooms = [(import_module(f"duly.web.{name}"), prefix) for name, prefix in files]

    @asynccontextmanager
    async def living(app: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for life in [*(room.life for room, _ in rooms if hasattr(room, "life")), *house.lives]:
                await stack.enter_async_context(life(app))
            yield

    app = FastAPI(title="Duly", version=__version__, docs_url=None, redoc_url=None, lifespan=living)
    app.state.house = house
    app.router.redirect_slashes = False
    problems.install(app)
    app.add_exception_handler(Exception, fault_of_ours)
    for room, prefix in rooms:
        app.include_router(room.router, prefix=prefix)
    for begin, mounted in house.mounts.items():
        app.mount(begin, mounted)
    _describe(app)
    return app


def _describe(app: FastAPI) -> None:
    """Add to the page of OpenAPI what no route says: the shapes, and how one proves who asks."""
    made = app.openapi

    def openapi() -> dict[str, Any]:
        page = made()
        describing.unfold(page)
        page.setdefault("components", {})
        page["components"]["schemas"] = describing.components()
        page["components"]["securitySchemes"] = {
            "token": {"type": "http", "scheme": "bearer", "description": "made by `duly token create`"},
            "session": {"type": "apiKey", "in": "cookie", "name": COOKIE, "description": "made by `duly open`"},
        }
        return page

    app.openapi = openapi  # type: ignore[method-assign]
