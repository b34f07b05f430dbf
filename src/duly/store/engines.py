"""Which database a store is in, and what a store asks of it beyond its connections."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from duly.clock import Clock
from duly.store.address import Address, Place


class Watched(Protocol):
    """Tells of writes; `descriptor` can be polled, and is None while nothing is told."""

    @property
    def descriptor(self) -> int | None:
        """What to poll."""

    def drain(self) -> None:
        """Take in what was told so far."""

    def close(self) -> None:
        """Watch no longer."""


class Engine(Protocol):
    """How one kind of database is found, made, opened and watched."""

    one_place: bool
    """All who use it share this machine: what has no lease is proven dead by its lock."""

    def exists(self) -> bool:
        """A store stands at the address, to be opened or left; StoreAway where none can."""

    def leave(self) -> None:
        """Let go of what the last look has opened."""

    def make(self) -> None:
        """Make the store where there is none yet."""

    def note(self) -> None:
        """Remember that a store stood here."""

    def open(self, *, readonly: bool, may_migrate: bool) -> Any:
        """Give a first connection to a store that this version may use."""

    def connect(self, *, readonly: bool) -> Any:
        """Give one more connection."""

    def clock(self, line: Any) -> Clock:
        """The clocks that decide, where nobody gave others."""

    @property
    def run_folder(self) -> Path:
        """Where this host keeps holders' locks and attempts of this store."""

    def check_here(self) -> None:
        """Raise StoreAway when what was opened is no longer at its place."""

    def check_version(self, line: Any) -> None:
        """Raise StoreNewer when the store is for newer versions only."""

    def watch(self) -> Watched:
        """Be told of what others write."""

    def restless(self) -> bool:
        """A commit may be about to be seen, and is worth asking for."""

    def changed(self, line: Any) -> bool:
        """Somebody else may have written since this was last asked."""

    def quick_check(self, line: Any) -> str:
        """Whether the store is sound, as far as can be told quickly: `ok`, or the first fault."""

    def faults(self, line: Any) -> list[str]:
        """What is wrong with how the store is kept."""


def engine_of(address: Place, environ: Mapping[str, str]) -> Engine:
    """Give the engine of the database that an address names."""
    if isinstance(address, Address):
        from duly.store.file_engine import FileEngine

        return FileEngine(address, environ)
    from duly.store.server_engine import ServerEngine

    return ServerEngine(address, environ)


def stands(address: Place, environ: Mapping[str, str]) -> bool:
    """Say whether there is a store, or something else, at a store's address."""
    if isinstance(address, Address):
        return address.path.exists()
    engine = engine_of(address, environ)
    try:
        return engine.exists()
    finally:
        engine.leave()
