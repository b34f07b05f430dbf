"""Skips: ranges of a task's occurrences that a person skipped beforehand."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Select, bindparam, insert, select
from sqlalchemy.sql.elements import CompilerElement

from duly.clock import from_us, to_us
from duly.core.skips import Range
from duly.store.line import Line
from duly.store.sql import Batch, Statement, rows_of
from duly.store.tables import skips, tasks

COLUMNS = ("task", "first_us", "last_us", "by", "note")


def _ranges() -> Select[Any]:
    return select(*[skips.c[name] for name in COLUMNS])


INSERT = Statement(lambda: insert(skips).values({c.name: bindparam(c.name, type_=c.type) for c in skips.columns}))
OF = Statement(
    lambda: (
        _ranges()
        .where(skips.c.task == bindparam("task"), skips.c.last_us > bindparam("after_us"))
        .order_by(skips.c.first_us, skips.c.id)
    )
)


def _ahead(size: int) -> CompilerElement:
    v = rows_of(size, {"id": str})
    return (
        _ranges()
        .select_from(skips.join(v, v.c.id == skips.c.task).join(tasks, tasks.c.id == skips.c.task))
        .where(skips.c.last_us > tasks.c.planned_until_us)
        .order_by(skips.c.first_us, skips.c.id)
    )


AHEAD = Batch(_ahead, ("id",), hot=True)


class Skips:
    """Skips are added by people, read by planning and previews, and never changed."""

    def __init__(self, line: Line) -> None:
        self._line = line

    def insert(self, id_: str, task: str, range_: Range, at: datetime) -> None:
        """Add a range of a task's occurrences that shall not run."""
        self._line.run(
            INSERT,
            id=id_,
            task=task,
            first_us=to_us(range_.first),
            last_us=to_us(range_.last),
            at_us=to_us(at),
            by=range_.by,
            note=range_.note,
        )

    def of(self, task: str, *, after: datetime) -> list[Range]:
        """The ranges of a task that reach beyond an instant, such as its cursor, in the order of their beginnings."""
        return [_range(row) for row in self._line.rows(OF, task=task, after_us=to_us(after))]

    def ahead(self, ids: Sequence[str]) -> dict[str, list[Range]]:
        """The ranges of these tasks that reach beyond each one's cursor; a task without any is not named."""
        found: dict[str, list[Range]] = {}
        for row in self._line.many(AHEAD, [(id_,) for id_ in ids]):
            found.setdefault(row[0], []).append(_range(row))
        return found


def _range(row: Sequence[Any]) -> Range:
    return Range(first=from_us(row[1]), last=from_us(row[2]), by=row[3], note=row[4])
