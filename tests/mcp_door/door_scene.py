"""What the tests of the door for agents share: a store in a folder, a server's desk before it, the official client."""

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any

import anyio
from mcp import Client

import databases
from duly import clock
from duly.app.agents_door import Here
from duly.core.task import Task
from duly.definitions import read_definition
from duly.mcp.desk import Desk
from duly.mcp.making import make_server
from duly.mcp.rails import Rails
from duly.operations import tasks
from duly.operations.askers import Asker
from duly.store import Store
from duly.store.address import Address

ALL = frozenset({"read", "run", "write"})
ANN = Asker(name="ann over mcp", rights=ALL)
OPEN = Rails(commands="allow", shortest=timedelta(0))


ASKS = [ANN]
DESK = Desk(Here(Address(path=Path("/nowhere"))), asker=lambda _: ASKS[0], rails=OPEN, zone="Europe/Berlin")


@lru_cache(maxsize=1)
def one_server() -> Any:
    """The server of all tests: to make its schemas costs more than what most of them ask."""
    return make_server(DESK)


class Answer:
    """What a tool answered: its text, its JSON, whether it was a no."""

    def __init__(self, result: Any) -> None:
        self.is_no: bool = result.is_error
        self.text: str = "\n".join(one.text for one in result.content)
        self.shape: Mapping[str, Any] = result.structured_content or {}

    @property
    def reason(self) -> object:
        return self.shape.get("reason")


class Door:
    """A server in this process over a store in a folder; each call comes from a client of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.place = databases.unmade(folder)
        self.opening = Here(self.place)
        self.asker = ANN
        self.rails = OPEN

    def talk(self, do: Callable[[Client], Any]) -> Any:
        """Let one client talk to a server."""

        async def talked() -> Any:
            async with Client(one_server()) as client:
                return await do(client)

        DESK.opening, DESK.rails = self.opening, self.rails
        ASKS[:] = [self.asker]
        return anyio.run(talked)

    def call(self, tool: str, **given: Any) -> Answer:
        """Call one tool."""
        return Answer(self.talk(lambda client: client.call_tool(tool, given)))

    def make(self, name: str = "one", **given: Any) -> Answer:
        """Let a task be made that prints something at nine each day."""
        wanted = {"when": ["daily 09:00"], "command": ["echo", "hi"], "cwd": str(self.folder), **given}
        return self.call("schedule_create", name=name, **wanted)

    def store(self) -> Store:
        return Store.open(self.place, os.environ, create=True)

    def task(self, word: str) -> Task:
        from duly.operations.lookup import find_task

        with self.opening.reading() as store:
            assert store is not None
            with store.read() as session:
                return find_task(session, word)

    def add(self, name: str, **given: Any) -> Task:
        """Add a task as a person does."""
        wanted = {"name": name, "triggers": ["daily 09:00"], "action": {"kind": "command", "argv": ["true"]}, **given}
        read = read_definition(wanted, now=clock.now(), default_zone="UTC")
        with self.opening.changing() as store:
            return tasks.add(store, read.definition, by="ben", source={"kind": "cli"})

    def may(self, *rights: str, run: str | None = None, projects: frozenset[str] | None = None) -> None:
        """Let somebody else ask from now on."""
        self.asker = replace(ANN, rights=frozenset(rights), run=run, projects=projects)
