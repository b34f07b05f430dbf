"""What the store tells of one moment of one task: the stretch it lies in, how switches stood, which runs were near.

Each question is answered by an index, however long the ledger and the list of runs are.
"""

from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Select, TextClause, and_, bindparam, or_, select, text

from duly import ids
from duly.clock import to_us
from duly.core.run import Run
from duly.store.line import Line
from duly.store.rows import LEDGER_COLUMNS, RUN_COLUMNS, Written, entry_of, run_of
from duly.store.sql import Statement
from duly.store.tables import ledger, runs

SKEW = timedelta(minutes=1)
"""By how much the clock that ids are made by may differ from the store's."""
COUNTED = frozenset({"missed", "stretch"})
"""The kinds of entries that count instants without a start; `skipped` only says what shall be left out."""
LOOKED_AT = 10
"""Entries that end after a moment, nearest first, of which one may contain it."""


def _switches() -> TextClause:
    """The kinds of entries that tell how a task stood, in the very words of their index."""
    return text("ledger.kind IN ('defined', 'enabled', 'disabled', 'paused', 'unpaused', 'removed')")


def _entries() -> Select[Any]:
    return select(*[ledger.c[name] for name in LEDGER_COLUMNS])


def _runs() -> Select[Any]:
    return select(*[runs.c[name] for name in RUN_COLUMNS])


STRETCHES = Statement(
    lambda: (
        _entries()
        .where(ledger.c.task == bindparam("task"), ledger.c.until_us >= bindparam("at_us"))
        .order_by(ledger.c.until_us, ledger.c.seq)
        .limit(bindparam("most"))
    )
)
SWITCHES = Statement(
    lambda: (
        _entries()
        .where(_switches(), ledger.c.task == bindparam("task"), ledger.c.at_us <= bindparam("at_us"))
        .order_by(ledger.c.at_us.desc(), ledger.c.seq.desc())
        .limit(bindparam("most"))
    )
)
SWITCHES_OF_ALL = Statement(
    lambda: (
        _entries()
        .where(_switches(), ledger.c.task.is_(None), ledger.c.at_us <= bindparam("at_us"))
        .order_by(ledger.c.at_us.desc(), ledger.c.seq.desc())
        .limit(bindparam("most"))
    )
)
SWITCHES_AFTER = Statement(
    lambda: (
        _entries()
        .where(_switches(), ledger.c.task == bindparam("task"), ledger.c.at_us > bindparam("at_us"))
        .order_by(ledger.c.at_us, ledger.c.seq)
        .limit(bindparam("most"))
    )
)
SWITCHES_OF_ALL_AFTER = Statement(
    lambda: (
        _entries()
        .where(_switches(), ledger.c.task.is_(None), ledger.c.at_us > bindparam("at_us"))
        .order_by(ledger.c.at_us, ledger.c.seq)
        .limit(bindparam("most"))
    )
)
PASSED_OVER = Statement(
    lambda: (
        _entries()
        .where(
            ledger.c.task == bindparam("task"),
            ledger.c.kind == "skipped",
            ledger.c.run.is_(None),
            ledger.c.at_us >= bindparam("first_us"),
            ledger.c.at_us < bindparam("end_us"),
            ledger.c.occurrence.like("event:%"),
        )
        .order_by(ledger.c.at_us.desc(), ledger.c.seq.desc())
        .limit(bindparam("most"))
    )
)
RUNS_BEFORE = Statement(
    lambda: (
        _runs()
        .where(runs.c.task == bindparam("task"), runs.c.id < bindparam("before"))
        .order_by(runs.c.id.desc())
        .limit(bindparam("most"))
    )
)
NOT_AS_PLANNED = Statement(
    lambda: (
        _runs()
        .where(
            runs.c.task == bindparam("task"),
            runs.c.id >= bindparam("from_id"),
            runs.c.due_us >= bindparam("at_us"),
            or_(runs.c.outcome.is_(None), runs.c.outcome != "succeeded", runs.c.opened_by == "catch_up"),
            and_(runs.c.opened_by != "manual", runs.c.opened_by != "backfill"),
        )
        .order_by(runs.c.id)
        .limit(bindparam("most"))
    )
)


class Moments:
    """Questions about moments, for people; nothing here is asked by a loop."""

    def __init__(self, line: Line) -> None:
        self._line = line

    def stretch(self, task: str, at: datetime) -> Written | None:
        """The entry of a task whose counted stretch of equal fates contains a moment."""
        for one in self._written(STRETCHES, task=task, at_us=to_us(at), most=LOOKED_AT):
            first = first_of(one)
            if one.entry.kind in COUNTED and first is not None and first <= at:
                return one
        return None

    def stretches_since(self, task: str, since: datetime, most: int) -> list[Written]:
        """The entries of a task whose counted stretches reach beyond a moment, in the order of their ends."""
        found = self._written(STRETCHES, task=task, at_us=to_us(since), most=most)
        return [one for one in found if one.entry.kind in COUNTED and first_of(one) is not None]

    def switches(self, task: str | None, at: datetime, most: int) -> list[Written]:
        """How a task was defined, switched and held up to a moment, the newest first; None: what held many tasks."""
        if task is None:
            return self._written(SWITCHES_OF_ALL, at_us=to_us(at), most=most)
        return self._written(SWITCHES, task=task, at_us=to_us(at), most=most)

    def switches_after(self, task: str | None, at: datetime, most: int) -> list[Written]:
        """How a task (None: many tasks) was defined, switched and held after a moment, the oldest first."""
        if task is None:
            return self._written(SWITCHES_OF_ALL_AFTER, at_us=to_us(at), most=most)
        return self._written(SWITCHES_AFTER, task=task, at_us=to_us(at), most=most)

    def passed_over(self, task: str, first: datetime, end: datetime, most: int) -> list[Written]:
        """Events from one moment to before another that a task listens to and was not started by, newest first."""
        return self._written(PASSED_OVER, task=task, first_us=to_us(first), end_us=to_us(end), most=most)

    def runs_before(self, task: str, at: datetime | None, most: int) -> list[Run]:
        """The newest runs of a task that were opened up to a moment, or at all."""
        before = "~" if at is None else ids.lowest("run", at + SKEW)
        found = self._runs(RUNS_BEFORE, task=task, before=before, most=most)
        return [run for run in found if at is None or run.opened_at <= at]

    def not_as_planned(self, task: str, since: datetime, most: int) -> list[Run]:
        """Runs of time and events due since a moment that did not simply succeed in their time, oldest first."""
        given = {"from_id": ids.lowest("run", since - SKEW), "at_us": to_us(since)}
        return self._runs(NOT_AS_PLANNED, task=task, most=most, **given)

    def _written(self, statement: Statement, **given: Any) -> list[Written]:
        return [entry_of(row) for row in self._line.rows(statement, **given)]

    def _runs(self, statement: Statement, **given: Any) -> list[Run]:
        return [run_of(row) for row in self._line.rows(statement, **given)]


def first_of(written: Written) -> datetime | None:
    """The first occurrence that an entry counts."""
    key = written.entry.occurrence
    return datetime.fromisoformat(key.removeprefix("at:")) if key is not None and key.startswith("at:") else None
