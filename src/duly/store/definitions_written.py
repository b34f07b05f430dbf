"""Definitions written down: a task's row, the version it makes, and the rows derived from it, in one place.

Whoever adds a task, edits one or removes one comes through here, so that no row which admission, events or `verify`
read can lag behind the definition it was made from.
"""

from dataclasses import replace

from duly.clock import to_us
from duly.core.budgets import Budget
from duly.core.events import sources_of
from duly.core.limits import weights_of
from duly.core.names import key_of
from duly.core.task import Task
from duly.errors import DulyError, Refused
from duly.store import listening, rewriting
from duly.store.placing import place
from duly.store.plans import arm
from duly.store.store import Session


def add(session: Session, task: Task) -> Task:
    """Write a new task with its first version; gives it with its project spelled as that goes by already."""
    task = _owned(session, task)
    session.tasks.insert(task)
    session.versions.insert(task, era_from_us=to_us(task.planned_until))
    _derive(session, task)
    return task


def rewrite(session: Session, before: Task, after: Task, *, era_from_us: int) -> Task:
    """Write the next version of a task's definition, with its cursor and its next start as they stand in `after`.

    Refused `version_conflict` when the task is no longer as it was read.
    """
    after = replace(
        _owned(session, after),
        version=before.version + 1,
        definition_version=before.definition_version + 1,
        updated_at=session.now,
    )
    if not rewriting.rewrite(session.line, before, after):
        raise Refused("version_conflict", f"{before.definition.name} was changed by somebody else", details={})
    session.versions.insert(after, era_from_us=era_from_us)
    place(session.line, [after.id])
    _derive(session, after)
    return after


def forget(session: Session, task: Task) -> None:
    """Take away what was derived from the definition of a task that is removed; its row and its versions stay."""
    session.crowd.set_task(task.id, {}, ())
    session.budgets.remove("task", task.id)
    session.events.set_sources(task.id, ())


def decide_anew(session: Session, scope: str, target: str) -> int:
    """Write again what the rules of all tasks of a store or project decide, after their defaults changed; how many."""
    tasks = [_started_anew(task) for task in session.tasks.in_scope(scope, target) if task.broken is None]
    rewriting.decide(session.line, tasks)
    place(session.line, [task.id for task in tasks])
    return len(tasks)


def _started_anew(task: Task) -> Task:
    """The task with the start of its next occurrence, which a spread moves; what is due stays."""
    if task.next_due_at is None:
        return task
    try:
        return replace(task, next_start_at=arm(task, task.planned_until).next_start_at)
    except DulyError:
        return task


def _owned(session: Session, task: Task) -> Task:
    """The task under its project's name as that goes by, with the defaults that hold there."""
    project = session.projects.ensure(key_of(task.definition.project), task.definition.project, session.now)
    definition = session.defaults.fill_in(replace(task.definition, project=project))
    return replace(task, definition=definition)


def _derive(session: Session, task: Task) -> None:
    """Write what others read without the definition: which limits and labels it names, which events it takes."""
    listening.check(session, task.id, task.definition)
    session.crowd.set_task(task.id, weights_of(task.definition), task.definition.rules.needs)
    _set_budget(session, task)
    session.events.set_sources(task.id, sources_of(task.definition))
    if task.definition.rules.ping is None:
        session.pings.unwatch([task.id])
    else:
        session.pings.watch(task.id, session.ledger.last())


def _set_budget(session: Session, task: Task) -> None:
    """Write a task's own budget, which is by the days of its zone."""
    allowed = task.definition.rules.budget
    if allowed is None:
        session.budgets.remove("task", task.id)
    else:
        budget = Budget(scope="task", target=task.id, allowed=allowed, zone=task.definition.zone)
        session.budgets.put(budget, session.now)
