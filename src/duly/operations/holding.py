"""Who may hold leases, and whether the fence that a work was given is still the one that counts."""

from collections.abc import Collection, Iterator
from itertools import islice

from duly.core.reading import shown
from duly.core.task import Task
from duly.errors import Invalid
from duly.operations import serving, shapes
from duly.operations.lookup import find_task
from duly.store.rows import HolderRow
from duly.store.store import Session, Store

PAGE = 1_000
STATES = ("alive", "draining", "gone")
RUNS_LOOKED_AT = 1_000
"""Of a task's runs, the newest so many are looked through for the one that had a fence."""


def holders(
    store: Store, session: Session, *, state: str | None, cursor: str | None, most: int
) -> tuple[list[dict[str, object]], str | None]:
    """List holders, the newest first; one whose lock is free is gone, whatever its row still says."""
    if cursor is not None and not cursor.startswith("hld_"):
        raise Invalid(f"{shown(cursor)} is not what a list gave as `next`", field="--cursor", text=cursor, at=0)
    alive = serving.alive(store, session)
    wanted = (row for row in _rows(session, cursor or "~") if state is None or state_of(row, alive) == state)
    page = list(islice(wanted, most + 1))
    following = page[most - 1].id if len(page) > most else None
    return [
        shapes.holder(row, state=state_of(row, alive), running=len(session.runs.held_by(row.id))) for row in page[:most]
    ], following


def state_of(row: HolderRow, alive: Collection[str]) -> str:
    """Give a holder's state as its lock tells it."""
    return row.state if row.id in alive else "gone"


def fence(session: Session, task: Task, number: int) -> dict[str, object]:
    """Say whether a fence is current: whether the attempt that was given it holds its run now, and else why not."""
    live = next((run for run in session.runs.live_of(task.id) if run.fence == number), None)
    if live is not None:
        return shapes.fence(task, number, run=live, reason=None, lease_us=session.lease_us)
    run = next((run for run in session.runs.listed(task=task.id, most=RUNS_LOOKED_AT) if run.fence == number), None)
    over = "already_ended" if run is not None and run.state == "ended" else "fence_lost"
    reason = "unknown_id" if not 0 < number <= task.fence else over
    return shapes.fence(task, number, run=run, reason=reason, lease_us=session.lease_us)


def fenced_task(session: Session, *, task: str, project: str | None, run: str | None) -> Task:
    """Find the task that a work belongs to, by what it was told: its run's id, which outlives a change of names."""
    found = session.runs.by_id(run) if run is not None else None
    known = session.tasks.by_id(found.task) if found is not None else None
    return known or find_task(session, task if project is None else f"{project}/{task}")


def _rows(session: Session, before: str) -> Iterator[HolderRow]:
    while page := session.holders.before(before, PAGE):
        yield from page
        before = page[-1].id
