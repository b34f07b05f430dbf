"""What the Python face answers, read from a store: tasks and runs as values, the end of a run, its output."""

import json
from datetime import datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING

from duly import clock
from duly.app.values import Run, Task, run_of, task_of
from duly.errors import Invalid
from duly.operations import events, listing, outputs, previewing
from duly.operations.lookup import find_run, find_task
from duly.runners.folders import folder_of

if TYPE_CHECKING:
    from duly.store.store import Session, Store

TASKS_A_PAGE = 1_000
LOOK_EVERY_S = 0.1


def task(store: "Store", id_: str) -> Task:
    """Give a task by its id, removed or not."""
    with store.read() as session:
        found = session.tasks.by_id(id_)
        assert found is not None
        return task_of(listing.shape(listing.one(session, found)))


def named(session: "Session", word: str) -> Task:
    """Give the task that a word means; Refused `unknown_task` where there is none."""
    return task_of(listing.shape(listing.one(session, find_task(session, word))))


def tasks(session: "Session") -> list[Task]:
    """Give all tasks, by project and name."""
    found: list[Task] = []
    cursor: str | None = None
    while True:
        page, cursor = listing.tasks(session, cursor=cursor, most=TASKS_A_PAGE)
        found += [task_of(listing.shape(one)) for one in page]
        if cursor is None:
            return found


def upcoming(session: "Session", word: str, most: int) -> list[datetime]:
    """Give the next instants at which a task is due, the nearest first."""
    return [one.due_at for one in islice(previewing.upcoming(find_task(session, word), session.now), most)]


def emitted(store: "Store", source: str, data: object, *, key: str | None, by: str) -> list[Run]:
    """Tell of an event and give the runs that it opened; Invalid where its data are no JSON values."""
    try:
        body = None if data is None else json.dumps(data, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise Invalid(f"the data of an event are JSON values: {error}", field="data") from error
    return [run(store, one.run.id) for one in events.emit(store, source, by=by, key=key, data=body).opened]


def run(store: "Store", word: str) -> Run:
    """Give the run that a word means as it stands now; Refused `unknown_run` where there is none."""
    with store.read() as session:
        found = find_run(session, word)
        return run_of(listing.run_shape(session, found, session.tasks.by_id(found.task)))


def ended(store: "Store", word: str, within: float | timedelta | None) -> Run:
    """Wait for the end of a run and give it; TimeoutError where it has not ended within so many seconds."""
    within_s = within.total_seconds() if isinstance(within, timedelta) else within
    until = None if within_s is None else clock.monotonic_s() + within_s
    store.changed()  # what is written from here on shows itself
    seen = run(store, word)
    while seen.state != "ended":
        if until is not None and clock.monotonic_s() >= until:
            raise TimeoutError(f"{seen.id} has not ended within {within_s:g} s: it is {seen.state}")
        clock.pause(LOOK_EVERY_S)
        store.check_here()
        if store.changed():
            seen = run(store, seen.id)
    return seen


def output(store: "Store", word: str) -> bytes:
    """Give what a run's last attempt has written so far; its head and its tail where that is very much."""
    with store.read() as session:
        found = find_run(session, word)
    folder = folder_of(store.run_folder, found.id, found.fence)
    out, at = b"", 0
    while (piece := outputs.read(store, folder, at)).data:
        out, at = out + piece.data, piece.next
    return out
