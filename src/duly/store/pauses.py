"""Pauses: an operator's holds, by task, project or store; they stack."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Select, bindparam, delete, func, insert, select

from duly.clock import from_us, to_us
from duly.store.line import Line
from duly.store.rows import Pause, at, us
from duly.store.sql import Statement
from duly.store.tables import pauses

COLUMNS = tuple(column.name for column in pauses.columns)


def _all() -> Select[Any]:
    return select(*[pauses.c[name] for name in COLUMNS])


ALL = Statement(lambda: _all().order_by(pauses.c.since_us, pauses.c.id))
OVER = Statement(lambda: _all().where(pauses.c.until_us <= bindparam("now_us")).order_by(pauses.c.until_us))
SOONEST = Statement(lambda: select(func.min(pauses.c.until_us)))
INSERT = Statement(lambda: insert(pauses).values({c.name: bindparam(c.name, type_=c.type) for c in pauses.columns}))
DELETE = Statement(lambda: delete(pauses).where(pauses.c.id == bindparam("id")))


class Pauses:
    """Pauses are few: they are read whole."""

    def __init__(self, line: Line) -> None:
        self._line = line

    def all(self) -> list[Pause]:
        """Every pause, the oldest first."""
        return [_of(row) for row in self._line.rows(ALL)]

    def over(self, now: datetime) -> list[Pause]:
        """Pauses whose end has come."""
        return [_of(row) for row in self._line.rows(OVER, now_us=to_us(now))]

    def insert(self, pause: Pause) -> None:
        """Add a pause; IntegrityError when its scope and target have one."""
        self._line.run(
            INSERT,
            id=pause.id,
            scope=pause.scope,
            target=pause.target,
            since_us=to_us(pause.since),
            until_us=us(pause.until),
            note=pause.note,
            by=pause.by,
        )

    def delete(self, id_: str) -> None:
        """Lift a pause."""
        self._line.run(DELETE, id=id_)


def holding(pauses_: Sequence[Pause], *, task: str, project_key: str) -> list[Pause]:
    """The pauses among these that hold a task."""
    targets = {"task": task, "project": project_key, "store": ""}
    return [pause for pause in pauses_ if targets[pause.scope] == pause.target]


def _of(row: Sequence[Any]) -> Pause:
    p = dict(zip(COLUMNS, row, strict=True))
    return Pause(
        id=p["id"],
        scope=p["scope"],
        target=p["target"],
        since=from_us(p["since_us"]),
        until=at(p["until_us"]),
        note=p["note"],
        by=p["by"],
    )
