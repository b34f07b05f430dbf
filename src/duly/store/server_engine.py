"""A store in a PostgreSQL database: how it is found, made, opened and listened to."""

import contextlib
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import psycopg
from psycopg import errors as pg

from duly import clock as machine
from duly.clock import Clock
from duly.errors import StoreAway, StoreNewer
from duly.store.address import ServerAddress, state_folder
from duly.store.making import Found, check_version, read_found
from duly.store.postgres import CHANNEL, LOCK, ServerClock, ServerLine

LOOK_ANYWAY_S = 5.0
"""While a connection listens the store is looked at so often all the same: a dead one hears nothing."""
LOOK_DEAF_S = 1.0
LISTEN_AGAIN_S = 5.0


class ServerEngine:
    """One process's way to one database; every connection has an engine of its own."""

    one_place = False

    def __init__(self, address: ServerAddress, environ: Mapping[str, str]) -> None:
        self.address = address
        self._environ = environ
        self._line: ServerLine | None = None
        self._store_id: str | None = None
        self._ear: Ear | None = None
        self._looked_s = float("-inf")

    def exists(self) -> bool:
        """The database can be reached, and a store of ours stands in it; to be opened, or left, afterwards."""
        return self.found() is not None

    def found(self) -> Found | None:
        """What the database says of the store in it; None where there is none."""
        line, self._line = self._line or ServerLine(self.address), None
        with _looking(line):
            found = self._found(line)
        if found is None:
            line.close()
        else:
            self._line = line
        return found

    def leave(self) -> None:
        """Close the connection of a look that is not followed by opening the store."""
        line, self._line = self._line, None
        if line is not None:
            line.close()

    def make(self) -> None:
        """Make the store where there is none yet; one at a time."""
        if not self.exists():
            upgrade(self.address)

    def note(self) -> None:
        """A database is not remembered: whether it is there is asked of its server."""

    def open(self, *, readonly: bool, may_migrate: bool) -> ServerLine:  # noqa: ARG002 - the same whatever is wished
        """Give the first connection to a store that this version may use.

        An older one is brought up by nobody who only opens it: other hosts are at work on it, and a person decides.
        """
        line, self._line = self._line or ServerLine(self.address), None
        with _looking(line):
            found = self._found(line)
            if found is None:
                raise StoreAway(f"there is no store at {self.address} yet", hint="duly init, or add a first task")
            if self._is_older(found):
                raise StoreAway(
                    f"the store {self.address} is of an older version of Duly",
                    hint="back it up with pg_dump, then `duly migrate`",
                )
            self._know(line, readonly=readonly)
        return line

    def connect(self, *, readonly: bool) -> ServerLine:
        """Open one more connection to a store that was opened before."""
        line = ServerLine(self.address)
        with _looking(line):
            self._know(line, readonly=readonly)
        return line

    def clock(self, line: ServerLine) -> Clock:
        """The clocks that decide: the database's."""
        return ServerClock(line)

    @property
    def run_folder(self) -> Path:
        """Where this host keeps holders' locks and attempts of this store."""
        return state_folder(self._environ) / "run" / str(self._store_id)

    def check_here(self) -> None:
        """Nothing to see without asking the server, which every statement does."""

    def check_version(self, line: ServerLine) -> None:
        """Raise StoreNewer when the store has been taken over by a version that leaves this one behind."""
        try:
            found = self._found(line)
        except psycopg.Error as error:
            raise line.told(error) from error
        if found is not None:
            self._is_older(found)

    def watch(self) -> "Ear":
        """Listen for what others write."""
        self._ear = Ear(self.address)
        return self._ear

    def restless(self) -> bool:
        """Who hears nothing has to ask."""
        return self._ear is None or self._ear.descriptor is None

    def changed(self, line: ServerLine) -> bool:  # noqa: ARG002 - asking the server would cost what a look costs
        """Somebody has told of a write, or it is time to look whatever was told."""
        ear, now_s = self._ear, machine.monotonic_s()
        if ear is not None:
            ear.drain()
            ear.listen_again()
        wait_s = LOOK_DEAF_S if self.restless() else LOOK_ANYWAY_S
        heard = ear is not None and ear.take()
        if heard or now_s - self._looked_s >= wait_s:
            self._looked_s = now_s
            return True
        return False

    def quick_check(self, line: ServerLine) -> str:  # noqa: ARG002 - a server looks after its own files
        """A server looks after its own files."""
        return "ok"

    def faults(self, line: ServerLine) -> list[str]:
        """What keeps this store from being kept as it should be."""
        found = []
        if line.scalar("SHOW fsync") != "on":
            found.append("fsync is off: a power cut may lose what was answered, or the database")
        if line.scalar("SHOW server_encoding") != "UTF8":
            found.append("the database's encoding is not UTF8: not every name can be kept")
        return found

    def _know(self, line: ServerLine, *, readonly: bool) -> None:
        """Learn which store it is, and make the folder of run folders for who may need one; reading makes nothing."""
        self._store_id = str(line.scalar("SELECT value FROM meta WHERE key = 'store_id'"))
        if not readonly:
            with contextlib.suppress(OSError):  # told by who needs it
                self.run_folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)

    def _found(self, line: ServerLine) -> Found | None:
        # Many programs keep the number of their schema in a table of this name.
        ours = line.scalar("SELECT num_nonnulls(to_regclass('alembic_version'), to_regclass('meta'))")
        if ours == 0:
            return None
        foreign = StoreAway(
            f"{self.address} holds tables that are not Duly's; they were left as they are",
            hint="give Duly a database of its own",
        )
        if ours == 1:
            raise foreign
        try:
            return read_found(line, foreign)
        except pg.UndefinedColumn as error:
            raise foreign from error

    def _is_older(self, found: Found) -> bool:
        return check_version(found, self.address)


