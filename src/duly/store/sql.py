"""Statements written in SQLAlchemy Core, compiled once per dialect, run through a held connection.

`Statement` is one statement with named parameters. `Batch` is one statement for many rows: a VALUES list of a few
fixed sizes, so that a batch costs a handful of prepared statements and never one a row. The form of batches can
change here, in one place.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import CTE, BigInteger, Column, Table, Text, bindparam, column, insert, values
from sqlalchemy.engine import Dialect
from sqlalchemy.sql.elements import CompilerElement

SIZES = (64, 16, 4, 1)
"""Rows per statement of a batch, largest first; the last is always 1."""

Row = Sequence[Any]
REGISTERED: list["Statement | Batch"] = []
"""Every statement of the store, so that a test can compile each for both databases."""


class Compiled:
    """The text of a statement for one dialect, and how its parameters are laid out."""

    def __init__(self, element: CompilerElement, dialect: Dialect) -> None:
        compiled = element.compile(dialect=dialect)
        self.text = str(compiled)
        self.order: list[str] = list(getattr(compiled, "positiontup", None) or [])
        self.defaults: Mapping[str, Any] = dict(compiled.params)

    def bind(self, given: Mapping[str, Any]) -> list[Any]:
        """Lay named values out in the order of the text's question marks."""
        defaults = self.defaults
        return [given[name] if name in given else defaults[name] for name in self.order]


class Statement:
    """One statement; its parameters are the `bindparam`s it was written with. Written and compiled at first use."""

    def __init__(self, write: Callable[[], CompilerElement]) -> None:
        self.write = write
        self._compiled: dict[str, Compiled] = {}
        REGISTERED.append(self)

    def on(self, dialect: Dialect) -> Compiled:
        """The statement's text for a dialect, compiled at first use."""
        found = self._compiled.get(dialect.name)
        if found is None:
            found = self._compiled[dialect.name] = Compiled(self.write(), dialect)
        return found


class Batch:
    """One statement for up to SIZES[0] rows at a time; `build(n)` writes it for n rows."""

    def __init__(self, build: Callable[[int], CompilerElement], columns: Sequence[str]) -> None:
        self.build = build
        self.columns = tuple(columns)
        self._compiled: dict[tuple[str, int], Compiled] = {}
        REGISTERED.append(self)

    def on(self, dialect: Dialect, size: int) -> Compiled:
        """The statement's text for so many rows; its parameters lie row by row, constants last."""
        found = self._compiled.get((dialect.name, size))
        if found is None:
            found = self._compiled[(dialect.name, size)] = Compiled(self.build(size), dialect)
            rows = size * len(self.columns)
            if found.order:
                wanted = [cell(name, i) for i in range(size) for name in self.columns]
                assert found.order[:rows] == wanted, (found.order[:rows], wanted)
        return found

    def constants(self, compiled: Compiled, size: int) -> list[Any]:
        """The values of the parameters that are the same for every row."""
        return [compiled.defaults[name] for name in compiled.order[size * len(self.columns) :]]


def cell(name: str, row: int) -> str:
    """Name the parameter of one cell, as SQLAlchemy never names one by itself."""
    return f"{name}__{row}"


def cut(count: int) -> Iterable[int]:
    """Cut a number of rows into the fixed sizes, largest first."""
    for size in SIZES:
        while count >= size:
            yield size
            count -= size


def insert_batch(table: Table, columns: Sequence[str]) -> Batch:
    """Insert many rows into a table; a conflict raises and the caller's savepoint decides."""

    def build(size: int) -> CompilerElement:
        return insert(table).values(
            [{name: bindparam(cell(name, i), type_=table.c[name].type) for name in columns} for i in range(size)]
        )

    return Batch(build, columns)


def rows_of(size: int, columns: Mapping[str, type]) -> CTE:
    """A VALUES list of so many rows named `v`, with one parameter a cell."""
    types: dict[type, Any] = {int: BigInteger(), str: Text()}
    cells: list[Any] = [column(name, types[kind]) for name, kind in columns.items()]
    data: list[Any] = [
        tuple(bindparam(cell(name, i), type_=types[kind]) for name, kind in columns.items()) for i in range(size)
    ]
    return values(*cells, name="v").data(data).cte("v")


@lru_cache(maxsize=64)
def python_type(of: Column[Any]) -> type:
    """The plain Python type of a column's values: int or str."""
    return str if isinstance(of.type, Text) else int
