"""How many runs of a task may wait: beyond that the oldest make room, each with a reason that names the newest."""

from collections.abc import Sequence

from duly.core import lifecycle
from duly.core.rearming import is_superseded
from duly.core.run import BY_TIME_OR_EVENT, Run, Step
from duly.core.task import Task
from duly.store.holds import hold_failing
from duly.store.store import Session
from duly.store.switches import move


def trim(session: Session, task: Task) -> int:
    """End the oldest waiting runs of a task beyond what may wait by its rule; gives how many."""
    rules = task.definition.rules
    if rules.overlap == "skip":
        return 0
    waiting = [
        run
        for run in session.runs.waiting_of(task.id)
        if run.opened_by in BY_TIME_OR_EVENT and run.attempt == 0 and run.overlap is None
    ]
    may_wait = rules.queue if rules.overlap == "queue" else 1
    # A seat that a backfill has counts as free: what it fills is no reason to drop what time brings.
    taken = [run for run in session.runs.live_of(task.id) if run.opened_by != "backfill"]
    free = max(0, rules.seats - len(taken))
    over = waiting[: max(0, len(waiting) - may_wait - free)]
    if not over:
        return 0
    newest = waiting[-1]
    if rules.overlap == "queue":
        details: dict[str, object] = {"queue": rules.queue, "made_room_for": newest.id}
        return len(
            move(session, [lifecycle.skip(run, reason="queue_full", now=session.now, details=details) for run in over])
        )
    return len(move(session, [superseded(session, run, newest) for run in over]))


def overtake(session: Session, tasks: Sequence[Task], opened: Sequence[Run]) -> int:
    """End the runs of these tasks that wait for a safe retry, where a newer occurrence was opened; gives how many."""
    newest = {run.task: run for run in sorted(opened, key=lambda one: one.due_at)}
    steps = [
        superseded(session, run, newest[task.id])
        for task in tasks
        if task.id in newest and task.definition.action.get("kind") == "agent"
        for run in session.runs.waiting_of(task.id)
        if is_superseded(run, task.scheduled_runs + 1)
    ]
    moved = move(session, steps) if steps else set()
    hold_failing(session, [step for step in steps if step.after.id in moved])
    return len(moved)


def superseded(session: Session, run: Run, by: Run) -> Step:
    """End a waiting run because a newer one takes its place."""
    return lifecycle.skip(run, reason="superseded", now=session.now, details={"by_run": by.id})
