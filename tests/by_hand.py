"""What tests do to a store's rows by hand, which no statement of ours does; the same on both databases."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import psycopg
import pytest

from duly.store import Store, engine, postgres
from duly.store.address import Place, ServerAddress
from duly.store.engine import FileLine
from duly.store.line import Line
from duly.store.postgres import LOCK, ServerLine
from duly.store.sql import SIZES, Batch, Statement

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

    def noted(text: bytes | str, *given: Any) -> Any:
        sent.append(text if isinstance(text, str) else text.decode())
        return execute(text, *given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(line.raw, "execute", noted)
        yield sent


def takes_the_lock(text: str) -> bool:
    """Whether a statement begins a transaction by taking the store's write lock."""
    return text.startswith("BEGIN IMMEDIATE") or f"pg_advisory_xact_lock({LOCK})" in text


def plan_of(line: Line, written: Statement | Batch, value: object = None) -> str:
    """How a database would go about a statement, where tables are too long to be read from end to end."""
    if isinstance(line, FileLine):
        sizes = [written.on(engine.DIALECT, size) for size in SIZES] if isinstance(written, Batch) else []
        asked = sizes if isinstance(written, Batch) else [written.on(engine.DIALECT)]
        plans = [
            line.raw.execute(f"EXPLAIN QUERY PLAN {one.text}", [value for _ in one.order]).fetchall() for one in asked
        ]
        return "\n".join(str(row[3]) for plan in plans for row in plan)
    assert isinstance(line, ServerLine)
    batch = isinstance(written, Batch)
    one = written.in_arrays(postgres.DIALECT) if isinstance(written, Batch) else written.on(postgres.DIALECT)
    # Where nothing stands in the tables all plans cost the same, but for those that are made unthinkable.
    with line.raw.transaction(force_rollback=True):
        line.raw.execute(b"SET LOCAL enable_seqscan = off")
        given = [[] if batch else value for _ in one.order]
        rows = line.raw.execute(f"EXPLAIN {one.text}".encode(), given).fetchall()
    return "\n".join(str(row[0]) for row in rows)


def file_line(store: Store) -> FileLine:
    """Give a store's connection to its file, in tests of what a SQLite file has of its own."""
    line = store._line
    assert isinstance(line, FileLine)
    return line
