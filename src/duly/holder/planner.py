"""The planner: opens what time has brought, and lets pauses and offers end whose time has come."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from duly import zones
from duly.core.run import Run
from duly.core.task import Task
from duly.holder.pacing import Pacing
from duly.store import Session
from duly.store.answering import look_over
from duly.store.glances import Glance, glance, has_come, soonest
from duly.store.offers import expire
from duly.store.plans import arm, write_plans
from duly.store.removing import remove_done
from duly.store.rezoning import take_over, take_over_others
from duly.store.rows import HolderRow
from duly.store.switches import attempt, is_armed, lift_over

DEFERRED_LOOK = timedelta(seconds=1)
"""How often a holder that leaves planning to another asks whether that one lives."""
TASKS_A_TURN = 128
"""Tasks that one turn plans; the rest is planned by the next, so that the lock is never held for long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """What one turn of planning did: the runs it opened, for which tasks, and how many tasks have new zone data."""

    runs: Sequence[Run] = ()
    tasks: Sequence[Task] = ()
    """All that were due, as they were read; of one that was planned nothing but its cursor has changed."""
    taken_over: int = 0
    looked_over: int = 0
    """Questions that were brought to their end because their time was over."""
    ready: bool = False
    """Parked runs have their answer."""


class Planner:
    """Plans the tasks whose next instant has come, the earliest first; leaves it to holders with newer zone data."""

    def __init__(
        self,
        holder: str,
        *,
        lives: Callable[[Session, HolderRow], bool] = lambda _session, _row: True,
        pacing: Pacing | None = None,
    ) -> None:
        self._holder = holder
        self._lives = lives
        self._pacing = pacing

    def step(self, session: Session) -> list[Run]:
        """Plan up to TASKS_A_TURN due tasks in the caller's transaction; gives the runs that were opened."""
        return list(self.open(session).runs)

    def open(self, session: Session) -> Planned:
        """Do as `step` does; gives all that was done."""
        seen = self.glance(session)
        looked_over = look_over(session) if has_come(seen, seen.question_us) else 0
        if looked_over:
            seen = self.glance(session)
        if self._defers(session, seen):
            return Planned(looked_over=looked_over, ready=seen.ready)
        if has_come(seen, seen.pause_us) or has_come(seen, seen.offer_us):
            lift_over(session)
            expire(session)
            seen = self.glance(session)  # what was held goes on, and what waited for an answer may leave
        if seen.leaving:
            remove_done(session)
        taken_over = take_over_others(session, TASKS_A_TURN) if seen.other_zone_data else 0
        due = session.tasks.due(session.now, TASKS_A_TURN) if has_come(seen, seen.due_us) or taken_over else []
        pace = None if self._pacing is None else self._pacing.pace(session)
        due = list(take_over(session, due).values())
        runs = write_plans(session, due, holder=self._holder, pace=pace) if due else []
        return Planned(runs=runs, tasks=due, taken_over=taken_over, looked_over=looked_over, ready=seen.ready)

    def glance(self, session: Session) -> Glance:
        """See what there is to do at the session's moment."""
        return glance(session, zones.zone_data_version())

    def is_due(self, session: Session, seen: Glance) -> bool:
        """Something waits for a turn of this planner now."""
        due = has_come(seen, seen.due_us) or seen.other_zone_data
        return due and not self._defers(session, seen)

    def soonest(self, session: Session, seen: Glance | None = None) -> datetime | None:
        """When this planner's holder has something to do by time alone; `seen` is what was asked of the session."""
        seen = seen or self.glance(session)
        return session.now + DEFERRED_LOOK if self._defers(session, seen) else soonest(seen)

    def _defers(self, session: Session, seen: Glance) -> bool:
        """Another holder lives that has newer zone data: it plans, and this one does not."""
        if not seen.newer_zone_data:
            return False
        newer = session.holders.with_newer_zone_data(zones.zone_data_version())
        return any(self._lives(session, row) for row in newer)

    def begin(self, session: Session) -> None:
        """Look who else lives at the begin of the holder's life, and take back what was put aside."""
        others = [row for row in session.holders.living() if row.id != self._holder]
        if self._pacing is not None and not any(self._lives(session, row) for row in others):
            self._pacing.begins_alone(session.now)
        self.take_back(session)

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
