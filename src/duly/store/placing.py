"""Where unended runs stand among others: by the rank and the project that their task has now."""

from collections.abc import Iterable

from sqlalchemy import TextClause, and_, case, or_, text, update
from sqlalchemy.sql.elements import CompilerElement

from duly.core.admission import BEYOND_PRIORITY
from duly.store.line import Line
from duly.store.sql import Batch, rows_of
from duly.store.tables import runs, tasks


def _placing(state: TextClause) -> Batch:
    def build(size: int) -> CompilerElement:
        v = rows_of(size, {"task": str})
        # As `core.admission.rank_of` has it, from the rank that the task's own occurrences get.
        rank = case(
            (or_(runs.c.opened_by == "manual", runs.c.opened_by == "offer"), runs.c.rank),
            (runs.c.opened_by == "backfill", tasks.c.rank + BEYOND_PRIORITY),
            else_=tasks.c.rank,
        )
        return (
            update(runs)
            .where(
                runs.c.task == v.c.task,
                tasks.c.id == v.c.task,
                and_(state, or_(runs.c.rank != rank, runs.c.project != tasks.c.project_key)),
            )
            # A new version: who holds a run computes its step anew from the row, and loses nothing of this.
            .values(rank=rank, project=tasks.c.project_key, version=runs.c.version + 1)
        )

    return Batch(build, ("task",))


# In the very words of the two partial indexes.
WAITING = _placing(text("runs.state = 'waiting'"))
LIVE = _placing(text("runs.state IN ('held', 'parked')"))


def place(line: Line, tasks_: Iterable[str]) -> None:
    """Give the runs of these tasks that have not ended the rank and the project that their task has now."""
    rows = [(task,) for task in tasks_]
    line.many(WAITING, rows)
    line.many(LIVE, rows)
