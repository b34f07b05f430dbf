"""Runs: opened, claimed, kept alive, moved by steps, found by every question the loops and people ask."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Select, TextClause, bindparam, case, func, insert, literal, or_, select, text, update
from sqlalchemy.sql.elements import CompilerElement

from duly.clock import EPOCH, to_us
from duly.core.run import Run, Step
from duly.store import steps
from duly.store.budgets import Budgets
from duly.store.crowd import Crowd
from duly.store.line import Line
from duly.store.questions import Questions
from duly.store.rows import RUN_COLUMNS, cells_of_run, fields_of, run_cells, run_of
from duly.store.sql import Batch, Statement, insert_batch, python_type, rows_of
from duly.store.tables import runs

NEVER_US = 2**62
_columns = [runs.c[name] for name in RUN_COLUMNS]


def _all() -> Select[Any]:
    return select(*_columns)


def _live() -> TextClause:
    """Held or parked, in the very words of the index of seats: SQLite uses it for no others."""
    return text("runs.state IN ('held', 'parked')")


BY_ID = Statement(lambda: _all().where(runs.c.id == bindparam("id")))
BY_OCCURRENCE = Statement(
    lambda: _all().where(runs.c.task == bindparam("task"), runs.c.occurrence == bindparam("occurrence"))
)
IDS_LIKE = Statement(
    lambda: select(runs.c.id).where(runs.c.id.like(bindparam("pattern"), escape="\\")).limit(bindparam("most"))
)
INSERT = insert_batch(runs, RUN_COLUMNS)
OF_TIME = (
    "id",
    "task",
    "occurrence",
    "due_us",
    "opened_us",
    "opened_by",
    "not_before_us",
    "definition_version",
    "project",
    "rank",
    "overlap",
    "spread_us",
)
"""What a run that time opens has of its own; of the other columns all such runs have the same."""
AS_ALL: dict[str, int | str] = {
    "state": "waiting",
    "version": 1,
    "attempt": 0,
    "fence": 0,
    "anyway": 0,
    "queued": 0,
    "worked_us": 0,
    "interruptions": 0,
    "retries": 0,
    "log_bytes": 0,
    "log_cut": 0,
}
"""What is not nothing in the other columns, as `_ALIKE` has it."""
_alike = fields_of([name for name in RUN_COLUMNS if name not in OF_TIME])
_time_cells = cells_of_run(OF_TIME)


def _of_time(size: int) -> CompilerElement:
    v = rows_of(size, {name: python_type(runs.c[name]) for name in OF_TIME})
    cells = [v.c[name] for name in OF_TIME] + [literal(cell) for cell in AS_ALL.values()]
    return insert(runs).from_select([*OF_TIME, *AS_ALL], select(*cells))


INSERT_OF_TIME = Batch(_of_time, OF_TIME, hot=True)
WAITING_OF = Statement(
    lambda: _all().where(runs.c.task == bindparam("task"), runs.c.state == "waiting").order_by(runs.c.due_us, runs.c.id)
)
LIVE_OF = Statement(
    # By all that is live, which is little, and not by all that the task ever ran.
    lambda: _all().where(_live(), func.coalesce(runs.c.task, "") == bindparam("task"))
)
NOT_BEFORE = Statement(
    lambda: select(func.min(runs.c.not_before_us)).where(
        runs.c.state == "waiting", runs.c.not_before_us > bindparam("now_us")
    )
)
ANY_WAITING = Statement(lambda: select(runs.c.id).where(runs.c.state == "waiting"))
CANCEL_ASKED = Statement(
    lambda: _all().where(
        runs.c.state == "held", runs.c.holder == bindparam("holder"), runs.c.cancel_asked_us.is_not(None)
    )
)
HELD_BY = Statement(lambda: _all().where(runs.c.state == "held", runs.c.holder == bindparam("holder")))
HELD_BY_OTHERS = Statement(
    lambda: (
        _all()
        .where(runs.c.state == "held", runs.c.holder != bindparam("holder"))
        .order_by(runs.c.lease_end_us)
        .limit(bindparam("most"))
    )
)
COUNTS = Statement(
    lambda: (
        select(runs.c.state, func.count())
        .where(or_(runs.c.state == "waiting", runs.c.state == "held", runs.c.state == "parked"))
        .group_by(runs.c.state)
    )
)
_text = runs.c.id.type
LISTED = Statement(
    lambda: (
        _all()
        .where(
            runs.c.id < bindparam("before"),
            or_(bindparam("task", type_=_text).is_(None), runs.c.task == bindparam("task")),
            or_(bindparam("state", type_=_text).is_(None), runs.c.state == bindparam("state")),
            or_(bindparam("outcome", type_=_text).is_(None), runs.c.outcome == bindparam("outcome")),
            or_(bindparam("project", type_=_text).is_(None), runs.c.project == bindparam("project")),
            runs.c.opened_us >= bindparam("since_us"),
            runs.c.opened_us < bindparam("until_us"),
        )
        .order_by(runs.c.id.desc())
        .limit(bindparam("most"))
    )
)
LIVE = Statement(lambda: _all().where(_live()).order_by(runs.c.id).limit(bindparam("most")))


def _by_ids(size: int) -> CompilerElement:
    v = rows_of(size, {"id": str})
    return _all().where(runs.c.id == v.c.id)


BY_IDS = Batch(_by_ids, ("id",))


def _by_occurrences(size: int) -> CompilerElement:
    v = rows_of(size, {"task": str, "occurrence": str})
    return _all().where(runs.c.task == v.c.task, runs.c.occurrence == v.c.occurrence)


BY_OCCURRENCES = Batch(_by_occurrences, ("task", "occurrence"))
_BEAT: dict[str, type] = {"id": str, "fence": int, "holder": str, "boot": str, "end_us": int}


def _beat(size: int) -> CompilerElement:
    v = rows_of(size, _BEAT)
    return (
        update(runs)
        .where(
            runs.c.id == v.c.id,
            runs.c.fence == v.c.fence,
            runs.c.holder == v.c.holder,
            runs.c.lease_boot == v.c.boot,
            runs.c.state == "held",
        )
        # The greater of both: a late message never lowers a lease.
        .values(lease_end_us=case((runs.c.lease_end_us > v.c.end_us, runs.c.lease_end_us), else_=v.c.end_us))
        .returning(runs.c.id, runs.c.fence)
    )


BEAT = Batch(_beat, tuple(_BEAT))


_ALIKE = _alike(
    Run(
        id="",
        task="",
        occurrence="",
        due_at=EPOCH,
        opened_at=EPOCH,
        opened_by="schedule",
        not_before=EPOCH,
        definition_version=1,
    )
)


class Runs:
    """Runs are written by conditional statements only: losing is normal and says so."""

    def __init__(self, line: Line) -> None:
        self._line = line

    def by_id(self, id_: str) -> Run | None:
        """The run of this id."""
        row = self._line.row(BY_ID, id=id_)
        return None if row is None else run_of(row)

    def by_ids(self, ids: Sequence[str]) -> list[Run]:
        """The runs of these ids, in no order."""
        return [run_of(row) for row in self._line.many(BY_IDS, [(id_,) for id_ in ids])]

    def live(self, most: int = 1000) -> list[Run]:
        """Held and parked runs of all tasks."""
        return self._read(LIVE, most=most)

    def by_occurrence(self, task: str, occurrence: str) -> Run | None:
        """The run that an occurrence opened."""
        row = self._line.row(BY_OCCURRENCE, task=task, occurrence=occurrence)
        return None if row is None else run_of(row)

    def of_occurrences(self, task: str, occurrences: Sequence[str]) -> dict[str, Run]:
        """The runs that these occurrences of a task have opened, by their keys."""
        found = self._line.many(BY_OCCURRENCES, [(task, occurrence) for occurrence in occurrences])
        return {run.occurrence: run for run in map(run_of, found)}

    def ids_like(self, pattern: str, most: int) -> list[str]:
        """Ids of runs that match a LIKE pattern."""
        return [row[0] for row in self._line.rows(IDS_LIKE, pattern=pattern, most=most)]

    def insert(self, opened: Iterable[Run]) -> None:
        """Open runs; IntegrityError when one of the occurrences has opened a run before."""
        runs_ = list(opened)
        self._line.many(INSERT_OF_TIME, [_time_cells(run) for run in runs_ if _alike(run) == _ALIKE])
        self._line.many(INSERT, [run_cells(run) for run in runs_ if _alike(run) != _ALIKE])

    def beat(self, vouched: Sequence[tuple[str, int]], *, holder: str, boot: str, end_us: int) -> set[tuple[str, int]]:
        """Extend the leases of these (run, fence) pairs; gives those that are still this holder's."""
        rows = [(run, fence, holder, boot, end_us) for run, fence in sorted(vouched)]
        return {(row[0], row[1]) for row in self._line.many(BEAT, rows)}

    def move(self, moved: Sequence[Step], *, naming_lease: bool = False) -> set[str]:
        """Write steps; gives the ids of the runs that still stood as they were read."""
        won = steps.write(self._line, moved, naming_lease=naming_lease)
        written = [step for step in moved if step.after.id in won]
        Crowd(self._line).stepped(written)
        Budgets(self._line).stepped(written)
        Questions(self._line).stepped(written)
        return won

    def waiting_of(self, task: str) -> list[Run]:
        """A task's waiting runs, in due order."""
        return self._read(WAITING_OF, task=task)

    def live_of(self, task: str) -> list[Run]:
        """A task's held and parked runs."""
        return self._read(LIVE_OF, task=task)

    def cancel_asked(self, holder: str) -> list[Run]:
        """Runs held by this holder that somebody asked to cancel."""
        return self._read(CANCEL_ASKED, holder=holder)

    def held_by(self, holder: str) -> list[Run]:
        """Runs held in this holder's name."""
        return self._read(HELD_BY, holder=holder)

    def held_by_others(self, holder: str, most: int) -> list[Run]:
        """Runs held by anybody else, those whose lease ends first at the front."""
        return self._read(HELD_BY_OTHERS, holder=holder, most=most)

    def listed(
        self,
        *,
        before: str = "~",
        task: str | None = None,
        state: str | None = None,
        outcome: str | None = None,
        project: str | None = None,
        since_us: int = 0,
        until_us: int = NEVER_US,
        most: int = 50,
    ) -> list[Run]:
        """Runs for people, newest first, with ids below `before`; `state` is the stored word, `project` a key."""
        asked = {"task": task, "state": state, "outcome": outcome, "project": project}
        return self._read(LISTED, before=before, since_us=since_us, until_us=until_us, most=most, **asked)

    def counts(self) -> dict[str, int]:
        """How many runs are waiting, held and parked."""
        return {row[0]: row[1] for row in self._line.rows(COUNTS)}

    def soonest_not_before_us(self, now: datetime) -> int | None:
        """The earliest instant ahead at which a waiting run may start."""
        row = self._line.row(NOT_BEFORE, now_us=to_us(now))
        return None if row is None else row[0]

    def _read(self, statement: Statement, **given: Any) -> list[Run]:
        return [run_of(row) for row in self._line.rows(statement, **given)]
