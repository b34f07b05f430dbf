"""What tests do to a store's rows by hand, which no statement of ours does; the same on both databases."""

from typing import Any

import psycopg

from duly.store import Store
from duly.store.address import ServerAddress
from duly.store.engine import FileLine
from duly.store.line import Line
from duly.store.postgres import ServerLine


def by_hand(line: Line, text: str, *values: object) -> list[tuple[Any, ...]]:
    """Run one statement, with question marks for its values, inside the transaction of a connection."""
    if isinstance(line, FileLine):
        return line.raw.execute(text, values).fetchall()
    assert isinstance(line, ServerLine)
    cursor = line.raw.execute(text.replace("%", "%%").replace("?", "%s").encode(), values)
    return cursor.fetchall() if cursor.description is not None else []


def rows_on_server(address: ServerAddress, text: str, *values: object) -> list[tuple[Any, ...]]:
    """Run one statement on a store in a database, past all of ours; committed when it returns."""
    with psycopg.connect(address.url, autocommit=True) as server:
        cursor = server.execute(text.replace("%", "%%").replace("?", "%s").encode(), values)
        return cursor.fetchall() if cursor.description is not None else []


def file_line(store: Store) -> FileLine:
    """Give a store's connection to its file, in tests of what a SQLite file has of its own."""
    line = store._line
    assert isinstance(line, FileLine)
    return line
