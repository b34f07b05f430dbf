"""Stores of simulated worlds on a real PostgreSQL server: in a database of their own, whose clock the world tells.

The database answers `clock_timestamp()` by a function of its own that stands before the server's: what the house asks
is asked, and what it is told is the world's time. Connections are cut on the server itself.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote, urlencode, urlsplit, urlunsplit

import psycopg
from psycopg.pq import TransactionStatus

from duly import clock
from duly.chance import token_bytes
from duly.clock import Clock
from duly.store import Store
from duly.store.address import ServerAddress
from duly.store.postgres import STAMP, TURN_S, ServerLine
from duly.store.server_engine import Ear, ServerEngine, upgrade
from duly.testing.clocks import Face, Time
from duly.testing.served import Loss
from duly.testing.shelves import Shelf
from duly.testing.stores import Opening

CLOCK = """\
CREATE SCHEMA duly_world;
CREATE FUNCTION duly_world.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$
    SELECT timestamptz 'epoch' + current_setting('duly_world.us')::bigint * interval '1 microsecond'
$$
"""
SETTINGS = (
    "search_path = duly_world, public, pg_catalog",
    # Of hundreds of rows: planning would take longer than all else.
    "jit = off",
    "plan_cache_mode = force_generic_plan",
)
ROW_LOCK_MS = 100
"""How long a statement really waits for a row: nobody who has it goes on meanwhile."""
GONE_S = 10.0
KEPT = ("alembic_version", "meta")
Raw = psycopg.Connection[tuple[Any, ...]]


@contextmanager
def server_shelf(url: str) -> Iterator[Shelf]:
    """Give PostgreSQL stores, one after another, in a database that is made on the server of this URL, and dropped."""
    name = f"duly_world_{token_bytes(6).hex()}"
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name} TEMPLATE template0".encode())
        shelf = None
        try:
            shelf = _ServerShelf(ServerAddress(url=urlunsplit(urlsplit(url)._replace(path=f"/{name}"))))
            yield shelf.opening
        finally:
            if shelf is not None:
                shelf.close()
            admin.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


class _ServerShelf:
    """A database, and connections to it that nobody uses now."""

    def __init__(self, address: ServerAddress) -> None:
        self.address = address
        upgrade(address)
        self._own: Raw = psycopg.connect(address.url, autocommit=True)
        name = urlsplit(address.url).path[1:]
        self._own.execute(CLOCK.encode())
        for setting in SETTINGS:
            self._own.execute(f"ALTER DATABASE {name} SET {setting}".encode())
        told = self._own.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1").fetchall()
        self._emptied = ", ".join(str(row[0]) for row in told if row[0] not in KEPT)
        self._meta = self._own.execute("SELECT key, value FROM meta").fetchall()
        self._free: list[Raw] = []

    def opening(self, folder: Path) -> Opening:
        """Empty the store for a world that lives in this folder."""
        self._own.execute(f"TRUNCATE {self._emptied}, meta RESTART IDENTITY".encode())
        for row in self._meta:
            self._own.execute("INSERT INTO meta (key, value) VALUES (%s, %s)", row)
        return lambda clock: _WorldStore.on(self, folder, clock)

    def take(self) -> Raw | None:
        """Give a connection that nobody uses, if there is one."""
        return self._free.pop() if self._free else None

    def give_back(self, raw: Raw) -> None:
        """Keep a connection for the next who asks; what it had not committed is undone."""
        if raw.closed:
            return
        try:
            if raw.info.transaction_status != TransactionStatus.IDLE:
                raw.execute("ROLLBACK")
        except psycopg.Error:
            raw.close()
            return
        self._free.append(raw)

    def cut(self, backend: int) -> None:
        """End a connection on the server; who uses it finds out when it asks next."""
        self._own.execute("SELECT pg_terminate_backend(%s)", (backend,))
        until_s = clock.monotonic_s() + GONE_S
        while self._own.execute("SELECT 1 FROM pg_locks WHERE pid = %s LIMIT 1", (backend,)).fetchone():
            assert clock.monotonic_s() < until_s, "the server does not end a connection"

    def close(self) -> None:
        """Close the connections."""
        for raw in [*self._free, self._own]:
            raw.close()


class _WorldLine(ServerLine):
    """A connection that tells its server the time of the world in each transaction."""

    def __init__(self, shelf: _ServerShelf, time: Time, scale: float) -> None:
        self._shelf: _ServerShelf | None = shelf
        self._time = time
        self._scale = scale
        self.between: Callable[[], None] = lambda: None
        self.loses: Loss | None = None
        self._idle_us: int | None = None
        self.stood = False
        self._turn = self._writing = False
        super().__init__(shelf.address)

    def now_us(self) -> int:
        """The true time of the world."""
        return self._time.us

    def has_turn(self) -> bool:
        """Whether this transaction asked the server for the turn to write."""
        return self._turn

    def cut(self) -> None:
        """End the connection, and what was not committed with it."""
        if self._shelf is not None and not self.raw.closed:
            self._shelf.cut(self.raw.info.backend_pid)

    def begin_write(self, *, patience_s: float, first: bool) -> None:
        """Begin a write: from now on anything may come between two statements."""
        super().begin_write(patience_s=patience_s, first=first)
        self._writing = True

    def idle_us(self) -> int:
        """How long the server lets it stand still within this transaction, by the server's own word; 0: for ever."""
        if self._idle_us is None and not self.raw.closed:
            found = self.scalar(
                "SELECT extract(epoch FROM current_setting('idle_in_transaction_session_timeout')::interval)"
            )
            self._idle_us = int(float(found) * self._scale * 1e6)
        return self._idle_us or 0

    def commit(self, *, ring: bool) -> None:
        """Commit, unless the connection is cut just then; its answer may be lost."""
        self._writing = False
        if self.loses == "before":
            self.cut()
        elif self.loses == "after":
            self.raw = _Unanswered(self, self.raw)  # type: ignore[assignment]
        super().commit(ring=ring)
        self.stood = True

    def rollback(self) -> None:
        """Undo the transaction."""
        self._writing = False
        super().rollback()

    def close(self) -> None:
        """Give the connection back, once."""
        shelf, self._shelf = self._shelf, None
        if shelf is not None:
            shelf.give_back(self.raw)

    def _execute(self, text: str, given: Sequence[Any]) -> "psycopg.Cursor[tuple[Any, ...]]":
        if self._writing:
            self.between()
        return super()._execute(text, given)

    def _begin(self, head: str, patience_s: float, lock: str = "") -> bool:
        self._writing, self._idle_us = False, None
        head += f"; SET LOCAL duly_world.us = {self._time.store_us}"
        got = super()._begin(head, patience_s, f"{lock}; SET LOCAL lock_timeout = {ROW_LOCK_MS}")
        self._turn = "advisory" in lock
        return got

    def _connect(self) -> Raw:
        assert self._shelf is not None
        raw = self._shelf.take()
        if raw is None:
            raw = self._connect_anew()
            raw.prepare_threshold, raw.prepared_max = 1, None
        else:
            raw.execute(f"SET duly_world.us = {self._time.store_us}".encode())
            found = raw.execute(f"SELECT {STAMP}".encode()).fetchone()
            assert found is not None
            self.ahead_us = found[0] - clock.boottime_us()
        return raw

    def _connect_anew(self) -> Raw:
        """Connect, and tell the time with that: it is asked for at once."""
        address = self.address
        options = urlencode({"options": f"-c duly_world.us={self._time.store_us}"}, quote_via=quote)
        self.address = ServerAddress(url=f"{address.url}{'&' if '?' in address.url else '?'}{options}")
        try:
            return super()._connect()
        finally:
            self.address = address


