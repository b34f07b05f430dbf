"""What tests do to a store's rows by hand, which no statement of ours does; the same on both databases."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import psycopg
import pytest

from duly.store import Store
from duly.store.address import Place, ServerAddress
from duly.store.engine import FileLine
from duly.store.line import Line
from duly.store.postgres import LOCK, ServerLine

TABLES = "SELECT tablename::text FROM pg_tables WHERE schemaname = current_schema() ORDER BY 1"
BUSY_S = 30


def by_hand(line: Line, text: str, *values: object) -> list[tuple[Any, ...]]:
    """Run one statement, with question marks for its values, inside the transaction of a connection."""
    if isinstance(line, FileLine):
        return line.raw.execute(text, values).fetchall()
    assert isinstance(line, ServerLine)
    cursor = line.raw.execute(text.replace("%", "%%").replace("?", "%s").encode(), values)
    return cursor.fetchall() if cursor.description is not None else []


def rows_at(place: Place, text: str, *values: object) -> list[tuple[Any, ...]]:
    """Run one statement on a store, past all of ours; committed when it returns."""
    if isinstance(place, ServerAddress):
        return rows_on_server(place, text, *values)
    uri = f"{place.path.as_uri()}?mode=rw"
    with closing(sqlite3.connect(uri, uri=True, timeout=BUSY_S, isolation_level=None)) as raw:
        return raw.execute(text, values).fetchall()


def rows_on_server(address: ServerAddress, text: str, *values: object) -> list[tuple[Any, ...]]:
    """Run one statement on a store in a database, past all of ours; committed when it returns."""
    with psycopg.connect(address.url, autocommit=True) as server:
        cursor = server.execute(text.replace("%", "%%").replace("?", "%s").encode(), values)
        return cursor.fetchall() if cursor.description is not None else []


def dump_of(place: Place) -> object:
    """All that stands at a store's address: the rows of its tables, a file's bytes, a folder's names, or nothing."""
    if isinstance(place, ServerAddress):
        with psycopg.connect(place.url, autocommit=True) as server:
            tables = [name for (name,) in server.execute(TABLES.encode()).fetchall()]
            return {
                name: server.execute(f'SELECT "{name}"::text FROM "{name}" ORDER BY 1'.encode()).fetchall()
                for name in tables
            } or None
    path = place.path
    if path.is_dir():
        return sorted(one.name for one in path.iterdir())
    if not path.exists():
        return None
    data = path.read_bytes()
    if not data.startswith(b"SQLite format 3"):
        return data
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as raw:
        return list(raw.iterdump())


@contextmanager
def locked(place: Place) -> Iterator[None]:
    """Hold a store's write lock meanwhile."""
    if isinstance(place, ServerAddress):
        with psycopg.connect(place.url) as server:
            server.execute(f"SELECT pg_advisory_xact_lock({LOCK})".encode())
            yield
            server.rollback()
        return
    with closing(sqlite3.connect(place.path, timeout=BUSY_S, isolation_level=None)) as raw:
        raw.execute("BEGIN IMMEDIATE")
        yield
        raw.execute("ROLLBACK")


def is_locked(place: Place) -> bool:
    """Whether somebody has a store's write lock at this moment."""
    if isinstance(place, ServerAddress):
        query = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted AND objid = ?"
        return bool(rows_on_server(place, query, LOCK)[0][0])
    with closing(sqlite3.connect(place.path, timeout=0, isolation_level=None)) as raw:
        try:
            raw.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return True
        raw.execute("ROLLBACK")
        return False


@contextmanager
def statements(line: Line) -> Iterator[list[str]]:
    """Give the texts of all that is sent over a connection meanwhile."""
    sent: list[str] = []
    if isinstance(line, FileLine):
        line.raw.set_trace_callback(sent.append)
        yield sent
        line.raw.set_trace_callback(None)
        return
    assert isinstance(line, ServerLine)
    execute = line.raw.execute

    def noted(text: bytes, *given: Any) -> Any:
        sent.append(text.decode())
        return execute(text, *given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(line.raw, "execute", noted)
        yield sent


def file_line(store: Store) -> FileLine:
    """Give a store's connection to its file, in tests of what a SQLite file has of its own."""
    line = store._line
    assert isinstance(line, FileLine)
    return line
