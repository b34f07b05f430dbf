"""What a run waits for now."""

from duly.core.run import Run
from duly.operations import shapes
from duly.store.store import Session


def waiting_for(session: Session, run: Run) -> dict[str, object] | None:
    """Say what a waiting run waits for: its time, its task's seat, or a free slot."""
    if run.state != "waiting":
        return None
    if run.not_before > session.now:
        return shapes.waiting_for(what="delay", key=None, since=run.opened_at, until=run.not_before)
    since = max(run.opened_at, run.not_before)
    for other in session.runs.live_of(run.task):
        return shapes.waiting_for(what="seat", key=other.id, since=since, until=None)
    return shapes.waiting_for(what="slot", key=None, since=since, until=None)
