"""What tests of streams share: a store, a tail over it, and readers that take a stream as a server hands it out."""

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import databases
from duly.core.run import Entry
from duly.core.task import Definition
from duly.core.when import read
from duly.operations import tasks
from duly.store import Store
from duly.store.address import Address, Place
from duly.store.pool import Pool
from duly.web.tail import Tail
from duly.zones import zone

WITHIN_S = 60.0
NINE = datetime(2026, 3, 2, 9, tzinfo=UTC)
ASGI = Callable[[Any, Any, Any], Any]


@dataclass
class Event:
    """One server-sent event as a browser reads it."""

    id: str | None
    kind: str
    data: Any


@dataclass
class Heard:
    """What a reader was sent, and the events in it."""

    raw: bytes = b""
    events: list[Event] = field(default_factory=list)
    last: str | None = None
    """The last event id, as a browser keeps it."""

    @property
    def seqs(self) -> list[int]:
        return [one.data["seq"] for one in self.events if one.kind == "message"]


class Streaming:
    """A store with a tail over it."""

    def __init__(self, folder: Path) -> None:
        if databases.ON_SERVER:
            self.place: Place = databases.fresh(folder)
        else:
            path = folder / "duly.db"
            path.write_bytes(databases.blank())
            self.place = Address(path=path)
        self.store = Store.open(self.place, {"HOME": str(folder / "home")})
        self.pool = Pool(self.store)
        self.told: list[str] = []
        self.tail = Tail(self.pool, lambda what, _: self.told.append(what))
        self.tail.start()

    def close(self) -> None:
        self.tail.stop()
        self.pool.close()
        self.store.close()

    def add(self, name: str, project: str = "default") -> str:
        action = {"kind": "command", "argv": ["true"]}
        trigger = read("every 1h", now=NINE, zone=zone("UTC")).trigger
        definition = Definition(name=name, project=project, action=action, triggers=(trigger,), zone="UTC")
        return tasks.add(self.store, definition, by="ann", source={"kind": "cli"}).id

    def tell(self, count: int = 1, *, task: str | None = None, big: int = 0) -> list[int]:
        """Add entries to the ledger; gives their numbers."""
        with self.store.write() as session:
            before = session.ledger.last()
            details = {"text": "x" * big} if big else {}
            session.ledger.add(
                Entry(kind="defined", at=session.now, task=task, by="ann", details=details) for _ in range(count)
            )
            return [one.seq for one in session.ledger.after(before, most=count)]


@contextmanager
def placed(folder: Path) -> Iterator[Streaming]:
    made = Streaming(folder)
    try:
        yield made
    finally:
        made.close()


def events_of(raw: bytes) -> Heard:
    """Read a stream of events as browsers do: an event that is not whole yet is none."""
    heard = Heard(raw=raw)
    blocks = raw.decode().split("\n\n")[:-1]
    for block in blocks:
        kind, data = "message", []
        for line in block.split("\n"):
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if name == "id":
                heard.last = value
            elif name == "event":
                kind = value
            elif name == "data":
                data.append(value)
        if data:
            heard.events.append(Event(id=heard.last, kind=kind, data=json.loads("\n".join(data))))
    return heard


class Reader:
    """Asks an app for a stream in a loop of its own, and leaves when it has enough or the stream ends."""

    def __init__(self, app: ASGI, scope: dict[str, Any], enough: Callable[["Reader"], bool]) -> None:
        self.raw = b""
        self.status: int | None = None
        self.headers: dict[str, str] = {}
        self.ended = False
        self._enough = enough
        self._app = app
        self._scope = scope

    @property
    def heard(self) -> Heard:
        return events_of(self.raw)

    def read(self) -> "Reader":
        asyncio.run(asyncio.wait_for(self._read(), WITHIN_S))
        return self

    async def _read(self) -> None:
        had = asyncio.Event()
        asked = [{"type": "http.request", "body": b"", "more_body": False}]

        async def receive() -> dict[str, Any]:
            if asked:
                return asked.pop()
            await had.wait()
            return {"type": "http.disconnect"}

        async def send(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start":
                self.status = message["status"]
                self.headers = {name.decode(): value.decode() for name, value in message["headers"]}
            else:
                self.raw += message.get("body", b"")
                self.ended = not message.get("more_body", False)
            if self._enough(self):
                had.set()
            await asyncio.sleep(0)

        await self._app(self._scope, receive, send)


def stream_scope(path: str = "/stream", query: str = "", **headers: str) -> dict[str, Any]:
    """One GET as a server gives it to an app; names of headers with `_` for `-`."""
    given = {"host": "127.0.0.1:7433", **{name.replace("_", "-"): value for name, value in headers.items()}}
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in given.items()],
        "client": ("127.0.0.1", 50_000),
        "server": ("127.0.0.1", 7433),
    }


@contextmanager
def aside(do: Callable[[], None]) -> Iterator[None]:
    """Do something in a thread of its own while inside."""
    thread = threading.Thread(target=do)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def until(holds: Callable[[], object]) -> None:
    """Wait until something holds, with patience."""
    end = time.monotonic() + WITHIN_S
    while not holds():
        assert time.monotonic() < end, "it never held"
        time.sleep(0.01)
