"""Missed occurrences: found later than their grace and not opened."""

from collections.abc import Iterable

from sqlalchemy import bindparam, func, or_, select

from duly.core.run import Missed
from duly.store.engine import Line
from duly.store.rows import MISSED_COLUMNS, missed_cells, missed_of
from duly.store.sql import Statement, insert_batch
from duly.store.tables import missed

INSERT = insert_batch(missed, MISSED_COLUMNS)
LISTED = Statement(
    lambda: (
        select(*[missed.c[name] for name in MISSED_COLUMNS])
        .where(or_(bindparam("task", type_=missed.c.task.type).is_(None), missed.c.task == bindparam("task")))
        .order_by(missed.c.id.desc())
        .limit(bindparam("most"))
    )
)
OPEN = Statement(
    lambda: select(missed.c.task, func.sum(missed.c.count)).where(missed.c.state == "open").group_by(missed.c.task)
)


class MissedOnes:
    """Missed occurrences are added by planning and decided by people."""

    def __init__(self, line: Line) -> None:
        self._line = line

    def insert(self, found: Iterable[Missed]) -> None:
        """Add missed occurrences and stretches of them."""
        self._line.many(INSERT, [missed_cells(one) for one in found])

    def listed(self, *, task: str | None = None, most: int = 50) -> list[Missed]:
        """Missed ones, the newest first."""
        return [missed_of(row) for row in self._line.rows(LISTED, task=task, most=most)]

    def open_counts(self) -> dict[str, int]:
        """How many occurrences wait for a person's decision, by task."""
        return {row[0]: int(row[1]) for row in self._line.rows(OPEN)}
