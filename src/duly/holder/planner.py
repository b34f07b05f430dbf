"""The planner: opens what time has brought, and lets pauses and offers end whose time has come."""

from datetime import datetime

from duly.clock import from_us, to_us
from duly.core.run import Run
from duly.core.task import Task
from duly.store import Session
from duly.store.offers import expire
from duly.store.plans import arm, write_plans
from duly.store.switches import attempt, is_armed, lift_over

TASKS_A_TURN = 100
"""Tasks that one turn plans; the rest is planned by the next, so that the lock is never held for long."""


class Planner:
    """Plans the tasks whose next start has come, the earliest first."""

    def __init__(self, holder: str) -> None:
        self._holder = holder

    def step(self, session: Session) -> list[Run]:
        """Plan up to TASKS_A_TURN due tasks in the caller's transaction; gives the runs that were opened."""
        return self.open(session)[0]

    def open(self, session: Session) -> tuple[list[Run], list[Task]]:
        """Do as `step` does; gives also the tasks that were planned, as they were read."""
        lift_over(session)
        expire(session)
        due = session.tasks.due(session.now, TASKS_A_TURN)
        return (write_plans(session, due, holder=self._holder) if due else []), due

    def take_back(self, session: Session) -> None:
        """Take back tasks that were put aside and can be planned again, as after an upgrade; they owe nothing."""
        pauses = session.pauses.all()
        for task in session.tasks.troubled():
            if task.broken is not None:
                continue
            armed = attempt(session, task, lambda task=task: arm(task, task.planned_until))  # type: ignore[misc]
            if armed is not None:
                starts = is_armed(task, pauses) and not task.done
                session.tasks.set_trouble(task.id, None, armed.next_due_at if starts else None)


def soonest(session: Session) -> datetime | None:
    """The next instant at which something is due, ends (a pause, an offer), may start, or has room in a rate again."""
    instants = [
        us
        for us in (
            session.tasks.soonest_us(),
            session.pauses.soonest_us(),
            session.missed.soonest_us(),
            session.runs.soonest_not_before_us(session.now),
            session.crowd.soonest_free_us(session.now),
        )
        if us is not None
    ]
    return from_us(min(instants)) if instants else None


def is_due(session: Session) -> bool:
    """Something waits for a turn of the planner now."""
    at = session.tasks.soonest_us()
    return at is not None and at <= to_us(session.now)
