"""The one write that moves a run along: a step is written if the row still stands as it was read."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import and_, true, update
from sqlalchemy.sql.elements import ColumnElement, CompilerElement

from duly.core.run import Step
from duly.store.line import Line
from duly.store.rows import RUN_COLUMNS, cells_of_run, fields_of
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
FREED = (
    "seat",
    "lease_end_us",
    "lease_boot",
    "handed_to",
    "stopping_us",
    "taken",
    "tried",
    "tried_reason",
)
"""What a run has no more when it has ended."""
TOLD_AT_THE_END = (
    "state",
    "outcome",
    "reason",
    "version",
    "ended_us",
    "worked_us",
    "exit_code",
    "signal",
    "error",
    "log_bytes",
    "log_cut",
)
_GUARDS: dict[str, type] = {"was_version": int, "was_state": str, "was_holder": str, "was_fence": int}
_LEASE: dict[str, type] = {"was_lease_end_us": int, "was_lease_boot": str}


def _moving(written: Sequence[str], *, freed: Sequence[str] = (), naming_lease: bool = False) -> Batch:
    """Write these columns as the step has them, and those that are freed as nothing."""
    given = {
        "id": str,
        **_GUARDS,
        **(_LEASE if naming_lease else {}),
        **{name: python_type(runs.c[name]) for name in written},
    }

    def build(size: int) -> CompilerElement:
        v = rows_of(size, given)
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
        moved = {name: v.c[name] for name in written} | dict.fromkeys(freed)
        return update(runs).where(stands).values(moved).returning(runs.c.id)

    return Batch(build, tuple(given), hot=bool(freed))


STEP = _moving(CHANGED)
STEP_NAMING_LEASE = _moving(CHANGED, naming_lease=True)
END = _moving(TOLD_AT_THE_END, freed=FREED)
"""The step that nearly every run ends by, which changes few columns of many."""
_read_before = fields_of(("id", *(name.removeprefix("was_") for name in _GUARDS)))
_read_lease = fields_of(tuple(name.removeprefix("was_") for name in _LEASE))
_left_alone = fields_of([name for name in CHANGED if name not in {*TOLD_AT_THE_END, *FREED}])
_freed = fields_of(FREED)
_FREED: tuple[Any, ...] = (None, None, None, None, None, {}, None, None)
_changed_cells = cells_of_run(CHANGED)
_end_cells = cells_of_run(TOLD_AT_THE_END)


def write(line: Line, steps: Sequence[Step], *, naming_lease: bool = False) -> set[str]:
    """Write steps and give back the ids of the runs that still stood as read; the others are unchanged.

    A step that would take a seat already taken raises IntegrityError, and the caller's savepoint decides.
    """
    if naming_lease:
        rows = [(*_before(step), *_read_lease(step.before), *_changed_cells(step.after)) for step in steps]
        return {row[0] for row in line.many(STEP_NAMING_LEASE, rows)}
    ends, others = [], []
    for step in steps:
        if _only_ends(step):
            ends.append((*_before(step), *_end_cells(step.after)))
        else:
            others.append((*_before(step), *_changed_cells(step.after)))
    return {row[0] for row in (*line.many(END, ends), *line.many(STEP, others))}


def _only_ends(step: Step) -> bool:
    """Tell whether the step changes nothing that an end does not."""
    return _freed(step.after) == _FREED and _left_alone(step.before) == _left_alone(step.after)


def _before(step: Step) -> tuple[Any, ...]:
    before, after = step.before, step.after
    assert before.id == after.id
    assert after.version == before.version + 1, "every write of a run is a new version"
    return _read_before(before)
