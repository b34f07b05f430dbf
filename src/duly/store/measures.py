"""Sums over the ledger and its runs between two entries, for who counts what has happened since the last look."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, bindparam, case, func, select

from duly.clock import MICROSECOND
from duly.store.line import Line
from duly.store.sql import Statement
from duly.store.tables import ledger, runs

LATE_BOUNDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0, 300.0, 1800.0, 21600.0)
DURATION_BOUNDS = (0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 1800.0, 3600.0, 14400.0, 86400.0)
"""Seconds up to which a bucket counts."""


def _range() -> ColumnElement[bool]:
    return and_(ledger.c.seq > bindparam("after"), ledger.c.seq <= bindparam("until"))


def _buckets(us: ColumnElement[Any], bounds: Sequence[float]) -> list[ColumnElement[Any]]:
    return [
        func.count(),
        func.coalesce(func.sum(us), 0),
        *[func.coalesce(func.sum(case((us <= _us(bound), 1), else_=0)), 0) for bound in bounds],
    ]


def _us(seconds: float) -> int:
    return timedelta(seconds=seconds) // MICROSECOND


KINDS = Statement(
    lambda: (
        select(ledger.c.kind, ledger.c.reason, func.count(), func.sum(func.coalesce(ledger.c.count, 1)))
        .where(_range())
        .group_by(ledger.c.kind, ledger.c.reason)
    )
)


def _starts() -> Select[Any]:
    us = runs.c.started_us - runs.c.due_us - runs.c.spread_us
    return (
        select(*_buckets(us, LATE_BOUNDS))
        .select_from(ledger.join(runs, runs.c.id == ledger.c.run))
        .where(_range(), ledger.c.kind == "claimed", ledger.c.attempt == 1, runs.c.started_us.is_not(None))
    )


def _ends() -> Select[Any]:
    us = runs.c.ended_us - runs.c.started_us
    return (
        select(func.coalesce(runs.c.outcome, ""), *_buckets(us, DURATION_BOUNDS))
        .select_from(ledger.join(runs, runs.c.id == ledger.c.run))
        .where(_range(), ledger.c.kind == "ended", runs.c.started_us.is_not(None), runs.c.ended_us.is_not(None))
        .group_by(runs.c.outcome)
    )


STARTS, ENDS = Statement(_starts), Statement(_ends)
OLDEST = Statement(lambda: select(func.min(runs.c.opened_us)).where(runs.c.state == "waiting"))


class Measures:
    """Sums of what the ledger was told from one number to another."""

    def __init__(self, line: Line) -> None:
        self._line = line

    def kinds(self, after: int, until: int) -> list[tuple[str, str | None, int, int]]:
        """How many entries there are of each kind and reason, and how many occurrences they tell of."""
        found = self._line.rows(KINDS, after=after, until=until)
        return [(kind, reason, int(entries), int(count)) for kind, reason, entries, count in found]

    def starts(self, after: int, until: int) -> tuple[int, float, list[int]]:
        """How late first attempts began: how many there were, the sum in seconds, how many within each bound."""
        row = self._line.row(STARTS, after=after, until=until)
        assert row is not None
        return _read(row)

    def ends(self, after: int, until: int) -> dict[str, tuple[int, float, list[int]]]:
        """How long runs that were started took to their end, by their outcome."""
        return {row[0]: _read(row[1:]) for row in self._line.rows(ENDS, after=after, until=until)}

    def oldest_waiting_us(self) -> int | None:
        """When the run was opened that has waited longest."""
        row = self._line.row(OLDEST)
        return None if row is None else row[0]


def _read(row: Sequence[Any]) -> tuple[int, float, list[int]]:
    return int(row[0]), int(row[1]) / 1e6, [int(one) for one in row[2:]]
