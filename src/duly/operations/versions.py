"""Whether a task is still at the version at which somebody saw it, and if not, who changed it since."""

from datetime import timedelta

from duly.core.spans import write_instant
from duly.core.task import Task
from duly.errors import Refused
from duly.operations.lookup import told
from duly.store import Session
from duly.store.moments import Moments

CHANGES_LOOKED_AT = 20
FAR = timedelta(days=3650)


def check_version(session: Session, task: Task, asked: int | None) -> None:
    """Refuse `version_conflict` when a task is not at the version that was asked for, and say who changed it."""
    if asked is None or asked == task.version:
        return
    # By their numbers: a clock that was set back tells nothing of who was last.
    found = Moments(session.line).switches(task.id, session.now + FAR, CHANGES_LOOKED_AT)
    last = max(found, key=lambda one: one.seq).entry if found else None
    details: dict[str, object] = {"task": task.id, "asked": asked, "version": task.version}
    who = ""
    if last is not None:
        details |= {"by": last.by, "at": write_instant(last.at), "kind": last.kind}
        who = f": {last.kind} by {last.by} at {write_instant(last.at.replace(microsecond=0))}"
    raise Refused(
        "version_conflict",
        f"{told(task)} is at version {task.version}, not {asked}{who}",
        details=details,
        hint=f"duly show {told(task)}",
    )
