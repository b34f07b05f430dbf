"""Missed occurrences: found later than their grace and not opened."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from sqlalchemy import Select, bindparam, func, or_, select, update

from duly.clock import to_us
from duly.core.run import Missed
from duly.store.line import Line
from duly.store.rows import MISSED_COLUMNS, missed_cells, missed_of, us
from duly.store.sql import Statement, insert_batch
from duly.store.tables import missed

PAGE = 1_000


def _all() -> Select[Any]:
    return select(*[missed.c[name] for name in MISSED_COLUMNS])


_text = missed.c.id.type
_lasts = or_(missed.c.expires_us.is_(None), missed.c.expires_us > bindparam("now_us"))
INSERT = insert_batch(missed, MISSED_COLUMNS)
BY_ID = Statement(lambda: _all().where(missed.c.id == bindparam("id")))
IDS_LIKE = Statement(
    lambda: select(missed.c.id).where(missed.c.id.like(bindparam("pattern"), escape="\\")).limit(bindparam("most"))
)
LISTED = Statement(
    lambda: (
        _all()
        .where(
            missed.c.id < bindparam("before"),
            or_(bindparam("task", type_=_text).is_(None), missed.c.task == bindparam("task")),
        )
        .order_by(missed.c.id.desc())
        .limit(bindparam("most"))
    )
)
LISTED_OPEN = Statement(
    lambda: (
        _all()
        .where(
            missed.c.state == "open",
            _lasts,
            missed.c.id < bindparam("before"),
            or_(bindparam("task", type_=_text).is_(None), missed.c.task == bindparam("task")),
        )
        .order_by(missed.c.id.desc())
        .limit(bindparam("most"))
    )
)
OPEN = Statement(
    lambda: (
        select(missed.c.task, func.sum(missed.c.count)).where(missed.c.state == "open", _lasts).group_by(missed.c.task)
    )
)
OVER = Statement(
    lambda: (
        _all()
        .where(missed.c.state == "open", missed.c.expires_us <= bindparam("now_us"))
        .order_by(missed.c.expires_us)
        .limit(bindparam("most"))
    )
)
SOONEST = Statement(lambda: select(func.min(missed.c.expires_us)).where(missed.c.state == "open"))
OPEN_OF = Statement(
    lambda: _all().where(missed.c.state == "open", missed.c.task == bindparam("task")).order_by(missed.c.id)
)
BETWEEN = Statement(
    lambda: (
        _all()
        .where(
            missed.c.task == bindparam("task"),
            missed.c.due_us <= bindparam("last_us"),
            missed.c.until_us >= bindparam("first_us"),
        )
        .order_by(missed.c.due_us, missed.c.id)
    )
)
WITHIN = Statement(
    lambda: (
        _all()
        .where(missed.c.due_us <= bindparam("last_us"), missed.c.until_us >= bindparam("first_us"))
        .order_by(missed.c.due_us, missed.c.id)
        .limit(bindparam("most"))
    )
)
OF_RUN = Statement(lambda: _all().where(missed.c.run == bindparam("run"), missed.c.run.is_not(None)))
DECIDE = Statement(
    lambda: (
        update(missed)
        # Who reads it first and writes it last loses: one answer each.
        .where(missed.c.id == bindparam("mis"), missed.c.state == bindparam("was_state"))
        .values(
            state=bindparam("now_state"),
            decided_by=bindparam("now_by"),
            decided_us=bindparam("now_decided_us"),
            note=bindparam("now_note"),
            run=bindparam("now_run"),
        )
    )
)


class MissedOnes:
    """Missed occurrences are added by planning and decided by people."""

    def __init__(self, line: Line) -> None:
        self._line = line

    def insert(self, found: Iterable[Missed]) -> None:
        """Add missed occurrences and stretches of them."""
        self._line.many(INSERT, [missed_cells(one) for one in found])

    def by_id(self, id_: str) -> Missed | None:
        """The missed occurrence, or stretch of them, of this id."""
        row = self._line.row(BY_ID, id=id_)
        return None if row is None else missed_of(row)

    def ids_like(self, pattern: str, most: int) -> list[str]:
        """Ids of missed ones that match a LIKE pattern."""
        return [row[0] for row in self._line.rows(IDS_LIKE, pattern=pattern, most=most)]

    def listed(self, *, before: str = "~", task: str | None = None, most: int = 50) -> list[Missed]:
        """Missed ones with ids below `before`, the newest first."""
        return self._read(LISTED, before=before, task=task, most=most)

    def open(self, now: datetime, *, before: str = "~", task: str | None = None, most: int = 50) -> list[Missed]:
        """Offers that wait for a person's decision and have not run out, the newest first."""
        return self._read(LISTED_OPEN, before=before, task=task, most=most, now_us=to_us(now))

    def open_counts(self, now: datetime) -> dict[str, int]:
        """How many occurrences wait for a person's decision, by task."""
        return {row[0]: int(row[1]) for row in self._line.rows(OPEN, now_us=to_us(now))}

    def all_of(self, task: str) -> Iterator[Missed]:
        """All missed ones of a task, the newest first, read page by page."""
        before = "~"
        while page := self.listed(before=before, task=task, most=PAGE):
            yield from page
            before = page[-1].id

    def open_of(self, task: str) -> list[Missed]:
        """The open offers of a task, run out or not, the oldest first."""
        return self._read(OPEN_OF, task=task)

    def over(self, now: datetime, most: int) -> list[Missed]:
        """Open offers whose window is over, the first to run out at the front."""
        return self._read(OVER, now_us=to_us(now), most=most)

    def between(self, task: str, first: datetime, last: datetime) -> list[Missed]:
        """Missed ones of a task that have to do with a span, both ends included, in order of their beginnings."""
        return self._read(BETWEEN, task=task, first_us=to_us(first), last_us=to_us(last))

    def within(self, first: datetime, last: datetime, *, most: int) -> list[Missed]:
        """Missed ones of all tasks that have to do with a span, both ends included; reads them all."""
        return self._read(WITHIN, first_us=to_us(first), last_us=to_us(last), most=most)

    def of_run(self, run: str) -> list[Missed]:
        """The missed ones that name a run: it became it, or was too late to go on."""
        return self._read(OF_RUN, run=run)

    def decide(self, before: Missed, after: Missed) -> bool:
        """Write who decided, when and how; False where somebody had decided since it was read."""
        assert before.id == after.id
        changed = self._line.run(
            DECIDE,
            mis=before.id,
            was_state=before.state,
            now_state=after.state,
            now_by=after.decided_by,
            now_decided_us=us(after.decided_at),
            now_note=after.note,
            now_run=after.run,
        )
        return changed == 1

    def _read(self, statement: Statement, **given: Any) -> list[Missed]:
        return [missed_of(row) for row in self._line.rows(statement, **given)]
