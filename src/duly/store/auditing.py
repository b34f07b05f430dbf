"""What `verify` reads: narrow rows, page by page, in the orders it needs, so that memory does not grow with the store.

A mapping stays the text it is stored as: most are never asked.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from sqlalchemy import and_, bindparam, case, exists, func, not_, or_, select, text, union
from sqlalchemy.sql.elements import CompilerElement

from duly.store.line import Line
from duly.store.sql import Batch, Statement, rows_of
from duly.store.tables import charges, ledger, missed, runs, tasks

PAGE = 2_000
ANSWER_KINDS = ("accepted", "declined", "expired")


class RunRow(NamedTuple):
    """What a run's entries must tell."""

    id: str
    task: str
    occurrence: str
    state: str
    outcome: str | None
    reason: str | None
    attempt: int
    fence: int
    holder: str | None


class TaskLine(NamedTuple):
    """An entry of one task."""

    seq: int
    kind: str
    occurrence: str | None
    run: str | None
    attempt: int | None
    reason: str | None
    holder: str | None
    counted: int | None
    until_us: int | None
    details: str | None


class Ended(NamedTuple):
    """The row of a run as it stands, beside the entry that tells of its end."""

    state: str
    outcome: str | None
    reason: str | None
    attempt: int
    fence: int
    occurrence: str


Told = tuple[Any, ...]
"""The cells of a TaskLine, and behind them those of an Ended; None where the entry tells of no end."""
CHARGED = '%"budgets":{%'
"""Details that tell of budgets."""
LIMITED = '%"limits":{"%'
"""Details that name limits."""
ENTRY = len(TaskLine._fields)
_TASK_COLUMNS = ("seq", "kind", "occurrence", "run", "attempt", "reason", "holder", "count", "until_us", "details")


def _rows(size: int) -> CompilerElement:
    return select(*[runs.c[name] for name in RunRow._fields]).where(runs.c.id == rows_of(size, {"id": str}).c.id)


