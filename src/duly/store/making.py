"""Making a store, migrating it, and telling whether a file is one that this version may use.

A new store is made whole beside its place and then linked there, so that nobody ever sees half of one. Alembic is
imported only here, and only when a store is made or its revision differs.
"""

import contextlib
import glob
import os
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import duly
from duly import clock, ids
from duly.errors import StoreAway, StoreNewer
from duly.store import engine
from duly.store.address import Address, check_place, is_remembered, remember
from duly.store.files import SUFFIXES, folder_lock, give_name, set_aside
from duly.store.line import Line
from duly.store.migrations import LOWEST_VERSION, REVISIONS

if TYPE_CHECKING:
    from sqlalchemy import Connection

LINKED_WITHIN_S = 2.0
UNFINISHED_FOR_S = 3600.0
"""A store that has been in the making for longer has been left by its maker."""
LOOK_EVERY_S = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a file says of itself."""

    revision: str
    lowest_version: str
    moved_to: str | None = None
    """Where all that it held was moved; nobody uses it any more."""


def make(address: Address, environ: Mapping[str, str], *, again: bool = False) -> bool:
    """Make the store unless one stands there; `again`: also where a remembered one has vanished. True if made."""
    import tempfile

    check_place(address)
    if address.path.exists():
        return False
    if not again:
        check_not_vanished(address, environ)
    try:
        handle, name = tempfile.mkstemp(prefix=f".{address.path.name}.", suffix=".making", dir=address.path.parent)
        os.close(handle)
    except OSError as error:
        raise StoreAway(f"no store can be made at {address.path}: {error.strerror}") from error
    temporary = Path(name)
    _clear_away(address)
    try:
        _fill(temporary)
        with folder_lock(address.path.parent):
            if address.path.exists():
                return False  # another process was faster; its store is as good
            set_aside(address.path, "lost")
            if not give_name(temporary, address.path):
                return False
    except sqlite3.Error as error:
        raise engine.told(address.path, error) from error
    except OSError as error:
        raise StoreAway(f"no store can be made at {address.path}: {error.strerror}") from error
    finally:
        for suffix in SUFFIXES:
            Path(name + suffix).unlink(missing_ok=True)
    remember(address, environ)
    return True


def check_not_vanished(address: Address, environ: Mapping[str, str]) -> None:
    """Refuse to take a missing file for an empty store where one stood before."""
    if is_remembered(address, environ):
        raise StoreAway(
            f"the store {address.path} is gone: it stood here before, and nothing is made in its place",
            hint=f"bring the file back, `duly restore` a backup, or make it anew: duly init --store {address.path}",
        )


def check_one_name(path: Path) -> None:
    """Refuse a file with several hard links: each name would get a log of its own, and the file would be damaged.

    A store that is being put at its place has two names for a moment, which is waited for.
    """
    until = clock.monotonic_s() + LINKED_WITHIN_S
    while _links(path) > 1:
        if clock.monotonic_s() > until:
            raise StoreAway(
                f"the store {path} has more than one name (hard links): SQLite's log would be kept under each of them",
                hint="use a symbolic link, or remove the other names",
            )
        clock.pause(LOOK_EVERY_S)


def look(line: engine.FileLine, path: Path) -> Found:
    """Read which revision the file is of; StoreAway when it is no store of ours."""
    try:
        if line.scalar("PRAGMA application_id") != engine.APPLICATION_ID:
            raise _foreign(path)
        return read_found(line, _foreign(path))
    except sqlite3.OperationalError as error:
        if "no such table" in str(error):
            raise _foreign(path) from error
        raise engine.told(path, error) from error
    except sqlite3.DatabaseError as error:
        raise engine.told(path, error) from error


def read_found(line: Line, foreign: StoreAway) -> Found:
    """Read what a database with the tables of a store says of it; raises `foreign` where they are not ours."""
    revision = line.scalar("SELECT version_num FROM alembic_version")
    lowest = line.scalar("SELECT value FROM meta WHERE key = 'lowest_version'")
    moved = line.scalar("SELECT value FROM meta WHERE key = 'moved_to'")
    if revision is None or lowest is None:
        raise foreign
    return Found(revision=str(revision), lowest_version=str(lowest), moved_to=moved)


def check_version(found: Found, path: object) -> bool:
    """True when the store must be migrated before use; StoreNewer when this version may not use it.

    StoreAway where nobody uses it any more, since all that it held was moved.
    """
    if found.moved_to is not None:
        raise StoreAway(f"the store {path} was moved to {found.moved_to}", hint=f"--store {found.moved_to}")
    if _version(found.lowest_version) > _version(duly.__version__):
        raise StoreNewer(
            f"the store {path} is for Duly {found.lowest_version} or newer; this is {duly.__version__}",
            details={"lowest_version": found.lowest_version, "version": duly.__version__},
            hint="upgrade Duly on this host",
        )
    return found.revision in REVISIONS and found.revision != REVISIONS[-1]


def migrate(address: Address, line: engine.FileLine) -> Path:
    """Bring an older store to the last revision after a backup beside it; gives the backup's path."""
    try:
        backup = _backup(address, line)
        _upgrade(address.path)
    except sqlite3.Error as error:
        raise engine.told(address.path, error) from error
    return backup


