"""Lists of tasks, runs and ledger entries, page by page; reading changes nothing."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from duly import zones
from duly.clock import to_us
from duly.core.ledger import attempts
from duly.core.names import key_of
from duly.core.reading import shown
from duly.core.run import Run
from duly.core.skips import Range, covering, next_kept
from duly.core.task import Task
from duly.errors import Invalid
from duly.operations import channels, event_shapes, shapes
from duly.operations.lookup import find_task, told
from duly.operations.telling import waiting_for
from duly.store.pauses import holding
from duly.store.rows import Pause, Written
from duly.store.store import Session

STATES = ("waiting", "running", "parked", "ended")
OUTCOMES = ("succeeded", "failed", "timed_out", "cancelled", "abandoned", "skipped")
STORED_STATE = {"running": "held"}
PAGE_MOST = 10_000
LOOKED_AT = 1_000
LEDGER_LOOKS = 20
"""So many times that many entries are looked through for one page of a ledger that is held to some projects."""
T = TypeVar("T")
Projects = Collection[str] | None
"""The keys of the projects to which who asks is held; None: all of the store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A task with what its line in the list tells."""

    task: Task
    pauses: Sequence[Pause]
    last_run: Run | None
    live: Run | None
    open_missed: int
    skipped: Range | None
    """What a person said of its next instant, where they skipped it."""
    kept: datetime | None
    """Where its next instant is skipped: the first one after it that is not."""


def tasks(session: Session, *, cursor: str | None, most: int) -> tuple[list[Listed], str | None]:
    """List live tasks by project and name from a cursor on; the second value continues the list."""
    found = session.tasks.page(after=task_cursor(session, cursor), most=most + 1)
    page = found[:most]
    following = page[-1].id if len(found) > most else None
    return with_runs(session, page), following


def task_cursor(session: Session, cursor: str | None) -> tuple[str, str]:
    """Read the cursor of a list of tasks: the keys of project and name after which it goes on."""
    if cursor is None:
        return ("", "")
    last = session.tasks.by_id(cursor)
    if last is None:
        raise _bad_cursor(cursor)
    return (key_of(last.definition.project), key_of(last.definition.name))


def one(session: Session, task: Task) -> Listed:
    """Give what a list would tell of one task."""
    return with_runs(session, [task])[0]


def shape(listed: Listed) -> dict[str, object]:
    """Show a task of a list."""
    told_ = shapes.task(listed.task, pauses=listed.pauses, last_run=listed.last_run, open_missed=listed.open_missed)
    return told_ | {"next_skipped": shapes.skipped(listed.skipped)}


def runs(
    session: Session,
    *,
    task: str | None,
    state: str | None,
    outcome: str | None,
    since: datetime | None,
    cursor: str | None,
    most: int,
    until: datetime | None = None,
    projects: Projects = None,
) -> tuple[list[dict[str, object]], str | None]:
    """List runs, the newest first; `state` is the public word."""
    given: dict[str, Any] = {
        "before": _run_cursor(cursor),
        "task": None if task is None else ledger_task(session, task),
        "state": None if state is None else STORED_STATE.get(state, state),
        "outcome": outcome,
        "since_us": 0 if since is None else to_us(since),
        "most": most + 1,
    }
    if until is not None:
        given["until_us"] = to_us(until)
    of = (None,) if projects is None else sorted(projects)
    found = [run for project in of for run in session.runs.listed(project=project, **given)]
    found.sort(key=lambda run: run.id, reverse=True)
    page = found[:most]
    following = page[-1].id if len(found) > most else None
    named: dict[str, Task | None] = {}
    for run in page:
        if run.task not in named:
            named[run.task] = session.tasks.by_id(run.task)
    return [run_shape(session, run, named[run.task]) for run in page], following


def run_shape(session: Session, run: Run, task: Task | None) -> dict[str, object]:
    """Show a run with its attempts, its host and what it waits for."""
    holder = None if run.holder is None else session.holders.by_id(run.holder)
    return shapes.run(
        run,
        task_name=None if task is None else task.definition.name,
        project=None if task is None else task.definition.project,
        host=None if holder is None else holder.host,
        waiting_for=waiting_for(session, run),
        attempts=attempts(one.entry for one in session.ledger.of_run(run.id)) if run.attempt else (),
        event=None if run.event is None else event_shapes.cause(run.event, session.events.by_id(run.event)),
        notices=channels.of_run(session, run.id),
    )


def ledger(
    session: Session,
    *,
    task: str | None,
    since: datetime | None,
    after: int,
    most: int,
    projects: Projects = None,
) -> tuple[list[Written], int | None]:
    """List ledger entries with numbers above `after`, the oldest first.

    Held to `projects`, what belongs to no task is left out, and a page may be short: the second value tells of more.
    """
    of = None if task is None else ledger_task(session, task)
    since_us = 0 if since is None else to_us(since)
    if projects is not None:
        return _ledger_within(session, projects, of, since_us, after, most)
    found = session.ledger.after(after, task=of, since_us=since_us, most=most + 1)
    page = found[:most]
    return page, page[-1].seq if len(found) > most else None


def newest(session: Session, *, task: str | None, since: datetime | None, most: int) -> list[Written]:
    """Give the newest ledger entries, the oldest of them first."""
    found = session.ledger.before(
        session.ledger.last() + 1,
        task=None if task is None else ledger_task(session, task),
        since_us=0 if since is None else to_us(since),
        most=most,
    )
    return found[::-1]


def ledger_task(session: Session, word: str) -> str:
    """Find the id of a task for what is kept of it, which outlives the task."""
    removed = session.tasks.by_id(word)
    return removed.id if removed is not None else find_task(session, word).id


def seq_cursor(cursor: str | None) -> int:
    """Read the cursor of a list of ledger entries."""
    if cursor is None:
        return 0
    if not (cursor.isascii() and cursor.isdigit()) or len(cursor) > 18:
        raise _bad_cursor(cursor)
    return int(cursor)


def name_of(task: Task | None, id_: str) -> str:
    """Name a task for a table, by its id where nothing else is known."""
    return id_ if task is None else told(task)


def within(
    session: Session,
    read: Callable[[str, int], list[T]],
    which: Callable[[T], tuple[str, str]],
    *,
    projects: Projects,
    before: str,
    most: int,
    fits: Callable[[T], bool] | None = None,
) -> list[T]:
    """Give the first `most` of what `read` gives from an id on, of some projects alone, and of those that fit.

    `which` gives the id and the task of one.
    """
    if projects is None and fits is None:
        return read(before, most)
    kept: list[T] = []
    while batch := read(before, LOOKED_AT):
        tasks_ = session.tasks.by_ids({which(one)[1] for one in batch})
        seen = [one for one in batch if is_within(tasks_.get(which(one)[1]), projects)]
        kept += seen if fits is None else filter(fits, seen)
        before = which(batch[-1])[0]
        if len(kept) >= most or len(batch) < LOOKED_AT:
            break
    return kept[:most]


def is_within(task: Task | None, projects: Projects) -> bool:
    """Say whether a task belongs to one of these projects."""
    return projects is None or (task is not None and key_of(task.definition.project) in projects)


def _ledger_within(
    session: Session, projects: Collection[str], task: str | None, since_us: int, after: int, most: int
) -> tuple[list[Written], int | None]:
    kept: list[Written] = []
    known: dict[str, bool] = {}
    for _ in range(LEDGER_LOOKS):
        batch = session.ledger.after(after, task=task, since_us=since_us, most=LOOKED_AT)
        new = {one.entry.task for one in batch if one.entry.task is not None} - known.keys()
        found = session.tasks.by_ids(new)
        known |= {id_: is_within(found.get(id_), projects) for id_ in new}
        for one in batch:
            if one.entry.task is None or not known[one.entry.task]:
                continue
            if len(kept) == most:
                return kept, kept[-1].seq
            kept.append(one)
        if len(batch) < LOOKED_AT:
            return kept, None
        after = batch[-1].seq
    return kept, after


def _run_cursor(cursor: str | None) -> str:
    if cursor is None:
        return "~"
    if not cursor.startswith("run_"):
        raise _bad_cursor(cursor)
    return cursor


def _bad_cursor(cursor: str) -> Invalid:
    return Invalid(f"{shown(cursor)} is not what a list gave as `next`", field="--cursor", text=cursor, at=0)


def with_runs(session: Session, page: Sequence[Task]) -> list[Listed]:
    """Give tasks with what their lines in a list tell."""
    pauses = session.pauses.all()
    open_missed = session.missed.open_counts(session.now)
    wanted = [task.last_run for task in page if task.last_run is not None]
    last = {run.id: run for run in session.runs.by_ids(wanted)}
    skips = session.skips.ahead([task.id for task in page])
    live: dict[str, Run] = {}
    for run in session.runs.live():
        live.setdefault(run.task, run)
    return [
        Listed(
            task=task,
            pauses=holding(pauses, task=task.id, project_key=key_of(task.definition.project)) if pauses else (),
            last_run=last.get(task.last_run or ""),
            live=live.get(task.id),
            open_missed=open_missed.get(task.id, 0),
            skipped=_skipped(task, skips.get(task.id, ())),
            kept=_kept(task, skips.get(task.id, ())),
        )
        for task in page
    ]


def _skipped(task: Task, ranges: Sequence[Range]) -> Range | None:
    return None if task.next_due_at is None else covering(ranges, task.next_due_at)


def _kept(task: Task, ranges: Sequence[Range]) -> datetime | None:
    if task.broken is not None or _skipped(task, ranges) is None:
        return None
    return next_kept(task.definition, zones.zone(task.definition.zone), task.planned_until, ranges)