ROWS = Batch(_rows, ("id",))
UNTOLD = Statement(
    lambda: (
        select(runs.c.id, runs.c.task)
        .where(not_(exists(select(ledger.c.seq).where(ledger.c.run == runs.c.id))))
        .order_by(runs.c.id)
        .limit(bindparam("most"))
    )
)
OF_TASK = Statement(
    lambda: (
        select(
            *[ledger.c[name] for name in _TASK_COLUMNS],
            *[runs.c[name] for name in Ended._fields],
        )
        .select_from(ledger.outerjoin(runs, and_(ledger.c.kind == "ended", runs.c.id == ledger.c.run)))
        .where(
            ledger.c.task == bindparam("task"),
            ledger.c.seq > bindparam("after"),
        )
        .order_by(ledger.c.seq)
        .limit(bindparam("most"))
    )
)
ANSWERS = Statement(
    lambda: (
        select(ledger.c.seq, ledger.c.kind, ledger.c.details)
        .where(
            ledger.c.task == bindparam("task"),
            ledger.c.seq > bindparam("after"),
            or_(*[ledger.c.kind == kind for kind in ANSWER_KINDS]),
        )
        .order_by(ledger.c.seq)
        .limit(bindparam("most"))
    )
)
MISSED_OF = Statement(
    lambda: (
        select(missed.c.id, missed.c.state, missed.c.noticed_us, missed.c.run)
        .where(missed.c.task == bindparam("task"), missed.c.id > bindparam("after"))
        .order_by(missed.c.id)
        .limit(bindparam("most"))
    )
)
TASKS = Statement(
    lambda: union(select(tasks.c.id), select(ledger.c.task).where(ledger.c.task.is_not(None))).order_by("id")
)
_passed_over = and_(ledger.c.kind == "skipped", ledger.c.run.is_(None))
TWICE = Statement(
    lambda: (
        select(ledger.c.task, ledger.c.occurrence)
        .where(
            or_(ledger.c.kind == "opened", _passed_over), ledger.c.task.is_not(None), ledger.c.occurrence.is_not(None)
        )
        .group_by(ledger.c.task, ledger.c.occurrence)
        .having(func.count() > 1)
        .order_by(func.min(ledger.c.seq))
        .limit(bindparam("most"))
    )
)
OF_OCCURRENCE = Statement(
    lambda: (
        select(ledger.c.kind, ledger.c.run, ledger.c.reason, ledger.c.details)
        .where(
            ledger.c.task == bindparam("task"),
            ledger.c.occurrence == bindparam("occurrence"),
            or_(ledger.c.kind == "opened", _passed_over),
        )
        .order_by(ledger.c.seq)
        .limit(bindparam("most"))
    )
)
FIRST_LIMITED = Statement(
    lambda: select(func.min(ledger.c.seq)).where(
        ledger.c.kind == "claimed", ledger.c.details.like(bindparam("pattern"))
    )
)
CLAIMS = Statement(
    lambda: (
        select(
            ledger.c.seq,
            ledger.c.kind,
            ledger.c.run,
            ledger.c.task,
            case(
                (
                    or_(
                        ledger.c.kind == "swept", ledger.c.kind == "parked", ledger.c.details.like(bindparam("pattern"))
                    ),
                    ledger.c.details,
                ),
                else_=None,
            ),
        )
        .where(
            ledger.c.seq > bindparam("after"),
            or_(*[ledger.c.kind == kind for kind in ("claimed", "ended", "returned", "swept", "parked")]),
        )
        .order_by(ledger.c.seq)
        .limit(bindparam("most"))
    )
)
CLAIMS_CHARGED = Statement(
    lambda: (
        select(ledger.c.seq, ledger.c.run, ledger.c.task, ledger.c.details)
        .where(
            ledger.c.seq > bindparam("after"),
            ledger.c.kind == "claimed",
            ledger.c.details.like(bindparam("pattern")),
        )
        .order_by(ledger.c.seq)
        .limit(bindparam("most"))
    )
)
_holds = select(runs.c.id).where(
    runs.c.id == charges.c.run, runs.c.attempt == charges.c.attempt, runs.c.state == "held"
)
SET_ASIDE_FOR_NOTHING = Statement(
    lambda: (
        select(charges.c.run, charges.c.task, charges.c.attempt)
        .where(charges.c.live == 1, not_(exists(_holds)))
        .order_by(charges.c.run)
        .limit(bindparam("most"))
    )
)
VERSIONS_TOLD = Statement(
    # In the very words of the index of switches, for SQLite to use it.
    lambda: select(ledger.c.seq, ledger.c.details).where(
        text("ledger.kind IN ('defined', 'enabled', 'disabled', 'paused', 'unpaused', 'removed')"),
        ledger.c.kind == "defined",
        ledger.c.task == bindparam("task"),
    )
)
FATES_OPENED = Batch(
    lambda size: (
        select(ledger.c.task, ledger.c.details)
        .select_from(runs.join(ledger, ledger.c.run == runs.c.id))
        .where(
            runs.c.event.in_(select(rows_of(size, {"id": str}).c.id)),
            ledger.c.kind == "opened",
            ledger.c.reason == "event",
        )
    ),
    ("id",),
)


def _fates_passed(size: int) -> CompilerElement:
    v = rows_of(size, {"task": str, "at_us": int})
    return select(ledger.c.task, ledger.c.details).where(
        _passed_over, ledger.c.task == v.c.task, ledger.c.at_us == v.c.at_us
    )


FATES_PASSED = Batch(_fates_passed, ("task", "at_us"))
ENTRIES = Statement(lambda: select(func.count()).select_from(ledger))


