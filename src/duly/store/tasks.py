"""Tasks: definitions with their versions, cursors, switches and counters."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import CompoundSelect, Select, and_, bindparam, case, func, insert, or_, select, union_all, update
from sqlalchemy.sql.elements import CompilerElement

from duly.clock import to_us
from duly.core.task import Broken, Definition, Task
from duly.core.values import value
from duly.store.line import Line
from duly.store.rows import TASK_COLUMNS, dump, task_cells, task_of, us
from duly.store.sql import Batch, Statement, rows_of
from duly.store.tables import pauses, tasks

_columns = [tasks.c[name] for name in TASK_COLUMNS]


def _all() -> Select[Any]:
    return select(*_columns)


_live = tasks.c.removed_us.is_(None)
BY_ID = Statement(lambda: _all().where(tasks.c.id == bindparam("id")))
TEXT = Statement(lambda: select(tasks.c.definition).where(tasks.c.id == bindparam("id")))
BY_IDS = Batch(lambda size: _all().where(tasks.c.id == rows_of(size, {"id": str}).c.id), ("id",), hot=True)
BY_NAME = Statement(
    lambda: _all().where(
        tasks.c.project_key == bindparam("project_key"), tasks.c.name_key == bindparam("name_key"), _live
    )
)
NAMED = Statement(lambda: _all().where(tasks.c.name_key == bindparam("name_key"), _live).order_by(tasks.c.project_key))
IDS_LIKE = Statement(
    lambda: select(tasks.c.id).where(tasks.c.id.like(bindparam("pattern"), escape="\\")).limit(bindparam("most"))
)
PAGE = Statement(
    lambda: (
        _all()
        .where(
            _live,
            or_(
                tasks.c.project_key > bindparam("after_project"),
                and_(tasks.c.project_key == bindparam("after_project"), tasks.c.name_key > bindparam("after_name")),
            ),
        )
        .order_by(tasks.c.project_key, tasks.c.name_key)
        .limit(bindparam("most"))
    )
)
DUE = Statement(
    lambda: (
        _all()
        .where(tasks.c.next_due_us <= bindparam("now_us"))
        .order_by(tasks.c.next_due_us, tasks.c.id)
        .limit(bindparam("most"))
    )
)
IDS = Statement(lambda: select(tasks.c.id).order_by(tasks.c.id))
SOONEST = Statement(lambda: select(func.min(tasks.c.next_due_us)).where(tasks.c.next_due_us.is_not(None)))
NEXT = Statement(
    lambda: (
        _all()
        .where(tasks.c.next_due_us.is_not(None))
        .order_by(tasks.c.next_due_us, tasks.c.id)
        .limit(bindparam("most"))
    )
)


def _of_other_zone_data(what: Select[Any]) -> CompoundSelect[Any]:
    """Each part by its range of the index: with an `or` SQLite would look at every task."""
    return union_all(
        what.where(_live, tasks.c.zone_data < bindparam("version")),
        what.where(_live, tasks.c.zone_data > bindparam("version")),
        what.where(_live, tasks.c.zone_data.is_(None)),
    )


OF_OTHER_ZONE_DATA = Statement(lambda: _of_other_zone_data(_all()).limit(bindparam("most")))
ANY_OTHER_ZONE_DATA = Statement(lambda: _of_other_zone_data(select(tasks.c.id)))
IN_SCOPE = Statement(
    lambda: _all().where(
        _live,
        or_(
            bindparam("scope", type_=pauses.c.scope.type) == "store",
            and_(bindparam("scope") == "project", tasks.c.project_key == bindparam("target")),
            and_(bindparam("scope") == "task", tasks.c.id == bindparam("target")),
        ),
    )
)
COUNTS = Statement(
    lambda: (
        select(func.count(), func.coalesce(func.sum(tasks.c.enabled), 0), func.min(tasks.c.next_due_us))
        .select_from(tasks)
        .where(_live)
    )
)
INSERT = Statement(
    lambda: insert(tasks).values({name: bindparam(name, type_=tasks.c[name].type) for name in TASK_COLUMNS})
)
SET_STATE = Statement(
    lambda: (
        update(tasks)
        .where(tasks.c.id == bindparam("of"), tasks.c.version == bindparam("was_version"))
        .values(
            version=tasks.c.version + 1,
            enabled=bindparam("enabled"),
            removed_us=bindparam("removed_us"),
            updated_us=bindparam("updated_us"),
            planned_until_us=bindparam("planned_until_us"),
            next_due_us=bindparam("next_due_us"),
            next_start_us=bindparam("next_start_us"),
            done=bindparam("done"),
        )
    )
)
SET_TROUBLE = Statement(
    lambda: (
        update(tasks)
        .where(tasks.c.id == bindparam("of"))
        .values(
            trouble=bindparam("trouble"), next_due_us=bindparam("next_due_us"), next_start_us=bindparam("next_due_us")
        )
    )
)
SET_SOURCE = Statement(lambda: update(tasks).where(tasks.c.id == bindparam("of")).values(source=bindparam("source")))
TROUBLED = Statement(lambda: _all().where(_live, tasks.c.trouble.is_not(None)))
_PLANNED: dict[str, type] = {
    "id": str,
    "was_definition_version": int,
    "was_planned_until_us": int,
    "planned_until_us": int,
    "next_due_us": int,
    "next_start_us": int,
    "done": int,
    "planned_wall": str,
    "opened": int,
}


def _planned(size: int) -> CompilerElement:
    v = rows_of(size, _PLANNED)
    return (
        update(tasks)
        .where(
            tasks.c.id == v.c.id,
            tasks.c.definition_version == v.c.was_definition_version,
            tasks.c.planned_until_us == v.c.was_planned_until_us,
            # The cursor never moves back.
            tasks.c.planned_until_us <= v.c.planned_until_us,
        )
        .values(
            planned_until_us=v.c.planned_until_us,
            next_due_us=v.c.next_due_us,
            next_start_us=v.c.next_start_us,
            done=v.c.done,
            planned_wall=v.c.planned_wall,
            # With the cursor, so that each is counted once, whoever plans.
            scheduled_runs=tasks.c.scheduled_runs + v.c.opened,
        )
        .returning(tasks.c.id)
    )


PLANNED = Batch(_planned, tuple(_PLANNED), hot=True)
_RAISE: dict[str, type] = {"id": str, "by": int}


def _raise_fence(size: int) -> CompilerElement:
    v = rows_of(size, _RAISE)
    return update(tasks).where(tasks.c.id == v.c.id).values(fence=tasks.c.fence + v.c.by)


RAISE_FENCE = Batch(_raise_fence, tuple(_RAISE), hot=True)
_COUNTED: dict[str, type] = {"id": str, "by": int, "verdict": int, "last_run": str}
SUCCESS, FAILURE, NEITHER = 0, 1, 2


def _counted(size: int) -> CompilerElement:
    v = rows_of(size, _COUNTED)
    in_a_row = case(
        (v.c.verdict == SUCCESS, 0),
        (v.c.verdict == FAILURE, tasks.c.failures_in_a_row + 1),
        else_=tasks.c.failures_in_a_row,
    )
    return (
        update(tasks)
        .where(tasks.c.id == v.c.id)
        .values(runs=tasks.c.runs + v.c.by, failures_in_a_row=in_a_row, last_run=v.c.last_run)
    )


FORGET_FAILURES = Statement(lambda: update(tasks).where(tasks.c.id == bindparam("of")).values(failures_in_a_row=0))
COUNTED = Batch(_counted, tuple(_COUNTED), hot=True)


@value
class CursorMove:
    """What planning makes of a task: where its cursor stood, where it goes, and what comes next."""

    task: Task
    planned_until: datetime
    next_due_at: datetime | None
    next_start_at: datetime | None
    done: bool
    planned_wall: str | None = None
    opened: int = 0
    """Runs that the plan opens."""


class Tasks:
    """Tasks are found by id or name, planned in batches, and switched one at a time."""

    def __init__(self, line: Line, reading: Callable[[str, str], Definition | Broken]) -> None:
        self._line = line
        self._reading = reading

    def by_id(self, id_: str) -> Task | None:
        """The task of this id, a removed one too."""
        row = self._line.row(BY_ID, id=id_)
        return None if row is None else self._task(row)

    def text(self, id_: str) -> str:
        """The stored text of a task's definition, whether it reads or not."""
        row = self._line.row(TEXT, id=id_)
        return "" if row is None else str(row[0])

    def by_ids(self, ids: Iterable[str]) -> dict[str, Task]:
        """The tasks of these ids by their ids, removed ones too."""
        return {row[0]: self._task(row) for row in self._line.many(BY_IDS, [(id_,) for id_ in ids])}

    def by_name(self, project_key: str, name_key: str) -> Task | None:
        """The live task of this name in this project; keys are the names as compared."""
        row = self._line.row(BY_NAME, project_key=project_key, name_key=name_key)
        return None if row is None else self._task(row)

    def named(self, name_key: str) -> list[Task]:
        """Live tasks of this name in any project."""
        return [self._task(row) for row in self._line.rows(NAMED, name_key=name_key)]

    def ids_like(self, pattern: str, most: int) -> list[str]:
        """Ids of tasks that match a LIKE pattern."""
        return [row[0] for row in self._line.rows(IDS_LIKE, pattern=pattern, most=most)]

    def all_ids(self) -> list[str]:
        """The ids of all tasks, removed ones too."""
        return [row[0] for row in self._line.rows(IDS)]

    def page(self, *, after: tuple[str, str] = ("", ""), most: int = 1000) -> list[Task]:
        """Live tasks by project and name, after the given pair of keys."""
        rows = self._line.rows(PAGE, after_project=after[0], after_name=after[1], most=most)
        return [self._task(row) for row in rows]

    def in_scope(self, scope: str, target: str) -> list[Task]:
        """Live tasks that a pause of this scope and target holds."""
        return [self._task(row) for row in self._line.rows(IN_SCOPE, scope=scope, target=target)]

    def due(self, now: datetime, most: int) -> list[Task]:
        """Tasks whose next instant has come, the earliest first."""
        return [self._task(row) for row in self._line.rows(DUE, now_us=to_us(now), most=most)]

    def of_other_zone_data(self, version: str, most: int) -> list[Task]:
        """Live tasks whose instants were computed by other zone data than these."""
        return [self._task(row) for row in self._line.rows(OF_OTHER_ZONE_DATA, version=version, most=most)]

    def soonest_us(self) -> int | None:
        """The earliest next due instant of all tasks."""
        row = self._line.row(SOONEST)
        return None if row is None else row[0]

    def next(self, most: int) -> list[Task]:
        """Tasks by their next due instant, the earliest first."""
        return [self._task(row) for row in self._line.rows(NEXT, most=most)]

    def counts(self) -> tuple[int, int, int | None]:
        """How many tasks there are, how many enabled, and the earliest next due instant."""
        row = self._line.row(COUNTS)
        assert row is not None
        return int(row[0]), int(row[1]), row[2]

    def insert(self, task: Task) -> None:
        """Add a new task; IntegrityError when the name is taken."""
        self._line.run(INSERT, **task_cells(task))

    def move_cursors(self, moves: Sequence[CursorMove]) -> set[str]:
        """Write plans; gives the ids of tasks whose definition and cursor still stood as read."""
        rows = [
            (
                move.task.id,
                move.task.definition_version,
                to_us(move.task.planned_until),
                to_us(move.planned_until),
                us(move.next_due_at),
                us(move.next_start_at),
                int(move.done),
                move.planned_wall,
                move.opened,
            )
            for move in moves
        ]
        return {row[0] for row in self._line.many(PLANNED, rows)}

    def set_trouble(self, task: str, trouble: Broken | None, next_due_at: datetime | None = None) -> None:
        """Put a task that cannot be planned aside, with what is wrong; or take it back with its next start."""
        told = None if trouble is None else dump({"field": trouble.field, "message": trouble.message})
        self._line.run(SET_TROUBLE, of=task, trouble=told, next_due_us=us(next_due_at))

    def set_source(self, task: str, source: Mapping[str, object]) -> None:
        """Write what is kept of where a task comes from; it is no part of its definition, and no new version."""
        self._line.run(SET_SOURCE, of=task, source=dump(source))

    def troubled(self) -> list[Task]:
        """Live tasks that were put aside, as if they had not been: broken only where they do not read even now."""
        trouble = TASK_COLUMNS.index("trouble")
        return [self._task((*row[:trouble], None, *row[trouble + 1 :])) for row in self._line.rows(TROUBLED)]

    def raise_fences(self, counts: Iterable[tuple[str, int]]) -> None:
        """Raise the fence of each task by the number of claims about to be made."""
        self._line.many(RAISE_FENCE, list(counts))

    def set_state(self, before: Task, after: Task) -> bool:
        """Write a task's switch, cursor and removal if its version still stands; False: somebody was faster."""
        return (
            self._line.run(
                SET_STATE,
                of=before.id,
                was_version=before.version,
                enabled=int(after.definition.enabled),
                removed_us=us(after.removed_at),
                updated_us=to_us(after.updated_at),
                planned_until_us=to_us(after.planned_until),
                next_due_us=us(after.next_due_at),
                next_start_us=us(after.next_start_at),
                done=int(after.done),
            )
            == 1
        )

    def count_end(self, ends: Sequence[tuple[str, str, int]]) -> None:
        """Note ends of runs as (task, run, SUCCESS | FAILURE | NEITHER), each in its turn."""
        left = list(ends)
        while left:
            # One row a task and statement: a second end of the same task goes into the next one.
            first = {task: (task, run, verdict) for task, run, verdict in reversed(left)}
            self._line.many(COUNTED, [(task, 1, verdict, run) for task, run, verdict in first.values()])
            left = [end for end in left if first[end[0]] is not end and first[end[0]] != end]

    def forget_failures(self, task: str) -> None:
        """Count a task's failures in a row anew."""
        self._line.run(FORGET_FAILURES, of=task)

    def _task(self, row: Sequence[Any]) -> Task:
        return task_of(row, self._reading)
