"""What an agent's own run creates or switches on waits for a person: a rail, not a wall."""

import os

from duly.core.names import key_of
from duly.core.task import Definition, Task
from duly.errors import Refused
from duly.operations.askers import Asker
from duly.operations.lookup import run_of
from duly.store import Session
from duly.store.holds import hold
from duly.store.rows import Pause
from duly.store.secrets_made import RIGHTS

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


def asker_in_a_run(session: Session, id_: str, *, name: str) -> Asker:
    """Give the work of a run as one who asks: it may what its task's `store_access` says, in its project, and lives."""
    run = session.runs.by_id(id_)
    held = run is not None and run.state == "held"
    definition = session.versions.read(run.task, run.definition_version) if run is not None and held else None
    if not isinstance(definition, Definition):
        return Asker(name=name, rights=frozenset(), projects=frozenset(), run=id_)
    projects = frozenset({key_of(definition.project)})
    return Asker(name=name, rights=RIGHTS[definition.rules.store_access], projects=projects, run=id_)


def refuse_in_a_run(run: str | None, what: str, hint: str) -> None:
    """Refuse what only a person may do."""
    if run is not None:
        raise Refused("not_allowed", f"{what} waits for a person, and {run} asks", details={"run": run}, hint=hint)
