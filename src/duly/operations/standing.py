"""How things stand with a store, in one answer."""

from duly import __version__
from duly.clock import from_us
from duly.core.loops import fault_of
from duly.core.task import Task
from duly.operations import budgets, serving, shapes
from duly.operations.listing import Projects, is_within
from duly.operations.lookup import told
from duly.store.rows import Pause
from duly.store.store import Session, Store

PAGE = 1_000
FAILING_NAMED = 20
"""So many failing tasks are named; all are counted."""


def status(store: Store, session: Session) -> dict[str, object]:
    """Count what there is, what goes on, and what wants a person."""
    total, enabled, next_due_us = session.tasks.counts()
    broken, failing = _wanting(session)
    counts = session.runs.counts()
    alive = serving.alive(store, session)
    known = [row for row in session.holders.living() if row.id in alive]
    return {
        "store": str(store.address),
        "holders_alive": len(alive),
        "tasks": {"total": total, "enabled": enabled, "paused": _paused(session), "broken": broken},
        "runs": {
            "waiting": counts.get("waiting", 0),
            "running": counts.get("held", 0),
            "parked": counts.get("parked", 0),
        },
        "open_missed": sum(session.missed.open_counts(session.now).values()),
        "open_questions": session.questions.open_count(session.now),
        "failing": len(failing),
        "failing_tasks": [told(task) for task in failing[:FAILING_NAMED]],
        "budgets": [budgets.shape(one) for one in budgets.standing(session)],
        "next_due_at": shapes.instant(None if next_due_us is None else from_us(next_due_us)),
        "version": __version__,
        "holders": [shapes.holder(row, state=row.state, running=len(session.runs.held_by(row.id))) for row in known],
        "pauses": [pause(session, hold) for hold in session.pauses.all()],
        "polling_only": session.line.pooled,
        "projects": _troubled(session),
    }


def nothing(address: str) -> dict[str, object]:
    """Tell how things stand where there is no store yet."""
    return {
        "store": address,
        "holders_alive": 0,
        "tasks": {"total": 0, "enabled": 0, "paused": 0, "broken": 0},
        "runs": {"waiting": 0, "running": 0, "parked": 0},
        "open_missed": 0,
        "open_questions": 0,
        "failing": 0,
        "failing_tasks": [],
        "budgets": [],
        "next_due_at": None,
        "version": __version__,
        "holders": [],
        "pauses": [],
        "polling_only": False,
        "projects": [],
    }


def pause(session: Session, hold: Pause) -> dict[str, object]:
    """Show a hold with the name of what it holds."""
    return shapes.pause(hold) | {"target": _target(session, hold)}


def held_project(session: Session, hold: Pause, projects: Projects) -> bool:
    """Say whether a hold is one of these projects alone."""
    if projects is None:
        return True
    if hold.scope == "task":
        return is_within(session.tasks.by_id(hold.target), projects)
    return hold.scope == "project" and hold.target in projects


def _troubled(session: Session) -> list[dict[str, object]]:
    """Tell of projects whose folder cannot be used, or some of whose loop files were not taken."""
    return [
        {
            "name": one.name,
            "dir": one.dir,
            "host": one.dir_host,
            "missing": one.loops.get("missing"),
            "faults": one.loops.get("faults", []),
        }
        for one in session.projects.all()
        if one.loops
    ]


def _target(session: Session, hold: Pause) -> str:
    task = session.tasks.by_id(hold.target) if hold.scope == "task" else None
    if task is not None:
        return told(task)
    return session.projects.name(hold.target) or hold.target


def _paused(session: Session) -> int:
    held = {task.id for hold in session.pauses.all() for task in session.tasks.in_scope(hold.scope, hold.target)}
    return len(held)


def _wanting(session: Session) -> tuple[int, list[Task]]:
    """Count broken tasks and give the failing ones: those whose newest end was a failure and that may run again.

    Only reading a definition tells whether it reads, so all are read.
    """
    from duly.core.names import key_of

    broken, failing, after = 0, list[Task](), ("", "")
    while True:
        page = session.tasks.page(after=after, most=PAGE)
        broken += sum(task.broken is not None or fault_of(task.source) is not None for task in page)
        failing += [task for task in page if task.failures_in_a_row and not task.done]
        if len(page) < PAGE:
            return broken, failing
        last = page[-1].definition
        after = (key_of(last.project), key_of(last.name))