class Auditing:
    """The store as `verify` reads it, in one transaction."""

    def __init__(self, line: Line) -> None:
        self._line = line

    def entries(self) -> int:
        """How many entries there are."""
        row = self._line.row(ENTRIES)
        return 0 if row is None else int(row[0])

    def rows(self, ids: Sequence[str]) -> dict[str, RunRow]:
        """The rows of these runs by their ids, of those that are there."""
        return {row[0]: RunRow._make(row) for row in self._line.many(ROWS, [(one,) for one in ids])}

    def untold(self, most: int) -> list[tuple[str, str]]:
        """Runs of which the ledger tells nothing, with their tasks."""
        return [(row[0], row[1]) for row in self._line.rows(UNTOLD, most=most)]

    def twice(self, most: int) -> list[tuple[str, str]]:
        """Tasks and occurrences of which more than one entry tells that they were opened or passed over."""
        return [(row[0], row[1]) for row in self._line.rows(TWICE, most=most)]

    def of_occurrence(self, task: str, occurrence: str, most: int) -> list[tuple[str, str | None, str | None, str]]:
        """What opened an occurrence or passed it over: kind, run, reason and details, in their order."""
        rows = self._line.rows(OF_OCCURRENCE, task=task, occurrence=occurrence, most=most)
        return [(kind, run, reason, details or "") for kind, run, reason, details in rows]

    def claims(self) -> Iterator[list[Told]]:
        """What took and freed limits, from the first claim that names one on, a page at a time.

        Number, kind, run, task, and the details where they name limits or what follows a sweep.
        """
        row = self._line.row(FIRST_LIMITED, pattern=LIMITED)
        if row is None or row[0] is None:
            return
        after = int(row[0]) - 1
        while rows := self._line.rows(CLAIMS, after=after, pattern=LIMITED, most=PAGE):
            yield rows
            after = rows[-1][0]

    def charged(self) -> Iterator[tuple[str, str | None, str]]:
        """Claims that tell of the budgets they were charged to: run, task and details."""
        after = 0
        while rows := self._line.rows(CLAIMS_CHARGED, after=after, pattern=CHARGED, most=PAGE):
            yield from ((row[1], row[2], row[3]) for row in rows)
            after = rows[-1][0]

    def set_aside_for_nothing(self, most: int) -> list[tuple[str, str, int]]:
        """Attempts that set something aside and are not held: run, task and attempt."""
        return [(row[0], row[1], row[2]) for row in self._line.rows(SET_ASIDE_FOR_NOTHING, most=most)]

    def tasks(self) -> list[str]:
        """The ids of all tasks, removed ones too, and of those that only the ledger knows."""
        return [row[0] for row in self._line.rows(TASKS)]

    def of_task(self, task: str) -> Iterator[list[Told]]:
        """What befell a task, in its order, a page at a time."""
        after = 0
        while rows := self._line.rows(OF_TASK, task=task, after=after, most=PAGE):
            yield rows
            after = rows[-1][0]

    def missed(self, task: str, after: str, most: int) -> list[tuple[str, str, int, str | None]]:
        """Missed records of a task with ids after this one: id, state, when they were noticed, run."""
        rows = self._line.rows(MISSED_OF, task=task, after=after, most=most)
        return [(row[0], row[1], row[2], row[3]) for row in rows]

    def answers(self, task: str) -> Iterator[tuple[str, str]]:
        """What became of a task's missed records: kind and details, in their order."""
        after = 0
        while rows := self._line.rows(ANSWERS, task=task, after=after, most=PAGE):
            yield from ((row[1], row[2] or "") for row in rows)
            after = rows[-1][0]

    def versions_told(self, task: str) -> Sequence[tuple[int, str]]:
        """The entries that tell of a task's versions: number and details."""
        return [(row[0], row[1] or "") for row in self._line.rows(VERSIONS_TOLD, task=task)]

    def opened_for(self, event_ids: Sequence[str]) -> list[tuple[str, str]]:
        """Entries of runs that these events opened: task and details."""
        return [(row[0], row[1] or "") for row in self._line.many(FATES_OPENED, [(one,) for one in event_ids])]

    def passed_over_at(self, moments: Sequence[tuple[str, int]]) -> list[tuple[str, str]]:
        """Entries of events that tasks passed over at these moments: task and details."""
        return [(row[0], row[1] or "") for row in self._line.many(FATES_PASSED, moments)]
