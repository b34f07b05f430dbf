"""Holding tasks: what begins with a pause, whether a person asked for it or a task's own failures."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime

from duly import ids
from duly.core.run import Entry, Step
from duly.store.endings import failed
from duly.store.rows import Pause
from duly.store.store import Session
from duly.store.switches import end_waiting, switch_off, write

DULY = "duly"
"""Who holds a task that has failed too often in a row."""


def hold(
    session: Session,
    scope: str,
    target: str,
    *,
    until: datetime | None = None,
    note: str | None = None,
    by: str,
    details: Mapping[str, object] | None = None,
) -> tuple[Pause, int]:
    """Hold a task, a project or the store from now on: nothing opens by time, what waits ends, live runs go on.

    A hold of the same scope and target is replaced, and keeps its beginning. Gives the hold and how many tasks it has.
    """
    held = [one for one in session.pauses.all() if (one.scope, one.target) == (scope, target)]
    for one in held:
        session.pauses.delete(one.id)
    since = held[0].since if held else session.now
    made = Pause(id=ids.new("pau"), scope=scope, target=target, since=since, until=until, note=note, by=by)
    touched = session.tasks.in_scope(scope, target)
    for task in touched:
        if task.next_start_at is not None:
            off = switch_off(session, task, reason="paused", by=by)
            write(session, off, off)  # planning up to now may have written the task itself
        else:
            end_waiting(session, task, reason="paused", by=by, by_hand_too=False)
    session.pauses.insert(made)
    told = {"scope": scope, "target": target, "note": note, "pause": made.id, **(details or {})}
    entry = Entry(kind="paused", at=session.now, by=by, until_at=until, details=told)
    session.ledger.add([replace(entry, task=target if scope == "task" else None)])
    return made, len(touched)


def hold_failing(session: Session, steps: Iterable[Step]) -> int:
    """Hold the tasks whose runs these steps, already counted, ended as the last failure that `pause_after` allows.

    In the caller's transaction, so that nothing of the task starts in between. Gives how many tasks.
    """
    ended = failed(steps)
    if not ended:
        return 0
    count = 0
    for task in session.tasks.by_ids(ended).values():
        most = task.definition.rules.pause_after
        over = most is not None and task.failures_in_a_row >= most
        if not over or task.removed_at is not None or task.done:
            continue
        if any((one.scope, one.target) == ("task", task.id) for one in session.pauses.all()):
            continue
        failures = task.failures_in_a_row
        hold(
            session,
            "task",
            task.id,
            note=f"{failures} failure{'s' if failures > 1 else ''} in a row",
            by=DULY,
            details={"failures_in_a_row": failures, "pause_after": most, "run": ended[task.id].id},
        )
        count += 1
    return count
