"""The ledger: the append-only story of every occurrence and run."""

from collections.abc import Iterable
from typing import Any

from sqlalchemy import bindparam, func, or_, select, text

from duly.core.run import Entry
from duly.store import indexes
from duly.store.line import Line
from duly.store.rows import LEDGER_COLUMNS, Written, entry_cells, entry_of
from duly.store.sql import Statement, insert_batch
from duly.store.tables import ledger

INSERT = insert_batch(ledger, LEDGER_COLUMNS[1:], hot=True)
_columns = [ledger.c[name] for name in LEDGER_COLUMNS]
OF_RUN = Statement(lambda: select(*_columns).where(ledger.c.run == bindparam("run")).order_by(ledger.c.seq))
OF_TASK = Statement(
    lambda: (
        select(*_columns)
        .where(ledger.c.task == bindparam("task"), ledger.c.seq > bindparam("after"))
        .order_by(ledger.c.seq)
        .limit(bindparam("most"))
    )
)
AFTER = Statement(
    lambda: (
        select(*_columns)
        .where(
            ledger.c.seq > bindparam("after"),
            or_(bindparam("task", type_=ledger.c.task.type).is_(None), ledger.c.task == bindparam("task")),
            ledger.c.at_us >= bindparam("since_us"),
        )
        .order_by(ledger.c.seq)
        .limit(bindparam("most"))
    )
)
BEFORE = Statement(
    lambda: (
        select(*_columns)
        .where(
            ledger.c.seq < bindparam("before"),
            or_(bindparam("task", type_=ledger.c.task.type).is_(None), ledger.c.task == bindparam("task")),
            ledger.c.at_us >= bindparam("since_us"),
        )
        .order_by(ledger.c.seq.desc())
        .limit(bindparam("most"))
    )
)
AT = Statement(
    lambda: (
        select(*_columns)
        .where(ledger.c.at_us == bindparam("at_us"), ledger.c.occurrence == bindparam("occurrence"))
        .order_by(ledger.c.seq)
    )
)
OUTAGES = Statement(
    lambda: (
        select(*_columns)
        # In the very words of its index.
        .where(text(indexes.OUTAGES), ledger.c.seq < bindparam("before"))
        .order_by(ledger.c.seq.desc())
        .limit(bindparam("most"))
    )
)
LAST = Statement(lambda: select(func.max(ledger.c.seq)))
NEWEST = Statement(lambda: select(func.max(ledger.c.at_us)))


class Ledger:
    """Entries are added and read; none is ever changed."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self.added: list[Entry] = []
        """What this transaction has told so far."""

    def add(self, entries: Iterable[Entry]) -> None:
        """Append entries in their order."""
        fresh = list(entries)
        self._line.many(INSERT, [entry_cells(entry) for entry in fresh])
        self.added += fresh

    def of_run(self, run: str) -> list[Written]:
        """The whole story of one run, oldest first."""
        return [entry_of(row) for row in self._line.rows(OF_RUN, run=run)]

    def of_task(self, task: str, *, after: int = 0, most: int = 10_000) -> list[Written]:
        """A task's entries with numbers above `after`, oldest first."""
        return [entry_of(row) for row in self._line.rows(OF_TASK, task=task, after=after, most=most)]

    def after(self, seq: int, *, task: str | None = None, since_us: int = 0, most: int = 1000) -> list[Written]:
        """Entries with numbers above `seq`, oldest first."""
        return self._read(AFTER, after=seq, task=task, since_us=since_us, most=most)

    def before(self, seq: int, *, task: str | None = None, since_us: int = 0, most: int = 1000) -> list[Written]:
        """Entries with numbers below `seq`, newest first."""
        return self._read(BEFORE, before=seq, task=task, since_us=since_us, most=most)

    def outages(self, before: int, *, most: int) -> list[Written]:
        """Outages with numbers below `before`, the newest first."""
        return self._read(OUTAGES, before=before, most=most)

    def newest_us(self) -> int | None:
        """The latest moment of any entry, by the clocks of who wrote them; reads all of it."""
        row = self._line.row(NEWEST)
        return None if row is None else row[0]

    def at(self, at_us: int, occurrence: str) -> list[Written]:
        """What was told of an occurrence at one very moment, whichever its task, oldest first."""
        return self._read(AT, at_us=at_us, occurrence=occurrence)

    def last(self) -> int:
        """The number of the newest entry; 0 in an empty ledger."""
        row = self._line.row(LAST)
        return int(row[0]) if row and row[0] is not None else 0

    def _read(self, statement: Statement, **given: Any) -> list[Written]:
        return [entry_of(row) for row in self._line.rows(statement, **given)]