@contextlib.contextmanager
def _looking(line: ServerLine) -> Iterator[None]:
    """Close a connection whose first look fails, and tell in words what its server said."""
    try:
        yield
    except psycopg.Error as error:
        told = line.told(error)
        line.close()
        raise told from error
    except BaseException:
        line.close()
        raise


class Ear:
    """A connection that listens; `descriptor` can be polled, and is None while nobody listens.

    Used by one thread. Where the connection was lost another thread makes the next one, as a server that is away may
    take seconds to say so.
    """

    def __init__(self, address: ServerAddress) -> None:
        self._address = address
        self._raw: psycopg.Connection[Any] | None = None
        self._tried_s = float("-inf")
        self._heard = True
        """What was told before anybody listened is not known."""
        self._lock = threading.Lock()
        self._connecting = self._closed = False
        self._tried_s = machine.monotonic_s()
        self._listen()

    @property
    def descriptor(self) -> int | None:
        """What to poll."""
        return None if self._raw is None else self._raw.fileno()

    def drain(self) -> None:
        """Take in what was told so far."""
        if self._raw is None:
            return
        try:
            self._raw.pgconn.consume_input()
            while self._raw.pgconn.notifies() is not None:
                self._heard = True
        except psycopg.Error:
            self._drop()

    def take(self) -> bool:
        """Say whether anything was told since this was last asked."""
        heard, self._heard = self._heard, False
        return heard

    def listen_again(self) -> None:
        """Begin to connect where nobody listens, once in a while; returns at once."""
        now_s = machine.monotonic_s()
        if self._raw is not None or self._connecting or now_s - self._tried_s < LISTEN_AGAIN_S:
            return
        self._tried_s = now_s
        self._connecting = True
        threading.Thread(target=self._listen, name="ear", daemon=True).start()

    def close(self) -> None:
        """Listen no longer."""
        with self._lock:
            self._closed = True
            self._drop()

    def _listen(self) -> None:
        try:
            with contextlib.suppress(StoreAway, StoreNewer, psycopg.Error):
                line = ServerLine(self._address)
                if line.pooled:
                    line.close()  # a pooler keeps no session that could listen
                    return
                try:
                    line.raw.execute(f"LISTEN {CHANNEL}")
                except BaseException:
                    line.close()
                    raise
                with self._lock:
                    self._raw = line.raw
                    self._heard = True
                    if self._closed:
                        self._drop()
        finally:
            self._connecting = False

    def _drop(self) -> None:
        if self._raw is not None:
            self._raw.close()
            self._raw = None
        self._heard = True


def upgrade(address: ServerAddress) -> None:
    """Bring the store to the last revision, making it where there is none: all in one transaction, one at a time."""
    from sqlalchemy import create_engine, text
    from sqlalchemy.dialects.postgresql.base import PGTypeCompiler
    from sqlalchemy.exc import DBAPIError
    from sqlalchemy.pool import NullPool

    from duly.store import making

    class ByBytes(PGTypeCompiler):
        """Texts compare by their bytes, in whatever language the database sorts: ids and marks rely on it."""

        def visit_TEXT(self, type_: Any, **given: Any) -> str:  # noqa: N802, ARG002
            return 'TEXT COLLATE "C"'

    line = ServerLine(address)
    raw, line_told = line.raw, line.told
    raw.autocommit = False
    alchemy = create_engine("postgresql+psycopg://", creator=lambda: raw, poolclass=NullPool)
    try:
        with alchemy.begin() as connection:
            connection.dialect.type_compiler_instance = ByBytes(connection.dialect)
            connection.execute(text(f"SELECT pg_advisory_xact_lock({LOCK})"))
            new = connection.execute(text("SELECT to_regclass('alembic_version') IS NULL")).scalar()
            making.bring_to_head(connection, new=bool(new))
    except DBAPIError as error:
        if isinstance(error.orig, psycopg.Error):
            raise line_told(error.orig) from error
        raise
    finally:
        raw.close()
