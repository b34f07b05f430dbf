"""The counters of a task, where an end that they count is taken back: the run goes on."""

from sqlalchemy import and_, bindparam, case, update

from duly.store.line import Line
from duly.store.sql import Statement
from duly.store.tables import tasks

COUNTED_BACK = Statement(
    lambda: (
        update(tasks)
        .where(tasks.c.id == bindparam("of"))
        .values(
            runs=tasks.c.runs - 1,
            # It is the last failure in a row only where no other run has ended since.
            failures_in_a_row=case(
                (
                    and_(tasks.c.last_run == bindparam("run"), tasks.c.failures_in_a_row > 0),
                    tasks.c.failures_in_a_row - 1,
                ),
                else_=tasks.c.failures_in_a_row,
            ),
        )
    )
)


def count_back(line: Line, task: str, run: str) -> None:
    """Take back what the end of this run counted for its task; its next end counts anew."""
    line.run(COUNTED_BACK, of=task, run=run)
