"""Sources with what they want of who sends to them, and how much waits of what was sent."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import BigInteger, Column, Integer, Table, Text, bindparam, delete, func, insert, select

from duly.clock import MICROSECOND, from_us, to_us
from duly.core.senders import Sender
from duly.store.line import Line
from duly.store.sql import Statement
from duly.store.tables import metadata, runs, task_sources

# What sources want of who sends to them without a token of ours.
senders = Table(
    "senders",
    metadata,
    Column("name", Text, primary_key=True),
    Column("by", Text),
    Column("secret", Text),  # its name
    Column("preset", Text, nullable=False),
    Column("header", Text, nullable=False),
    Column("within_us", BigInteger, nullable=False),
    Column("queue", Integer, nullable=False),
    Column("set_us", BigInteger, nullable=False),
    Column("set_by", Text, nullable=False),
)
COLUMNS = tuple(column.name for column in senders.columns)
ALL = Statement(lambda: select(*senders.columns).order_by(senders.c.name))
BY_NAME = Statement(lambda: select(*senders.columns).where(senders.c.name == bindparam("name")))
INSERT = Statement(lambda: insert(senders).values({c.name: bindparam(c.name, type_=c.type) for c in senders.columns}))
DELETE = Statement(lambda: delete(senders).where(senders.c.name == bindparam("of")))
WAITING = Statement(
    lambda: select(func.count()).select_from(
        select(runs.c.id)
        .select_from(task_sources.join(runs, runs.c.task == task_sources.c.task))
        .where(task_sources.c.source == bindparam("source"), runs.c.state == "waiting")
        .limit(bindparam("most"))
        .subquery()
    )
)


class Senders:
    """What sources want, by their names."""

    def __init__(self, line: Line) -> None:
        self._line = line

    def all(self) -> list[Sender]:
        """Every source of which something is wanted, by name."""
        return [_of(row) for row in self._line.rows(ALL)]

    def by_name(self, name: str) -> Sender | None:
        """What the source of this name wants."""
        row = self._line.row(BY_NAME, name=name)
        return None if row is None else _of(row)

    def set(self, one: Sender) -> None:
        """Write what a source wants, in place of what it wanted before."""
        self._line.run(DELETE, of=one.name)
        self._line.run(
            INSERT,
            name=one.name,
            by=one.by,
            secret=one.secret,
            preset=one.preset,
            header=one.header,
            within_us=one.within // MICROSECOND,
            queue=one.queue,
            set_us=to_us(one.set_at),
            set_by=one.set_by,
        )

    def remove(self, name: str) -> None:
        """Want nothing any more."""
        self._line.run(DELETE, of=name)

    def waiting(self, source: str, most: int) -> int:
        """Count the runs that wait of tasks which listen to a source, up to so many."""
        row = self._line.row(WAITING, source=source, most=most)
        return 0 if row is None else int(row[0])


def _of(row: Sequence[Any]) -> Sender:
    c = dict(zip(COLUMNS, row, strict=True))
    return Sender(
        name=c["name"],
        by=c["by"],
        secret=c["secret"],
        preset=c["preset"],
        header=c["header"],
        within=c["within_us"] * MICROSECOND,
        queue=c["queue"],
        set_at=from_us(c["set_us"]),
        set_by=c["set_by"],
    )
