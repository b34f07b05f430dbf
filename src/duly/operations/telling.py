"""What a run waits for now."""

from duly.core.admission import Waits
from duly.core.budgets import key_of_budget
from duly.core.ledger import attempts
from duly.core.limits import short_of, weights_of
from duly.core.names import key_of
from duly.core.retrying import backs_off
from duly.core.run import BY_TIME_OR_EVENT, Run
from duly.core.task import Definition
from duly.operations import shapes
from duly.operations.budgets import lacks
from duly.store.pauses import holding
from duly.store.store import Session


def waiting_for(session: Session, run: Run) -> dict[str, object] | None:
    """Say what a run waits for: its time, its next try, a seat, a label, room in a limit or rate, a slot; its gate.

    One that asked a person something waits for the answer, and then, where it was parked, for what any start does.
    """
    if run.question is not None and run.state in {"held", "parked"} and (asked := session.questions.open_of(run.id)):
        one = asked[0]
        return shapes.waiting_for(what="question", key=one.id, since=one.asked_at, until=one.until)
    if run.state == "held":
        return _at_gate(session, run)
    if run.state == "parked":
        found = _held_up(session, run) or _kept_by(session, run)
        return shapes.waiting_for(what=found.what, key=found.key, since=run.answered_at, until=found.until)
    if run.state != "waiting":
        return None
    if backs_off(run, session.now):
        ended = [one.ended_at for one in attempts(one.entry for one in session.ledger.of_run(run.id))]
        return shapes.waiting_for(what="backoff", key=None, since=ended[-1], until=run.not_before)
    if run.not_before > session.now:
        return shapes.waiting_for(what="delay", key=None, since=run.opened_at, until=run.not_before)
    since = max(run.opened_at, run.not_before)
    found = _kept_by(session, run)
    return shapes.waiting_for(what=found.what, key=found.key, since=since, until=found.until)


def _at_gate(session: Session, run: Run) -> dict[str, object] | None:
    """A claimed run whose gate is being asked; the ledger tells when its work began, by itself or adopted."""
    read = session.versions.read(run.task, run.definition_version)
    if run.anyway or run.answered_at is not None or not isinstance(read, Definition) or read.rules.gate is None:
        return None
    for written in session.ledger.of_run(run.id):
        if written.entry.attempt == run.attempt and written.entry.kind in {"began", "adopted"}:
            return None
    return shapes.waiting_for(what="gate", key=None, since=run.started_at, until=None)


def _held_up(session: Session, run: Run) -> Waits | None:
    """A pause keeps what was answered from going on, and so does its task's switch; a person lifts either."""
    task = session.tasks.by_id(run.task)
    if task is None or run.anyway:
        return None
    paused = holding(session.pauses.all(), task=task.id, project_key=key_of(task.definition.project))
    if paused or (run.opened_by in BY_TIME_OR_EVENT and not task.definition.enabled):
        return Waits(what="pause", until=paused[0].until if paused else None)
    return None


def _kept_by(session: Session, run: Run) -> Waits:
    task = session.tasks.by_id(run.task)
    if task is None:
        return Waits(what="slot")
    live = session.runs.live_of(run.task) if run.state == "waiting" else []
    if len(live) >= task.definition.rules.seats:
        return Waits(what="seat", key=live[0].id)
    # Who drains or is passive starts nothing, whatever its labels.
    labels = {label for row in session.holders.living() if row.state == "alive" and row.slots for label in row.labels}
    lacking = [label for label in task.definition.rules.needs if label not in labels]
    if lacking:
        return Waits(what="label", key=lacking[0])
    weights = weights_of(task.definition)
    short = short_of(weights, session.crowd.by_keys(list(weights)), session.now)
    if short is not None:
        until = short.limit.free_at if short.what == "rate" else None
        return Waits(what=short.what, key=short.limit.key, until=until)
    lack = lacks(session, task, run)
    if lack is not None:
        return Waits(what="budget", key=key_of_budget(lack.standing.budget), until=lack.standing.until)
    return Waits(what="slot")
