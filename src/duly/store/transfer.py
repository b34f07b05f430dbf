"""Making one store hold exactly what another holds, table by table and row by row, whichever databases they are in.

It compares before it writes, so that a transfer which was cut short goes on where it was, and one more look proves it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import Column, Table, and_, bindparam, delete, func, select, tuple_

from duly.store.line import Line
from duly.store.sql import Batch, Statement, insert_batch
from duly.store.tables import metadata

PAGE = 1_000
NOT_MOVED = frozenset({"meta"})
"""What a store says of itself."""

Row = tuple[Any, ...]
Progress = Callable[[str, int], None]


class Rows:
    """The rows of one table, in the order of their keys."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.columns = [column.name for column in table.columns]
        self.keys: list[Column[Any]] = list(table.primary_key.columns)
        self._at = [self.columns.index(key.name) for key in self.keys]
        everything = select(*table.columns).order_by(*self.keys).limit(PAGE)
        bounds = [bindparam(f"k{number}", type_=key.type) for number, key in enumerate(self.keys)]
        self._first = Statement(lambda: everything)
        self._after = Statement(lambda: everything.where(tuple_(*self.keys) > tuple_(*bounds)))
        self._delete = Statement(
            lambda: delete(table).where(and_(*[key == bound for key, bound in zip(self.keys, bounds, strict=True)]))
        )
        self._insert: Batch = insert_batch(table, self.columns)
        self._count = Statement(lambda: select(func.count()).select_from(table))

    def key(self, row: Sequence[Any]) -> Row:
        """The key of a row."""
        return tuple(row[at] for at in self._at)

    def pages(self, line: Line) -> Iterator[list[Row]]:
        """All rows, a page at a time; a page may be read in a transaction of its own."""
        page = [_plain(row) for row in line.rows(self._first)]
        while page:
            yield page
            page = [_plain(row) for row in line.rows(self._after, **self._given(self.key(page[-1])))]

    def count(self, line: Line) -> int:
        """How many rows there are."""
        found = line.row(self._count)
        return 0 if found is None else int(found[0])

    def put(self, line: Line, rows: Sequence[Row]) -> None:
        """Write rows that are not there."""
        line.many(self._insert, rows)

    def drop(self, line: Line, keys: Sequence[Row]) -> None:
        """Take rows away."""
        for key in keys:
            line.run(self._delete, **self._given(key))

    @staticmethod
    def _given(key: Row) -> Mapping[str, Any]:
        return {f"k{number}": value for number, value in enumerate(key)}


def moved_tables() -> list[Rows]:
    """Every table whose rows belong to the users of a store."""
    return [Rows(table) for table in metadata.sorted_tables if table.name not in NOT_MOVED]


def differences(rows: Rows, source: Line, target: Line) -> Iterator[tuple[list[Row], list[Row]]]:
    """Compare two tables: pages of rows that are missing or differ there, and of keys there that should not be."""
    theirs = _one_by_one(rows.pages(target))
    other = next(theirs, None)
    for page in rows.pages(source):
        missing: list[Row] = []
        stray: list[Row] = []
        for row in page:
            key = rows.key(row)
            while other is not None and rows.key(other) < key:
                stray.append(rows.key(other))
                other = next(theirs, None)
            if other is not None and rows.key(other) == key:
                if other != row:
                    stray.append(key)
                    missing.append(row)
                other = next(theirs, None)
            else:
                missing.append(row)
        yield missing, stray
    left = [] if other is None else [rows.key(other)]
    left += [rows.key(row) for row in theirs]
    if left:
        yield [], left


def _one_by_one(pages: Iterator[list[Row]]) -> Iterator[Row]:
    for page in pages:
        yield from page


def _plain(row: Sequence[Any]) -> Row:
    return tuple(bytes(cell) if isinstance(cell, memoryview) else cell for cell in row)
