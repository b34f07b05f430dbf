"""Rows that are old enough to go: what may be taken away, and taking it away, a batch at a time."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Table, and_, bindparam, case, delete, exists, func, not_, or_, select, update
from sqlalchemy.sql.elements import CompilerElement

from duly import ids
from duly.clock import to_us
from duly.store.line import Line
from duly.store.meta import LEDGER_PRUNED, Meta
from duly.store.rows import LEDGER_COLUMNS, Written, entry_of
from duly.store.sql import Batch, Statement, rows_of
from duly.store.tables import (
    charges,
    definitions,
    events,
    holder_labels,
    holders,
    ledger,
    log_pieces,
    missed,
    pauses,
    questions,
    runs,
    skips,
    task_limits,
    task_needs,
    task_sources,
    tasks,
    throttles,
)

KEPT_KINDS = ("defined", "enabled", "disabled", "paused", "unpaused", "removed")
"""What people did to a task stays on record as long as the task does."""

TASKS = Statement(
    lambda: (
        select(tasks.c.id, tasks.c.removed_us, func.coalesce(tasks.c.last_run, ""))
        .where(tasks.c.id > bindparam("after"))
        .order_by(tasks.c.id)
        .limit(bindparam("most"))
    )
)


def _is_over() -> ColumnElement[bool]:
    """Nobody is asked about a missed occurrence any more, and all of it lies below the watermark."""
    return and_(
        missed.c.until_us <= bindparam("until_us"),
        missed.c.state != "open",
        missed.c.noticed_us < bindparam("cutoff_us"),
        func.coalesce(missed.c.decided_us, missed.c.noticed_us) < bindparam("cutoff_us"),
    )


def _may_go() -> list[ColumnElement[bool]]:
    return [ledger.c.kind != kind for kind in KEPT_KINDS]


RUNS = Statement(
    lambda: (
        select(runs.c.id)
        .where(
            runs.c.task == bindparam("task"),
            runs.c.id > bindparam("after"),
            # Ids sort in order of creation: what is younger is not even looked at.
            runs.c.id < bindparam("before"),
            runs.c.id != bindparam("last_run"),
            runs.c.state == "ended",
            runs.c.ended_us < bindparam("cutoff_us"),
            runs.c.due_us <= bindparam("until_us"),
            # A record that names a run may still be accepted, and then asks whether it has run.
            not_(exists(select(missed.c.id).where(missed.c.run == runs.c.id, not_(_is_over())))),
        )
        .order_by(runs.c.id)
        .limit(bindparam("most"))
    )
)
MISSED = Statement(
    lambda: (
        select(missed.c.id)
        .where(
            missed.c.task == bindparam("task"),
            missed.c.id > bindparam("after"),
            missed.c.due_us <= bindparam("until_us"),
            _is_over(),
        )
        .order_by(missed.c.id)
        .limit(bindparam("most"))
    )
)
ENTRIES = Statement(
    lambda: (
        select(*[ledger.c[name] for name in LEDGER_COLUMNS])
        .where(
            ledger.c.task == bindparam("task"),
            ledger.c.seq > bindparam("after"),
            # Also what came late of a run that was pruned before.
            or_(ledger.c.run.is_(None), not_(exists(select(runs.c.id).where(runs.c.id == ledger.c.run)))),
            *_may_go(),
            ledger.c.at_us < bindparam("cutoff_us"),
            or_(ledger.c.until_us.is_(None), ledger.c.until_us <= bindparam("until_us")),
        )
        .order_by(ledger.c.seq)
        .limit(bindparam("most"))
    )
)
PRUNED = Statement(
    lambda: (
        update(tasks)
        .where(tasks.c.id == bindparam("of"))
        .values(
            pruned_until_us=case(
                (tasks.c.pruned_until_us > bindparam("until_us"), tasks.c.pruned_until_us),
                else_=bindparam("until_us"),
            )
        )
    )
)
TOMBS = Statement(
    lambda: (
        select(tasks.c.id)
        .where(
            tasks.c.id > bindparam("after"),
            tasks.c.removed_us < bindparam("oldest_us"),
            not_(
                exists(
                    select(runs.c.id).where(
                        runs.c.task == tasks.c.id,
                        or_(runs.c.state != "ended", runs.c.ended_us >= bindparam("cutoff_us")),
                    )
                )
            ),
        )
        .order_by(tasks.c.id)
        .limit(bindparam("most"))
    )
)


TASKLESS = Statement(
    lambda: (
        select(ledger.c.seq)
        .where(
            ledger.c.seq > bindparam("after"),
            ledger.c.task.is_(None),
            ledger.c.run.is_(None),
            *_may_go(),
            ledger.c.at_us < bindparam("cutoff_us"),
        )
        .order_by(ledger.c.seq)
        .limit(bindparam("most"))
    )
)
HOLDERS = Statement(
    lambda: (
        select(holders.c.id)
        .where(
            holders.c.id > bindparam("after"),
            holders.c.state == "gone",
            holders.c.last_beat_us < bindparam("cutoff_us"),
            holders.c.id.not_in(select(runs.c.holder).where(runs.c.state == "held", runs.c.holder.is_not(None))),
        )
        .order_by(holders.c.id)
        .limit(bindparam("most"))
    )
)
EVENTS = Statement(
    lambda: (
        select(events.c.id)
        .where(
            events.c.id > bindparam("after"),
            events.c.id < bindparam("before"),
            events.c.at_us < bindparam("oldest_us"),
            # What a run was opened by stays as long as the run.
            events.c.id.not_in(
                select(runs.c.event).where(
                    runs.c.id < bindparam("run_before"),
                    runs.c.event.is_not(None),
                    or_(
                        runs.c.state != "ended",
                        runs.c.ended_us >= bindparam("cutoff_us"),
                        runs.c.id.in_(select(tasks.c.last_run).where(tasks.c.last_run.is_not(None))),
                    ),
                )
            ),
        )
        .order_by(events.c.id)
        .limit(bindparam("most"))
    )
)
SKIPS = Statement(
    lambda: (
        select(skips.c.id)
        .select_from(skips.join(tasks, tasks.c.id == skips.c.task))
        .where(
            skips.c.id > bindparam("after"),
            skips.c.last_us < bindparam("cutoff_us"),
            skips.c.last_us <= tasks.c.planned_until_us,
        )
        .order_by(skips.c.id)
        .limit(bindparam("most"))
    )
)
CHARGES_KEPT = timedelta(days=62)
"""So much longer than runs: the month of a budget may have begun before what is pruned."""
CHARGED = Statement(lambda: delete(charges).where(charges.c.live == 0, charges.c.at_us < bindparam("cutoff_us")))
WINDOWS = Statement(lambda: delete(throttles).where(throttles.c.until_us < bindparam("cutoff_us")))


def _without(table: Table, column: str, kind: type) -> Batch:
    """Delete the rows of a table by a list of values of one column; of the ledger it gives the numbers that went."""

    def build(size: int) -> CompilerElement:
        v = rows_of(size, {column: kind})
        gone = table.c.seq if table is ledger else table.c[column]
        return delete(table).where(table.c[column].in_(select(v.c[column]))).returning(gone)

    return Batch(build, (column,))


def _there(table: Table) -> Batch:
    return Batch(lambda size: select(table.c.id).where(table.c.id == rows_of(size, {"id": str}).c.id), ("id",))


TOLD = Batch(
    lambda size: (
        select(func.count()).select_from(ledger).where(ledger.c.run.in_(select(rows_of(size, {"id": str}).c.id)))
    ),
    ("id",),
)
MISSED_THERE, RUNS_THERE = _there(missed), _there(runs)
DELETE_RUNS = _without(runs, "id", str)
DELETE_TOLD = _without(ledger, "run", str)
DELETE_OUTPUT = _without(log_pieces, "run", str)
DELETE_ASKED = _without(questions, "run", str)
DELETE_ENTRIES = _without(ledger, "seq", int)
DELETE_MISSED = _without(missed, "id", str)
DELETE_HOLDERS = _without(holders, "id", str)
DELETE_LABELS = _without(holder_labels, "holder", str)
DELETE_EVENTS = _without(events, "id", str)
DELETE_SKIPS = _without(skips, "id", str)
DELETE_PAUSES = Batch(
    lambda size: (
        delete(pauses)
        .where(and_(pauses.c.scope == "task", pauses.c.target.in_(select(rows_of(size, {"id": str}).c.id))))
        .returning(pauses.c.id)
    ),
    ("id",),
)
OF_A_TASK: tuple[Table, ...] = (
    definitions,
    ledger,
    missed,
    questions,
    skips,
    task_limits,
    task_needs,
    task_sources,
    throttles,
    runs,
)
DELETE_OF_TASK = tuple(_without(table, "task", str) for table in OF_A_TASK)
FROM_LEDGER = (DELETE_TOLD, DELETE_ENTRIES, DELETE_OF_TASK[OF_A_TASK.index(ledger)])
DELETE_TASKS = _without(tasks, "id", str)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ages:
    """How old what may go must be: rows, and what is kept longer than they are (events, removed tasks)."""

    cutoff: datetime
    oldest: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class OldTask:
    """A task as pruning looks at it: its watermark, and which of its runs stays whatever its age."""

    id: str
    until: datetime
    last_run: str


class Pruning:
    """Pages of what may go, in an order that goes on after the last of a page, and the taking away of a page."""

    def __init__(self, line: Line, ages: Ages, most: int) -> None:
        self._line = line
        self._ages = ages
        self._most = most
        self._given = {"cutoff_us": to_us(ages.cutoff), "most": most}

    def tasks(self, after: str) -> list[OldTask]:
        """Tasks after this id, removed ones too. Of one that lives the newest run stays.

        The watermark may lie beyond a cursor that has stood still for so long: what people and events had opened of
        the task since then goes too.
        """
        return [
            OldTask(id=id_, until=self._ages.cutoff, last_run=last if removed is None else "")
            for id_, removed, last in self._line.rows(TASKS, after=after, most=self._most)
        ]

    def runs(self, task: OldTask, after: str) -> list[str]:
        """Runs of a task that ended long enough ago and that nothing asks for any more."""
        before, until_us = ids.lowest("run", self._ages.cutoff), to_us(task.until)
        named = {"task": task.id, "last_run": task.last_run, "until_us": until_us, "after": after, "before": before}
        return [row[0] for row in self._line.rows(RUNS, **named, **self._given)]

    def missed(self, task: OldTask, after: str) -> list[str]:
        """Missed occurrences of a task that nobody is asked about."""
        named = {"task": task.id, "until_us": to_us(task.until), "after": after}
        return [row[0] for row in self._line.rows(MISSED, **named, **self._given)]

    def entries(self, task: OldTask, after: int) -> list[Written]:
        """Entries of a task that belong to no run."""
        named = {"task": task.id, "until_us": to_us(task.until), "after": after}
        return [entry_of(row) for row in self._line.rows(ENTRIES, **named, **self._given)]

    def taskless(self, after: int) -> list[int]:
        """Entries that no task's story holds: processes that came and went, restores."""
        return [row[0] for row in self._line.rows(TASKLESS, after=after, **self._given)]

    def holders(self, after: str) -> list[str]:
        """Holders that are gone."""
        return [row[0] for row in self._line.rows(HOLDERS, after=after, **self._given)]

    def events(self, after: str) -> list[str]:
        """Events that no run was opened by any more."""
        oldest = self._ages.oldest
        named = {"before": ids.lowest("evt", oldest), "run_before": ids.lowest("run", oldest)}
        rows = self._line.rows(EVENTS, after=after, oldest_us=to_us(oldest), **named, **self._given)
        return [row[0] for row in rows]

    def skips(self, after: str) -> list[str]:
        """Ranges that a person skipped and that planning is through with."""
        return [row[0] for row in self._line.rows(SKIPS, after=after, **self._given)]

    def tombs(self, after: str) -> list[str]:
        """Tasks that were removed long ago and of which no younger run is left."""
        oldest_us = to_us(self._ages.oldest)
        return [row[0] for row in self._line.rows(TOMBS, after=after, oldest_us=oldest_us, **self._given)]

    def missed_there(self, ids_: Sequence[str]) -> set[str]:
        """Those of these missed occurrences that are on record."""
        return {row[0] for row in self._line.many(MISSED_THERE, [(one,) for one in ids_])}

    def runs_there(self, ids_: Sequence[str]) -> set[str]:
        """Those of these runs that are on record."""
        return {row[0] for row in self._line.many(RUNS_THERE, [(one,) for one in ids_])}

    def mark(self, task: OldTask) -> None:
        """Leave the watermark: of what lies before it, rows may be gone. It never goes back."""
        self._line.run(PRUNED, of=task.id, until_us=to_us(task.until))

    def told(self, ids_: Sequence[str]) -> int:
        """How many entries tell of these runs."""
        return sum(row[0] for row in self._line.many(TOLD, [(one,) for one in ids_]))

    def delete_runs(self, ids_: Sequence[str]) -> None:
        """Take runs away with all that the ledger tells of them."""
        self.delete(DELETE_TOLD, ids_)
        self.delete(DELETE_OUTPUT, ids_)
        self.delete(DELETE_ASKED, ids_)
        self.delete(DELETE_RUNS, ids_)

    def delete(self, what: Batch, keys: Sequence[Any]) -> None:
        """Take rows away by their keys; the store says up to which number its ledger may have gaps."""
        gone = self._line.many(what, [(one,) for one in keys])
        if gone and what in FROM_LEDGER:
            meta = Meta(self._line)
            highest = max(row[0] for row in gone)
            if highest > int(meta.said(LEDGER_PRUNED) or 0):
                meta.say(LEDGER_PRUNED, str(highest))

    def delete_holders(self, ids_: Sequence[str]) -> None:
        """Take holders away, with their labels."""
        self.delete(DELETE_LABELS, ids_)
        self.delete(DELETE_HOLDERS, ids_)

    def delete_tombs(self, ids_: Sequence[str]) -> None:
        """Take removed tasks away with all that is left of them."""
        for what in (*DELETE_OF_TASK, DELETE_PAUSES, DELETE_TASKS):
            self.delete(what, ids_)

    def close_windows(self) -> None:
        """Forget the windows of throttles that are over, and what was charged to budgets whose months are."""
        self._line.run(WINDOWS, cutoff_us=to_us(self._ages.cutoff))
        self._line.run(CHARGED, cutoff_us=to_us(self._ages.cutoff - CHARGES_KEPT))
