"""What an agent's own run creates or switches on waits for a person: a rail, not a wall."""

import os
from collections.abc import Mapping

from duly.core.task import Definition, StoreAccess, Task
from duly.errors import Refused
from duly.operations.lookup import run_of
from duly.store import Session
from duly.store.holds import hold
from duly.store.rows import Pause

RIGHTS: Mapping[StoreAccess, frozenset[str]] = {
    "none": frozenset(),
    "read": frozenset({"read"}),
    "run": frozenset({"read", "run"}),
}
A_PERSON = "a person lets it start"
"""What the notes of such holds end with."""


def asking_run() -> str | None:
    """Name the run whose work asks, as its environment says; None where a person asks."""
    return run_of(os.environ)


def wait_for_a_person(session: Session, task: Task, *, run: str | None, by: str, why: str | None = None) -> Task:
    """Hold a task that a run has made or switched on, or for the reason `why`; gives it as it stands then."""
    why = f"made or switched on in {run}" if run is not None else why
    if why is None:
        return task
    hold(session, "task", task.id, note=f"{why}: {A_PERSON}", by=by)
    again = session.tasks.by_id(task.id)
    assert again is not None
    return again


def waiting_for_a_person(session: Session, task: Task) -> Pause | None:
    """Give the hold by which a task waits for a person, where it does."""
    held = (one for one in session.pauses.all() if (one.scope, one.target) == ("task", task.id))
    return next((one for one in held if (one.note or "").endswith(f": {A_PERSON}")), None)


def rights_of_run(session: Session, id_: str) -> frozenset[str]:
    """Give the rights that the work of a run has at the store: those of its task's `store_access`, while it lives."""
    run = session.runs.by_id(id_)
    if run is None or run.state != "held":
        return frozenset()
    definition = session.versions.read(run.task, run.definition_version)
    return RIGHTS[definition.rules.store_access] if isinstance(definition, Definition) else frozenset()


def refuse_in_a_run(run: str | None, what: str, hint: str) -> None:
    """Refuse what only a person may do."""
    if run is not None:
        raise Refused("not_allowed", f"{what} waits for a person, and {run} asks", details={"run": run}, hint=hint)
