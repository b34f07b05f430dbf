"""What a run waits for now."""

from duly.core.admission import Waits
from duly.core.limits import short_of, weights_of
from duly.core.run import Run
from duly.operations import shapes
from duly.store.store import Session


def waiting_for(session: Session, run: Run) -> dict[str, object] | None:
    """Say what a waiting run waits for: its time, a seat, a label, room in a limit or its rate, or a free slot."""
    if run.state != "waiting":
        return None
    if run.not_before > session.now:
        what = "delay" if run.tried is None else "backoff"
        return shapes.waiting_for(what=what, key=None, since=run.opened_at, until=run.not_before)
    since = max(run.opened_at, run.not_before)
    found = _kept_by(session, run)
    return shapes.waiting_for(what=found.what, key=found.key, since=since, until=found.until)


def _kept_by(session: Session, run: Run) -> Waits:
    task = session.tasks.by_id(run.task)
    if task is None:
        return Waits(what="slot")
    live = session.runs.live_of(run.task)
    if len(live) >= task.definition.rules.seats:
        return Waits(what="seat", key=live[0].id)
    labels = {holder.id: holder.labels for holder in session.holders.living()}
    lacking = [label for label in task.definition.rules.needs if not any(label in mine for mine in labels.values())]
    if lacking:
        return Waits(what="label", key=lacking[0])
    weights = weights_of(task.definition)
    short = short_of(weights, session.crowd.by_keys(list(weights)), session.now)
    if short is not None:
        until = short.limit.free_at if short.what == "rate" else None
        return Waits(what=short.what, key=short.limit.key, until=until)
    return Waits(what="slot")
