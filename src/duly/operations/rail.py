"""What an agent's own run creates or switches on waits for a person: a rail, not a wall."""

import os

from duly.core.task import Task
from duly.errors import Refused
from duly.operations.lookup import run_of
from duly.store import Session
from duly.store.holds import hold


def asking_run() -> str | None:
    """Name the run whose work asks, as its environment says; None where a person asks."""
    return run_of(os.environ)


def wait_for_a_person(session: Session, task: Task, *, run: str | None, by: str) -> Task:
    """Hold a task that a run has made or switched on; gives it as it stands then."""
    if run is None:
        return task
    hold(session, "task", task.id, note=f"made or switched on in {run}: a person lets it start", by=by)
    again = session.tasks.by_id(task.id)
    assert again is not None
    return again


def refuse_in_a_run(run: str | None, what: str, hint: str) -> None:
    """Refuse what only a person may do."""
    if run is not None:
        raise Refused("not_allowed", f"{what} waits for a person, and {run} asks", details={"run": run}, hint=hint)
