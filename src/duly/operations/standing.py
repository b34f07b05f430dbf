"""How things stand with a store, in one answer."""

from duly import __version__
from duly.clock import from_us
from duly.operations import shapes
from duly.operations.lookup import told
from duly.operations.serving import holders_alive
from duly.store.rows import Pause
from duly.store.store import Session, Store

PAGE = 1_000


def status(store: Store, session: Session) -> dict[str, object]:
    """Count what there is, what goes on, and what wants a person."""
    total, enabled, next_due_us, failing = session.tasks.counts()
    counts = session.runs.counts()
    alive = holders_alive(store.address.run_folder)
    known = [row for row in session.holders.living() if row.id in alive]
    return {
        "store": str(store.address),
        "holders_alive": len(alive),
        "tasks": {"total": total, "enabled": enabled, "paused": _paused(session), "broken": _broken(session)},
        "runs": {
            "waiting": counts.get("waiting", 0),
            "running": counts.get("held", 0),
            "parked": counts.get("parked", 0),
        },
        "open_missed": sum(session.missed.open_counts().values()),
        "open_questions": 0,
        "failing": failing,
        "budgets": [],
        "next_due_at": shapes.instant(None if next_due_us is None else from_us(next_due_us)),
        "version": __version__,
        "holders": [shapes.holder(row, state=row.state, running=len(session.runs.held_by(row.id))) for row in known],
        "pauses": [shapes.pause(hold) | {"target": _target(session, hold)} for hold in session.pauses.all()],
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
        "budgets": [],
        "next_due_at": None,
        "version": __version__,
        "holders": [],
        "pauses": [],
    }


def _target(session: Session, hold: Pause) -> str:
    task = session.tasks.by_id(hold.target) if hold.scope == "task" else None
    if task is not None:
        return told(task)
    return session.projects.name(hold.target) or hold.target


def _paused(session: Session) -> int:
    held = {task.id for hold in session.pauses.all() for task in session.tasks.in_scope(hold.scope, hold.target)}
    return len(held)


def _broken(session: Session) -> int:
    """Only reading a definition tells whether it reads, so all are read."""
    from duly.core.names import key_of

    count, after = 0, ("", "")
    while True:
        page = session.tasks.page(after=after, most=PAGE)
        count += sum(task.broken is not None for task in page)
        if len(page) < PAGE:
            return count
        last = page[-1].definition
        after = (key_of(last.project), key_of(last.name))