class _Unanswered:
    """A connection that is cut after the server did what it was asked, and before it said so."""

    def __init__(self, line: _WorldLine, raw: Raw) -> None:
        self._line = line
        self._raw = raw
        self.info = raw.info
        self.closed = False

    def execute(self, text: str) -> None:
        """Do it, and lose the answer."""
        self._line.raw = self._raw
        self._raw.execute(text.encode())
        self._line.stood = True
        self._line.cut()
        self._raw.execute("SELECT 1")


class _WorldEar(Ear):
    """Hears what the world lets it hear."""

    def __init__(self) -> None:
        self._raw = None
        self._heard = True

    @property
    def descriptor(self) -> int | None:
        """It takes itself for one that listens, whether or not anything comes."""
        return 0

    def ring(self) -> None:
        """Hear of a write."""
        self._heard = True

    def drain(self) -> None:
        """Nothing waits."""

    def listen_again(self) -> None:
        """It never finds out that nothing comes any more."""

    def close(self) -> None:
        """It has nothing to give back."""


class _WorldEngine(ServerEngine):
    """One process's way to the database of a shelf."""

    def __init__(self, shelf: _ServerShelf, folder: Path) -> None:
        super().__init__(shelf.address, {})
        self._folder = folder

    @property
    def run_folder(self) -> Path:
        """Where the locks of who is at no host lie."""
        return self._folder / "nowhere.run"

    def watch(self) -> Ear:
        """Listen, as far as the world lets it."""
        self._ear = _WorldEar()
        return self._ear


class _WorldStore(Store):
    """A store on a server's shelf."""

    @classmethod
    def on(cls, shelf: _ServerShelf, folder: Path, clock: Clock) -> Self:
        """Open it for one process."""
        assert isinstance(clock, Face)
        line = _WorldLine(shelf, clock.machine.time, clock.machine.time.turn_s / TURN_S)
        engine = _WorldEngine(shelf, folder)
        made = cls(shelf.address, engine, line, clock=None, environ={}, readonly=False)
        made._again = lambda: cls.on(shelf, folder, clock)
        return made

    _again: Callable[[], Store]

    def another(self) -> Store:
        """Open it again for another thread of the same process."""
        return self._again()