def bring_up(path: Path) -> None:
    """Bring a copy that nobody uses yet to the last revision."""
    try:
        line = engine.connect(path, readonly=True)
        try:
            older = check_version(look(line, path), path)
        finally:
            line.close()
        if older:
            _upgrade(path)
    except sqlite3.Error as error:
        raise engine.told(path, error) from error


def _clear_away(address: Address) -> None:
    """Remove what a maker that was killed long ago left beside the place."""
    oldest = clock.to_us(clock.now()) / 1e6 - UNFINISHED_FOR_S
    for left in address.path.parent.glob(f".{glob.escape(address.path.name)}.*.making*"):
        with contextlib.suppress(OSError):
            if left.stat().st_mtime < oldest:
                left.unlink()


def _links(path: Path) -> int:
    try:
        return path.stat().st_nlink
    except OSError:
        return 0  # gone in between: opening it says so


def _foreign(path: Path) -> StoreAway:
    return StoreAway(f"{path} is not a store of Duly's; it was left as it is", hint="name another file with --store")


def _fill(path: Path) -> None:
    raw = sqlite3.connect(path, isolation_level=None)
    try:
        raw.execute(f"PRAGMA application_id = {engine.APPLICATION_ID}")
        raw.execute("PRAGMA journal_mode=WAL")
    finally:
        raw.close()
    _upgrade(path, new=True)


def _upgrade(path: Path, *, new: bool = False) -> None:
    from sqlalchemy import URL, create_engine, event
    from sqlalchemy.exc import DBAPIError
    from sqlalchemy.pool import NullPool

    alchemy = create_engine(URL.create("sqlite", database=str(path)), poolclass=NullPool)

    @event.listens_for(alchemy, "connect")
    def _on_connect(raw: sqlite3.Connection, _record: object) -> None:
        raw.isolation_level = None  # the driver would commit before DDL; we begin by ourselves
        raw.execute("PRAGMA synchronous=FULL")

    @event.listens_for(alchemy, "begin")
    def _on_begin(connection: object) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")  # type: ignore[attr-defined]

    try:
        with alchemy.begin() as connection:
            bring_to_head(connection, new=new)
    except DBAPIError as error:
        if isinstance(error.orig, sqlite3.Error):
            raise error.orig from error
        raise


def bring_to_head(connection: "Connection", *, new: bool) -> None:
    """Bring the database at the other end to the last revision, inside the transaction of the connection."""
    from alembic import command
    from alembic.config import Config
    from sqlalchemy import text

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
    say = text("INSERT INTO meta (key, value) VALUES (:key, :value) ON CONFLICT (key) DO UPDATE SET value = :value")
    connection.execute(say, {"key": "lowest_version", "value": LOWEST_VERSION})
    if new:
        connection.execute(say, {"key": "store_id", "value": ids.new("evt").removeprefix("evt_")})


def _backup(address: Address, line: engine.FileLine) -> Path:
    from duly.store import copies

    with copies.whole_copy(line, address.path.parent, address.path.name) as copy:
        return copies.keep_beside(copy, address, f"before-{REVISIONS[-1]}")


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part.isdecimal())
