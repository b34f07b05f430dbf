"""What a run's story tells: its attempts, and what it waits for now."""

from collections.abc import Iterable
from dataclasses import replace

from duly.core.run import Attempt, Run
from duly.operations import shapes
from duly.store.rows import Written
from duly.store.store import Session


def attempts_of(entries: Iterable[Written]) -> list[Attempt]:
    """Fold the ledger entries of one run into its attempts, in their order."""
    attempts: dict[int, Attempt] = {}
    for written in entries:
        entry = written.entry
        number = entry.attempt
        if number is None:
            continue
        fence = entry.details.get("fence")
        if entry.kind == "claimed" and isinstance(fence, int):
            attempts[number] = Attempt(attempt=number, fence=fence, holder=entry.holder, started_at=entry.at)
            continue
        found = attempts.get(number)
        if found is None:
            continue
        if entry.kind == "taken_over":
            attempts[number] = replace(found, holder=entry.holder)
        elif entry.kind == "returned":
            attempts[number] = replace(found, ended_at=entry.at, reason=entry.reason)
        elif entry.kind == "swept":
            attempts[number] = replace(found, ended_at=entry.at, outcome="abandoned", reason=entry.reason)
        elif entry.kind == "ended" and found.ended_at is None:
            outcome = entry.details.get("outcome")
            attempts[number] = replace(
                found, ended_at=entry.at, outcome=str(outcome) if outcome else None, reason=entry.reason
            )
    return [attempts[number] for number in sorted(attempts)]


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
