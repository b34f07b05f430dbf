"""Changing tasks: add, enable, disable, pause, unpause, remove. Each is one transaction, whole or not at all."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from duly import ids, zones
from duly.core.names import key_of
from duly.core.run import Entry
from duly.core.task import Definition, Task
from duly.errors import Invalid, Refused
from duly.operations.judging import judge
from duly.operations.limits import check_fits
from duly.operations.lookup import find_task, project_key, told
from duly.operations.owned import refuse_removal, refuse_switch
from duly.operations.rail import refuse_in_a_run, wait_for_a_person
from duly.operations.versions import check_version
from duly.store import Session, Store, definitions_written, listening, removing
from duly.store.holds import hold
from duly.store.plans import arm, disarm
from duly.store.rows import Pause
from duly.store.switches import is_armed, lift, lift_over, switch_off, switch_on, write


@dataclass(frozen=True, slots=True, kw_only=True)
class Paused:
    """What a pause or its end did: the hold, and the tasks it touches."""

    pause: Pause
    tasks: int


def add(
    store: Store,
    definition: Definition,
    *,
    by: str,
    source: Mapping[str, object],
    dry_run: bool = False,
    run: str | None = None,
    held: str | None = None,
) -> Task:
    """Add a task, whole; `dry_run` judges it in the same way and keeps nothing.

    What a `run` adds waits for a person, and what is `held` for a reason does.
    Refused `already_exists` when the name is taken in its project; Invalid when it can never run.
    """
    with store.write() as session:
        lift_over(session)
        task = add_in(session, definition, by=by, source=source, dry_run=dry_run)
        return task if dry_run else wait_for_a_person(session, task, run=run, by=by, why=held)


def add_in(
    session: Session, definition: Definition, *, by: str, source: Mapping[str, object], dry_run: bool = False
) -> Task:
    """Add a task in the caller's transaction."""
    task = _new(session, definition, by=by, source=source)
    taken = session.tasks.by_name(key_of(definition.project), key_of(definition.name))
    if taken is not None:
        raise Refused(
            "already_exists",
            f"there is a task {told(taken)} already",
            details={"task": taken.id, "name": taken.definition.name, "project": taken.definition.project},
            hint=f"another name, or duly remove {told(taken)}",
        )
    if dry_run:
        listening.check(session, task.id, definition)
    else:
        task = definitions_written.add(session, task)
        session.ledger.add([_told(session, "defined", task, by, {"version": 1})])
    return task


def first_version(definition: Definition, *, now: datetime, by: str, source: Mapping[str, object]) -> Task:
    """Make the task that adding this definition now would make, not yet in any store; Invalid if it can never run."""
    judge(definition, now)
    task = Task(
        id=ids.new("tsk"),
        definition=definition,
        broken=None,
        version=1,
        definition_version=1,
        planned_until=now,
        next_due_at=None,
        next_start_at=None,
        done=False,
        fence=0,
        runs=0,
        scheduled_runs=0,
        failures_in_a_row=0,
        last_run=None,
        source=source,
        created_at=now,
        created_by=by,
        updated_at=now,
        removed_at=None,
        zone_data=zones.zone_data_version(),
    )
    return arm(task, now) if definition.enabled else task


def enable(store: Store, word: str, *, by: str, in_file: bool = False, run: str | None = None) -> Task:
    """Switch a task on; it owes nothing of the time it was off. Switching on what is on changes nothing.

    Refused `owned_by_file` where a file says whether it is on, unless it says so `in_file` by now. What a `run`
    switches on waits for a person.
    """
    return _switched(store, word, on=True, by=by, in_file=in_file, run=run)


def disable(store: Store, word: str, *, by: str, in_file: bool = False) -> Task:
    """Switch a task off: nothing opens it by time, what waits ends skipped; a live run goes on.

    Refused `owned_by_file` where a file says whether it is on, unless it says so `in_file` by now.
    """
    return _switched(store, word, on=False, by=by, in_file=in_file)


def _switched(store: Store, word: str, *, on: bool, by: str, in_file: bool, run: str | None = None) -> Task:
    with store.write() as session:
        lift_over(session)
        task = find_task(session, word)
        if not in_file:
            refuse_switch(task)
        after = switch(session, task, on=on, by=by)
        return after if task.definition.enabled else wait_for_a_person(session, after, run=run, by=by)


def switch(session: Session, task: Task, *, on: bool, by: str) -> Task:
    """Switch a task on or off in the caller's transaction; its definition keeps its version."""
    if task.definition.enabled == on:
        return task
    after = task if on else switch_off(session, task, reason="disabled", by=by)
    after = replace(after, definition=replace(after.definition, enabled=on))
    if on and is_armed(after, session.pauses.all()):
        after = switch_on(session, after, reason="disabled", at=session.now)
    write(session, task, after)
    if on and task.broken is not None:
        session.tasks.set_trouble(task.id, task.broken)  # so that it is found again once it reads
    session.ledger.add([_told(session, "enabled" if on else "disabled", task, by)])
    return _again(session, task)


def remove(store: Store, word: str, *, by: str, if_version: int | None = None) -> Task:
    """Remove a task: what waits ends skipped, what runs is cancelled; its runs and its ledger stay.

    Refused `version_conflict` when `if_version` is not the task's.
    """
    with store.write() as session:
        lift_over(session)
        task = find_task(session, word)
        check_version(session, task, if_version)
        refuse_removal(store, session, task)
        return removing.remove(session, task, by=by)


def pause(store: Store, scope: str, target: str, *, until: datetime | None, note: str | None, by: str) -> Paused:
    """Hold a task, a project or the store (`target` empty): nothing opens by time, live runs go on.

    Asking again for the same hold replaces its end and note.
    """
    with store.write() as session:
        lift_over(session)
        if until is not None and until <= session.now:
            raise Invalid("the end of the pause is in the past", field="until", hint="--until 2h")
        key = _target(session, scope, target)
        made, touched = hold(session, scope, key, until=until, note=note, by=by)
        return Paused(pause=made, tasks=touched)


def unpause(store: Store, scope: str, target: str, *, by: str, run: str | None = None) -> Paused | None:
    """Lift one hold; tasks that nothing else holds go on from now. None where there was none, which changes nothing.

    Refused `not_allowed` where a `run` asks: what waits for a person waits for one.
    """
    refuse_in_a_run(run, "lifting a hold", "duly unpause, from a terminal of one's own")
    with store.write() as session:
        lift_over(session)
        key = _target(session, scope, target)
        for one in session.pauses.all():
            if (one.scope, one.target) == (scope, key):
                touched = len(session.tasks.in_scope(scope, key))
                lift(session, one, by=by, at=session.now)
                return Paused(pause=one, tasks=touched)
        return None


def _new(session: Session, definition: Definition, *, by: str, source: Mapping[str, object]) -> Task:
    definition = session.defaults.fill_in(definition)
    task = first_version(definition, now=session.now, by=by, source=source)
    check_fits(session, definition)
    return task if is_armed(task, session.pauses.all()) else disarm(task)


def _target(session: Session, scope: str, target: str) -> str:
    if scope == "store":
        return ""
    if scope == "task":
        return find_task(session, target).id
    return project_key(session, target)


def _told(session: Session, kind: str, task: Task, by: str, details: Mapping[str, object] | None = None) -> Entry:
    return Entry(kind=kind, at=session.now, task=task.id, by=by, details=details or {})


def _again(session: Session, task: Task) -> Task:
    again = session.tasks.by_id(task.id)
    assert again is not None
    return again
