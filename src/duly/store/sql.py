"""Statements written in SQLAlchemy Core, compiled once per dialect, run through a held connection.

`Statement` is one statement with named parameters. `Batch` is one statement for many rows: a VALUES list of a few
fixed sizes, so that a batch costs a handful of prepared statements and never one a row. The form of batches can
change here, in one place.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import CTE, BigInteger, Column, Table, Text, bindparam, column, insert, values
from sqlalchemy.engine import Dialect
from sqlalchemy.sql.elements import CompilerElement

SIZES = (64, 16, 4, 1)
"""Rows per statement of a batch, largest first; the last is always 1."""

ROW_OF_CELLS = re.compile(r"VALUES\s*(\((?:%s::[A-Z]+(?:, )?)+\))")
QMARK, PYFORMAT = re.compile(r"\?"), re.compile(r"%\((\w+)\)s(::[A-Z]+)?")

Row = Sequence[Any]
REGISTERED: list["Statement | Batch"] = []
"""Every statement of the store, so that a test can compile each for both databases."""


class Compiled:
    """The text of a statement for one dialect, and the names of its parameters in the order of its question marks."""

    def __init__(self, text: str, order: Sequence[str]) -> None:
        self.text = text
        self.order = list(order)

    def bind(self, given: Mapping[str, Any]) -> list[Any]:
        """Lay named values out in the order of the text's question marks."""
        return [given[name] for name in self.order]


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
            found = self._compiled[dialect.name] = compiled(self.write(), dialect)
        return found


class Batch:
    """One statement for up to SIZES[0] rows at a time; `build(n)` writes it for n rows."""

    def __init__(self, build: Callable[[int], CompilerElement], columns: Sequence[str], *, hot: bool = False) -> None:
        self.build = build
        self.columns = tuple(columns)
        self.hot = hot
        """Every run goes through it: compiled before the first one needs it."""
        self._compiled: dict[tuple[str, int], Compiled] = {}
        self._arrays: Compiled | None = None
        REGISTERED.append(self)

    def in_arrays(self, dialect: Dialect) -> Compiled:
        """The statement's text for any number of rows, given as one array a column (PostgreSQL)."""
        if self._arrays is None:
            one = self.on(dialect, 1)
            self._arrays = Compiled(_in_arrays(one.text, len(self.columns)), self.columns)
        return self._arrays

    def on(self, dialect: Dialect, size: int) -> Compiled:
        """The statement's text for so many rows; its parameters lie row by row, constants last."""
        found = self._compiled.get((dialect.name, size))
        if found is None:
            found = self._repeated(dialect, size) or compiled(self.build(size), dialect)
            self._compiled[(dialect.name, size)] = found
            wanted = [cell(name, i) for i in range(size) for name in self.columns]
            assert not found.order or found.order == wanted, (found.order, wanted)
        return found

    def _repeated(self, dialect: Dialect, size: int) -> Compiled | None:
        """The text for one row with its row repeated: writing hundreds of cells anew costs a tenth of a second."""
        if size == 1 or dialect.paramstyle != "qmark":
            return None
        one = self.on(dialect, 1)
        row = f"({', '.join('?' * len(self.columns))})"
        if one.text.count(row) != 1:
            return None
        order = [cell(name, i) for i in range(size) for name in self.columns]
        return Compiled(one.text.replace(row, ", ".join([row] * size)), order)


def compiled(element: CompilerElement, dialect: Dialect) -> Compiled:
    """Compile a statement to plain placeholders; its constants are written out.

    Databases choose partial indexes by constants alone: SQLite would prepare the statement at each use for a bound
    one, and PostgreSQL's prepared plans would not use the index at all.
    """
    made: Any = element.compile(dialect=dialect)
    text = str(made)
    if dialect.paramstyle == "qmark":
        assert text.count("?") == len(made.positiontup or []), "no text of a statement holds a question mark of its own"
        pattern, mark = QMARK, "?"
    else:
        assert dialect.paramstyle == "pyformat"
        pattern, mark = PYFORMAT, "%s"
    names = iter(made.positiontup or [name for name, _ in PYFORMAT.findall(text)])
    order: list[str] = []

    def place(found: re.Match[str]) -> str:
        name, cast = next(names), (found[2] or "") if found.lastindex else ""
        if made.binds[name].required:
            order.append(name)
            return mark + cast
        value = made.binds[name].value
        literal = _literal(value) if mark == "?" else _literal(value).replace("%", "%%")
        return literal + (cast if value is None else "")

    return Compiled(pattern.sub(place, text), order)


def _in_arrays(text: str, columns: int) -> str:
    """Write the one row of a batch's VALUES as arrays, one a column, so that one text serves any number of rows."""
    found = ROW_OF_CELLS.findall(text)
    assert len(found) == 1, f"one row of parameters is expected in {text}"
    row: str = found[0]
    types = re.findall(r"%s::([A-Z]+)", row)
    assert len(types) == columns, (types, columns)
    arrays = ", ".join(f"%s::{'TEXT' if kind == 'VARCHAR' else kind}[]" for kind in types)
    return ROW_OF_CELLS.sub(lambda _: f"SELECT * FROM unnest({arrays})", text, count=1)


def _literal(value: int | str | None) -> str:
    if value is None:
        return "NULL"
    return str(int(value)) if isinstance(value, int) else "'" + value.replace("'", "''") + "'"


def cell(name: str, row: int) -> str:
    """Name the parameter of one cell, as SQLAlchemy never names one by itself."""
    return f"{name}__{row}"


def cut(count: int) -> Iterable[int]:
    """Cut a number of rows into the fixed sizes, largest first."""
    for size in SIZES:
        while count >= size:
            yield size
            count -= size


def compile_hot(dialect: Dialect, *, in_arrays: bool) -> None:
    """Compile what every run goes through, so that the first are not late by it."""
    for one in REGISTERED:
        if isinstance(one, Batch) and one.hot:
            if in_arrays:
                one.in_arrays(dialect)
            else:
                for size in SIZES:
                    one.on(dialect, size)


def insert_batch(table: Table, columns: Sequence[str], *, hot: bool = False) -> Batch:
    """Insert many rows into a table; a conflict raises and the caller's savepoint decides."""

    def build(size: int) -> CompilerElement:
        return insert(table).values(
            [{name: bindparam(cell(name, i), type_=table.c[name].type) for name in columns} for i in range(size)]
        )

    return Batch(build, columns, hot=hot)


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
