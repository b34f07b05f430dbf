"""The pace of catching up: what was missed must not ask a provider for everything in one second.

Work that needs nothing but this machine starts at once (commands, functions). All else (agents, webhooks, whatever is
installed beside us and says nothing of it) waits for its runners to be ready where a holder found none other alive, and
starts one after another within a project.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

from duly.clock import from_us
from duly.core.run import Run
from duly.core.task import Task
from duly.store import Session
from duly.store.plans import Pace


class Pacing:
    """Gives runs that catch up their turns."""

    def __init__(self, at_once: Callable[[str], bool], delay: timedelta, spacing: timedelta) -> None:
        self._at_once = at_once
        self._delay = delay
        self._spacing = spacing
        self._ready_at: datetime | None = None

    def begins_alone(self, now: datetime) -> None:
        """Take note that the holder begins now and that nobody else lives, so that runners may have to get ready."""
        self._ready_at = now + self._delay

    def pace(self, session: Session) -> Pace:
        """Give the pace for one turn of planning."""
        last: dict[str, datetime | None] = {}

        def paced(task: Task, run: Run) -> Run:
            if self._at_once(str(task.definition.action.get("kind"))):
                return run
            if run.project not in last:
                us = session.waiting.paced_until_us(run.project, session.now)
                last[run.project] = None if us is None else from_us(us)
            before = last[run.project]
            turn = max(session.now, run.not_before, self._ready_at or session.now)
            if before is not None:
                turn = max(turn, before + self._spacing)
            last[run.project] = turn
            return replace(run, not_before=turn)

        return paced
