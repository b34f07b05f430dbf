"""Rewriting a task's row: a whole new version of its definition, or only what its rules decide for others to read."""

from collections.abc import Iterable

from sqlalchemy import bindparam, update
from sqlalchemy.sql.elements import CompilerElement

from duly.core.task import Task
from duly.store.line import Line
from duly.store.rows import task_cells
from duly.store.sql import Batch, Statement, rows_of
from duly.store.tables import tasks

REWRITTEN = (
    *("project", "project_key", "name", "name_key", "enabled", "definition", "definition_version", "version", "source"),
    *("updated_us", "overlap", "queue", "seats", "rank", "leaves", "trouble"),
    *("planned_until_us", "next_due_us", "next_start_us", "done", "planned_wall", "zone_data"),
)
"""What a new version of a definition writes; all else of a task's row stands."""
SET_DEFINITION = Statement(
    lambda: (
        update(tasks)
        .where(tasks.c.id == bindparam("of"), tasks.c.version == bindparam("was_version"))
        .values({name: bindparam(name, type_=tasks.c[name].type) for name in REWRITTEN})
    )
)
_DECIDED: dict[str, type] = {"id": str, "overlap": str, "queue": int, "seats": int, "rank": int, "next_start_us": int}


def _decided(size: int) -> CompilerElement:
    v = rows_of(size, _DECIDED)
    names = [name for name in _DECIDED if name != "id"]
    return update(tasks).where(tasks.c.id == v.c.id).values({name: v.c[name] for name in names}).returning(tasks.c.id)


DECIDED = Batch(_decided, tuple(_DECIDED))


def rewrite(line: Line, before: Task, after: Task) -> bool:
    """Write a task's definition with all it decides if its version still stands; False: somebody was faster."""
    cells = task_cells(after)
    given = {name: cells[name] for name in REWRITTEN}
    return line.run(SET_DEFINITION, of=before.id, was_version=before.version, **given) == 1


def decide(line: Line, changed: Iterable[Task]) -> None:
    """Write what tasks' rules decide and others read without them; their definitions stand as they are."""
    cells = [task_cells(task) for task in changed]
    line.many(DECIDED, [[one[name] for name in _DECIDED] for one in cells])
