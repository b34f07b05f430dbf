"""The door for agents in this process: `duly mcp` over standard input and output, for one who runs as this user."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any, cast

from duly import zones
from duly.config import Config, in_force
from duly.core.settings import Value
from duly.errors import Invalid
from duly.operations.askers import Asker
from duly.operations.lookup import caller
from duly.operations.rail import asker_in_a_run, asking_run
from duly.store import Store
from duly.store.address import Place

if TYPE_CHECKING:
    from duly.mcp.desk import Opening
    from duly.mcp.rails import Rails

OF_A_PERSON = frozenset({"read", "run", "write"})
EXTRA = "the extra mcp is not installed"
HOW_TO = "pip install 'duly[mcp]'"


def stdio(where: Place, rails: "Rails") -> None:
    """Answer one client over standard input and output until it closes them."""
    check_extra()
    import anyio

    from duly.mcp.desk import Desk
    from duly.mcp.making import make_server

    opening = Here(where)
    desk = Desk(opening, asker=lambda _ctx: asker_here(opening), rails=rails, zone=zones.machine_zone())
    anyio.run(make_server(desk).run_stdio_async)


def rails_of(found: Config, environ: Mapping[str, str], flags: Mapping[str, Value]) -> "Rails":
    """Give the rails for agents as this host has them."""
    check_extra()
    from duly.mcp.rails import Rails

    values: dict[str, Any] = {
        name: in_force(f"mcp.{name}", found, environ, flags.get(name)).value
        for name in ("commands", "shortest", "tasks_most")
    }
    return Rails(
        commands=values["commands"],
        shortest=cast(timedelta, values["shortest"]),
        tasks_most=cast(int, values["tasks_most"]),
    )


def check_extra() -> None:
    """Refuse where the library for it is not installed."""
    from importlib.util import find_spec

    if find_spec("mcp") is None:
        raise Invalid(EXTRA, field="duly mcp", hint=HOW_TO)


def asker_here(opening: "Opening") -> Asker:
    """Say who asks in this process: the person whose it is, or a run of ours that it belongs to."""
    run, by = asking_run(), f"{caller()} over mcp"
    if run is None:
        return Asker(name=by, rights=OF_A_PERSON)
    with opening.reading() as store:
        if store is None:
            return Asker(name=by, rights=frozenset(), run=run)
        with store.read() as session:
            return asker_in_a_run(session, run, name=by)


class Here:
    """The store of this process, opened by whichever thread asks, for as long as it asks."""

    def __init__(self, where: Place) -> None:
        self._where = where

    @contextmanager
    def reading(self) -> Iterator[Store | None]:
        """Have the store for reading; None where there is none yet, and none is made."""
        store = Store.find(self._where, os.environ)
        try:
            yield store
        finally:
            if store is not None:
                store.close()

    @contextmanager
    def changing(self) -> Iterator[Store]:
        """Have the store for writing; it is made where there was none."""
        store = Store.open(self._where, os.environ, create=True)
        try:
            yield store
        finally:
            store.close()
