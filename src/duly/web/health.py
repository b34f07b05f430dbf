"""Whether this process lives, whether it is ready for work, and what is measured of it and of its store."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from starlette.concurrency import run_in_threadpool

from duly.errors import DulyError
from duly.metrics import page
from duly.metrics.counting import Counting
from duly.web.describing import described
from duly.web.frame import House, Reads, answer
from duly.web.streams import tail_of

router = APIRouter(tags=["health"])


@asynccontextmanager
async def life(app: FastAPI) -> AsyncIterator[None]:
    """Count from the begin of the interface on."""
    house: House = app.state.house
    counting = app.state.counting = Counting()

    def begin() -> None:
        try:
            with house.pool.lent() as store, store.read() as session:
                counting.begin(session)
        except DulyError as error:
            house.tell("metrics are counted from the first look at them", {"error": error.message})

    await run_in_threadpool(begin)
    yield


def _told(summary: str, right: str | None, *statuses: int) -> dict[str, Any]:
    told = described(summary, right=right)
    for status in (200, *statuses):
        told["responses"][status] = {"description": summary if status == 200 else "it is not, and why"}
    return told


@router.get("/healthz", **_told("This process lives", None))
def alive() -> Response:
    """Answer, which is all that is asked."""
    return answer({"status": "ok"})


@router.get("/readyz", **_told("The store is reachable, and the loops turn", None, 503))
def ready(request: Request) -> Response:
    """Say whether this process does its work; of what keeps it from that, no more than its kind is told."""
    house: House = request.app.state.house
    checks = {"store": _store(house), "loops": house.trouble()}
    status = 200 if not any(checks.values()) else 503
    told = {"status": "ok" if status == 200 else "not ready", **{name: why or "ok" for name, why in checks.items()}}
    return answer(told, status=status)


MEASURED = _told("What is measured, as Prometheus reads it", "read")
MEASURED["responses"][200]["content"] = {
    kind: {"schema": {"type": "string"}} for kind in ("text/plain", "application/openmetrics-text")
}


@router.get("/metrics", **MEASURED)
def metrics(ask: Reads, request: Request) -> Response:
    """Measure the whole store, and this process."""
    ask.check_everything("what is measured")
    counting: Counting = request.app.state.counting
    with ask.store.read() as session:
        text, kind = page.page(
            session,
            counting,
            holder=ask.house.holder,
            readers=tail_of(request).readers,
            accept=request.headers.get("accept", ""),
        )
    return Response(text, media_type=kind)


def _store(house: House) -> str | None:
    try:
        with house.pool.lent() as store, store.read() as session:
            session.ledger.last()
            store.check_here()
    except DulyError as error:
        return error.reason
    return None
