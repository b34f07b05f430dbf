"""Whole copies of a store: taken while others write, checked before anybody relies on them, put where they belong.

A copy is made beside its place and gets its name only when it is whole and on disk. What is SQLite's own about
keeping stores stands here.
"""

import contextlib
import os
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from duly import clock
from duly.clock import from_us, to_us
from duly.errors import StoreAway, StoreBusy, StoreFull
from duly.store import engine, making
from duly.store.address import Address
from duly.store.engine import FileLine
from duly.store.files import NAMES_TRIED, SUFFIXES, folder_lock, give_name, set_aside, sync

UNFINISHED = ".copying"
TAKEN_AT = "backed_up_us"
"""In a copy's own `meta`: when it was taken."""
FAULTS_MOST = 20
"""Faults of a damaged file that are told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What a copy holds, as it was counted in it."""

    taken_at: datetime
    revision: str
    tasks: int
    runs: int
    last_entry: int
    bytes: int


@contextlib.contextmanager
def whole_copy(line: FileLine, folder: Path, name: str, *, taken_at: datetime | None = None) -> Iterator[Path]:
    """Copy a store as it stands at one moment into a file of its own, one file without a log, checked and on disk.

    The file goes when the caller is done with it, unless it was given a name by `give_name`.
    """
    import tempfile

    handle, made = tempfile.mkstemp(prefix=f".{name}.", suffix=UNFINISHED, dir=folder)
    os.close(handle)
    path = Path(made)
    try:
        copy = sqlite3.connect(path, isolation_level=None)
        try:
            line.raw.backup(copy, progress=_patience())
            copy.execute("PRAGMA journal_mode=DELETE")
            copy.execute("PRAGMA synchronous=FULL")
            if taken_at is not None:
                at = str(to_us(taken_at))
                copy.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (TAKEN_AT, at))
        except sqlite3.Error as error:
            raise _told(path.parent, error) from error
        finally:
            copy.close()
        check(path)
        sync(path)
        yield path
    finally:
        for suffix in SUFFIXES:
            Path(made + suffix).unlink(missing_ok=True)


def check(path: Path) -> None:
    """Read a copy from its first page to its last; StoreAway names what is damaged."""
    with looked_at(path) as line:
        found = faults(line)
    if found:
        raise StoreAway(f"{path} is damaged: {found[0]}", details={"faults": found})


def faults(line: FileLine) -> list[str]:
    """Read a whole store through and give what SQLite says is wrong with it; nothing if it is sound."""
    try:
        rows = line.raw.execute(f"PRAGMA integrity_check({FAULTS_MOST})").fetchall()
    except sqlite3.DatabaseError as error:
        return [str(error)]
    told = [text for (cell,) in rows for text in str(cell).splitlines()]
    return [] if told == ["ok"] else told[:FAULTS_MOST]


@contextlib.contextmanager
def looked_at(path: Path) -> Iterator[FileLine]:
    """Open a file for reading for a moment; StoreAway where it is no store of ours."""
    try:
        line = engine.connect(path, readonly=True)
    except sqlite3.Error as error:
        raise engine.told(path, error) from error
    try:
        yield line
    except sqlite3.Error as error:
        raise engine.told(path, error) from error
    finally:
        line.close()


def contents(line: FileLine, path: Path) -> Contents:
    """Count what a copy holds; one that does not say when it was taken was so at its newest entry or later."""
    found = making.look(line, path)
    taken = line.raw.execute("SELECT value FROM meta WHERE key = ?", (TAKEN_AT,)).fetchone()
    newest = line.scalar("SELECT max(at_us) FROM ledger")
    return Contents(
        taken_at=from_us(int(taken[0]) if taken and str(taken[0]).isdecimal() else int(newest or 0)),
        revision=found.revision,
        tasks=int(line.scalar("SELECT count(*) FROM tasks WHERE removed_us IS NULL")),
        runs=int(line.scalar("SELECT count(*) FROM runs")),
        last_entry=int(line.scalar("SELECT coalesce(max(seq), 0) FROM ledger")),
        bytes=int(line.scalar("PRAGMA page_count")) * int(line.scalar("PRAGMA page_size")),
    )


def keep_beside(path: Path, address: Address, why: str) -> Path:
    """Give a whole copy the first free name beside a store, such as `duly.db.before-restore.1`."""
    for number in range(1, NAMES_TRIED):
        target = address.path.with_name(f"{address.path.name}.{why}.{number}")
        if give_name(path, target):
            return target
    raise StoreAway(f"no name is free beside {address.path} for what it holds now")


def finish(path: Path, entries_ahead: int) -> None:
    """Make a copy that was worked on one file again, and let the numbers of its ledger go on so much higher."""
    try:
        raw = sqlite3.connect(path, isolation_level=None)
        try:
            raw.execute("DELETE FROM meta WHERE key = ?", (TAKEN_AT,))
            raw.execute("UPDATE sqlite_sequence SET seq = seq + ? WHERE name = 'ledger'", (entries_ahead,))
            raw.execute("PRAGMA journal_mode=DELETE")
        finally:
            raw.close()
    except sqlite3.Error as error:
        raise _told(path.parent, error) from error
    sync(path)


def overwrite(path: Path, address: Address) -> None:
    """Put a copy's contents in a standing store's place, in one transaction that all its readers see at once."""
    with looked_at(path) as line:
        target = engine.connect(address.path, readonly=False)
        try:
            line.raw.backup(target.raw, progress=_patience())
        except sqlite3.Error as error:
            raise engine.told(address.path, error) from error
        finally:
            target.close()


def put_in_place(path: Path, address: Address, why: str) -> Path | None:
    """Give a copy the store's own name; what stands there and cannot be used is moved aside, and its new name given."""
    with folder_lock(address.path.parent):
        kept = set_aside(address.path, why)
        path.rename(address.path)
        sync(address.path.parent)
    return kept


def _patience() -> Callable[[int, int, int], None]:
    """Let a copy wait for a lock no longer than any other write does."""
    until = clock.monotonic_s() + engine.PATIENCE_S

    def look(status: int, _left: int, _total: int) -> None:
        if status in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED} and clock.monotonic_s() > until:
            raise StoreBusy(f"the store is locked by another process (waited {engine.PATIENCE_S:g} s)")

    return look


def _told(folder: Path, error: sqlite3.Error) -> StoreAway:
    if (getattr(error, "sqlite_errorcode", 0) & 0xFF) == sqlite3.SQLITE_FULL:
        return StoreFull(f"the disk of {folder} is full; no copy was made")
    return engine.told(folder, error)
