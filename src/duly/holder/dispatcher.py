"""The dispatcher: claims as many waiting runs as there are free slots, and ends those that will not start."""

import sqlite3
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta

from duly.chance import token_bytes
from duly.core import lifecycle
from duly.core.admission import Admitted, Skipped, Waits, admit
from duly.core.names import key_of
from duly.core.run import BY_TIME_OR_EVENT, Entry, Run, Step
from duly.core.task import Broken, Definition, Task
from duly.store import Session
from duly.store.pauses import holding
from duly.store.rows import Pause
from duly.store.runs import Claim
from duly.store.switches import move

LOOKED_AT_MOST = 4096
"""Waiting runs that one turn looks at when those at the front may not start."""
BLOCKED_MOST = 200
"""Runs ended in one turn because their task's seat was taken."""
SEAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Won:
    """A claim that was won: the run as it stands, and what it will be performed by."""

    run: Run
    task: Task
    definition: Definition


class Dispatcher:
    """Asks admission about waiting runs, in the caller's transaction, and claims what it admits."""

    def __init__(self, holder: str, boot: str, lease_us: int, kinds: Callable[[], Collection[str]]) -> None:
        self._holder = holder
        self._boot = boot
        self._lease_us = lease_us
        self._kinds = kinds
        self._known: frozenset[str] = frozenset()
        self.lost = 0
        """Claims that another holder won; quiet, and counted."""

    def step(self, session: Session, free: int) -> tuple[list[Won], int]:
        """Claim up to `free` runs; gives what was won, and how many runs were ended without a start."""
        ended = self._overlap(session)
        if free <= 0:
            return [], ended
        view = _View(session)
        chosen: dict[str, Won] = {}
        skips: list[Step] = []
        looked = 0
        most = free
        while len(chosen) < free and looked < LOOKED_AT_MOST:
            waiting = session.runs.claimable(session.now, looked + most)
            fresh = waiting[looked:]
            view.read(fresh)
            for run in fresh:
                if len(chosen) == free:
                    break
                self._judge(view, run, chosen, skips)
            looked += len(fresh)
            if len(fresh) < most:
                break
            most = looked
        ended += len(move(session, skips))
        return self._claim(session, list(chosen.values())), ended

    def _judge(self, view: "_View", run: Run, chosen: dict[str, Won], skips: list[Step]) -> None:
        if run.task in chosen:
            return  # one seat: the next turn asks what becomes of the second
        task = view.task(run.task)
        definition = view.definition(run, task)
        rules = definition.rules if definition else None
        kinds = self._kinds_for(view, task)
        verdict = admit(run, task, rules, paused=view.is_paused(task), kinds=kinds, now=view.session.now)
        match verdict:
            case Admitted():
                assert definition is not None
                chosen[task.id] = Won(run=run, task=task, definition=definition)
            case Skipped():
                details = dict(verdict.details)
                skips.append(lifecycle.skip(run, reason=verdict.reason, now=view.session.now, details=details))
            case Waits():
                return

    def _kinds_for(self, view: "_View", task: Task) -> Collection[str]:
        """What can be performed here; looked up anew, once a turn, where this task's kind is not known yet."""
        if not view.kinds_asked and str(task.definition.action.get("kind")) not in self._known:
            view.kinds_asked = True
            self._known = frozenset(self._kinds())
        return self._known

    def _claim(self, session: Session, chosen: list[Won]) -> list[Won]:
        if not chosen:
            return []
        try:
            with session.line.savepoint():
                won = self._write(session, chosen)
        except sqlite3.IntegrityError:
            # A seat was taken under us: the batch is undone and each claim is tried by itself.
            won = []
            for one in chosen:
                try:
                    with session.line.savepoint():
                        won += self._write(session, [one])
                except sqlite3.IntegrityError:
                    continue
        self.lost += len(chosen) - len(won)
        session.ledger.add([self._told(one, session) for one in won])
        return won

    def _write(self, session: Session, chosen: list[Won]) -> list[Won]:
        session.tasks.raise_fences(Counter(one.task.id for one in chosen).items())
        claims = [
            Claim(
                run=one.run,
                holder=self._holder,
                token=token_bytes(12).hex(),
                lease_end_us=session.lease_us + self._lease_us,
                lease_boot=self._boot,
                seat=SEAT,
                definition_version=version_for(one.run, one.task),
                started_at=session.now,
            )
            for one in chosen
        ]
        by_run = {one.run.id: one for one in chosen}
        return [
            Won(run=run, task=by_run[run.id].task, definition=by_run[run.id].definition)
            for run in session.runs.claim(claims)
        ]

    def _told(self, won: Won, session: Session) -> Entry:
        late_by = max(timedelta(0), session.now - won.run.due_at)
        return lifecycle.claimed(won.run, now=session.now, late_by=late_by, crowd={})

    def _overlap(self, session: Session) -> int:
        """End waiting runs whose seat is taken, where the task says skip."""
        steps = []
        for one in session.runs.blocked(BLOCKED_MOST):
            details: dict[str, object] = {"run": one.by_run, "holder": one.by_holder, "since_us": one.since_us}
            steps.append(lifecycle.skip(one.run, reason="already_running", now=session.now, details=details))
        return len(move(session, steps)) if steps else 0


def trim_queue(session: Session, task: Task) -> int:
    """End the oldest waiting runs beyond what the task's queue holds; gives how many."""
    waiting = [run for run in session.runs.waiting_of(task.id) if run.opened_by in BY_TIME_OR_EVENT]
    room = task.definition.rules.queue + (0 if session.runs.live_of(task.id) else 1)
    over = waiting[: max(0, len(waiting) - room)]
    if not over:
        return 0
    newest = waiting[-1]
    details: dict[str, object] = {"queue": task.definition.rules.queue, "made_room_for": newest.id}
    return len(
        move(session, [lifecycle.skip(run, reason="queue_full", now=session.now, details=details) for run in over])
    )


def version_for(run: Run, task: Task) -> int:
    """The definition a run is performed by: the task's at its first attempt, the same one ever after."""
    return task.definition_version if run.attempt == 0 else run.definition_version


class _View:
    """What one turn reads at most once: tasks, their definitions, the pauses."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.kinds_asked = False
        self._tasks: dict[str, Task] = {}
        self._pauses: list[Pause] | None = None

    def read(self, runs: Sequence[Run]) -> None:
        """Read the tasks of these runs, all at once."""
        self._tasks |= self.session.tasks.by_ids({run.task for run in runs} - self._tasks.keys())

    def task(self, id_: str) -> Task:
        return self._tasks[id_]

    def is_paused(self, task: Task) -> bool:
        if self._pauses is None:
            self._pauses = self.session.pauses.all()
        return bool(self._pauses and holding(self._pauses, task=task.id, project_key=key_of(task.definition.project)))

    def definition(self, run: Run, task: Task) -> Definition | None:
        version = version_for(run, task)
        if version == task.definition_version:
            return None if task.broken else task.definition
        read = self.session.versions.read(task.id, version)
        return None if isinstance(read, Broken) else read
