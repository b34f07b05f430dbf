"""The one write that moves a run along: a step is written if the row still stands as it was read."""

from collections.abc import Sequence

from sqlalchemy import and_, true, update
from sqlalchemy.sql.elements import ColumnElement, CompilerElement

from duly.core.run import Step
from duly.store.line import Line
from duly.store.rows import RUN_COLUMNS, cells_of_run
from duly.store.sql import Batch, python_type, rows_of
from duly.store.tables import runs

NEVER_CHANGED = frozenset(
    {
        "id",
        "task",
        "occurrence",
        "due_us",
        "opened_us",
        "input",
        "args",
        "event",
        "retry_of",
        # Moved by an edit of its task, together for all that waits.
        "project",
    }
)
"""What no step changes: fewer columns in the statement that every run goes through twice."""
CHANGED = tuple(name for name in RUN_COLUMNS if name not in NEVER_CHANGED)
_changed_cells = cells_of_run(CHANGED)
_GUARDS: dict[str, type] = {
    "was_version": int,
    "was_state": str,
    "was_holder": str,
    "was_fence": int,
    "was_lease_end_us": int,
    "was_lease_boot": str,
}
_COLUMNS: dict[str, type] = {"id": str, **_GUARDS, **{name: python_type(runs.c[name]) for name in CHANGED}}


def _moving(*, naming_lease: bool) -> Batch:
    def build(size: int) -> CompilerElement:
        v = rows_of(size, _COLUMNS)
        stands: ColumnElement[bool] = and_(
            runs.c.id == v.c.id,
            runs.c.version == v.c.was_version,
            runs.c.state == v.c.was_state,
            runs.c.holder.is_not_distinct_from(v.c.was_holder),
            runs.c.fence == v.c.was_fence,
            # A beat moves the end of a lease without a new version: a sweep also names the end that it read.
            and_(
                runs.c.lease_end_us.is_not_distinct_from(v.c.was_lease_end_us),
                runs.c.lease_boot.is_not_distinct_from(v.c.was_lease_boot),
            )
            if naming_lease
            else true(),
        )
        return update(runs).where(stands).values({name: v.c[name] for name in CHANGED}).returning(runs.c.id)

    return Batch(build, tuple(_COLUMNS))


STEP = _moving(naming_lease=False)
STEP_NAMING_LEASE = _moving(naming_lease=True)


def write(line: Line, steps: Sequence[Step], *, naming_lease: bool = False) -> set[str]:
    """Write steps and give back the ids of the runs that still stood as read; the others are unchanged.

    A step that would take a seat already taken raises IntegrityError, and the caller's savepoint decides.
    """
    batch = STEP_NAMING_LEASE if naming_lease else STEP
    return {row[0] for row in line.many(batch, [_cells(step) for step in steps])}


def _cells(step: Step) -> list[object]:
    before, after = step.before, step.after
    assert before.id == after.id
    assert after.version == before.version + 1, "every write of a run is a new version"
    return [
        before.id,
        before.version,
        before.state,
        before.holder,
        before.fence,
        before.lease_end_us,
        before.lease_boot,
        *_changed_cells(after),
    ]
