"""`verify`: were the promises kept? Read from the rows and the ledger alone, so that any store can be asked."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from duly.core.ledger import Folded, fold
from duly.core.run import Entry, Run
from duly.operations.audit_crowds import Crowds, counters
from duly.operations.audit_events import event_fates
from duly.operations.audit_fates import Finding, fates
from duly.store import Session, Store

PAGE = 5_000
FINDINGS_MOST = 1_000
LATE = frozenset({"fence_lost", "outcome_late"})
"""What the ledger is told by who has lost a run, whatever became of it since."""


def verify(store: Store) -> list[Finding]:
    """Check P1, P2, P4, P6 and the limits of P8 on the whole store, as it stands at one moment; changes nothing."""
    with store.read() as session:
        found: list[Finding] = []
        by_task: dict[str, list[Entry]] = {}
        by_run: dict[str, list[Entry]] = {}
        defined: dict[tuple[str, int], int] = {}
        crowds = Crowds()
        for seq, entry in _entries(session):
            crowds.read(entry)
            if entry.kind == "defined" and entry.task is not None:
                defined[entry.task, int(str(entry.details["version"]))] = seq
            if entry.task is not None:
                by_task.setdefault(entry.task, []).append(entry)
            if entry.run is not None:
                by_run.setdefault(entry.run, []).append(entry)
        found += [*crowds.found, *counters(session)]
        for entries in by_task.values():
            found += _once(entries)
            found += _seats(entries)
        for run in _runs(session):
            found += _told_right(run, by_run.pop(run.id, []))
        found += [
            Finding(promise="P6", task=entries[0].task, run=run, text="the ledger tells of a run that is not there")
            for run, entries in by_run.items()
            if not _came_late(session, entries)
        ]
        for id_ in session.tasks.all_ids():
            task = session.tasks.by_id(id_)
            assert task is not None
            found += fates(session, task, by_task.get(id_, []))
        found += event_fates(session, by_task, defined)
    return found[:FINDINGS_MOST]


def _entries(session: Session) -> Iterator[tuple[int, Entry]]:
    seq = 0
    while page := session.ledger.after(seq, most=PAGE):
        yield from ((one.seq, one.entry) for one in page)
        seq = page[-1].seq


def _runs(session: Session) -> Iterator[Run]:
    before = "~"
    while page := session.runs.listed(before=before, most=PAGE):
        yield from page
        before = page[-1].id


def _came_late(session: Session, entries: Sequence[Entry]) -> bool:
    """Say whether this is all that came of a run after it was pruned: the words of a holder that had lost it."""
    if not all(entry.kind in LATE for entry in entries):
        return False
    task = session.tasks.by_id(entries[0].task or "")
    return task is None or task.pruned_until is not None


def _once(entries: Sequence[Entry]) -> Iterator[Finding]:
    """P1: one occurrence opened at most one run."""
    opened: dict[str, str | None] = {}
    for entry in entries:
        if entry.kind != "opened" or entry.occurrence is None:
            continue
        if entry.occurrence in opened:
            text = f"{entry.occurrence} opened {opened[entry.occurrence]} and {entry.run}"
            yield Finding(promise="P1", task=entry.task, run=entry.run, text=text)
        opened[entry.occurrence] = entry.run


def _seats(entries: Sequence[Entry]) -> Iterator[Finding]:
    """P2: one seat held one live attempt at a time, and every claim had a higher fence than all before it."""
    live: dict[object, str | None] = {}
    highest = 0
    for entry in entries:
        seat = entry.details.get("seat")
        if entry.kind == "claimed":
            if seat in live:
                text = f"claimed seat {seat} while {live[seat]} had it"
                yield Finding(promise="P2", task=entry.task, run=entry.run, text=text)
            fence = entry.details.get("fence")
            if not isinstance(fence, int) or fence <= highest:
                text = f"claimed with fence {fence} after fence {highest}"
                yield Finding(promise="P2", task=entry.task, run=entry.run, text=text)
            highest = max(highest, fence if isinstance(fence, int) else 0)
            live[seat] = entry.run
        elif entry.kind in {"ended", "returned"} or (entry.kind == "swept" and entry.details.get("next") == "retry"):
            live = {taken: run for taken, run in live.items() if run != entry.run}


def _told_right(run: Run, entries: Sequence[Entry]) -> Iterator[Finding]:
    """P4: the row is what its entries tell, and each was written by the attempt that held it."""
    folded = fold(entries)
    for fault in folded.faults:
        yield Finding(promise="P4", task=run.task, run=run.id, text=fault)
    stands = Folded(
        state=run.state,
        outcome=run.outcome,
        reason=run.reason,
        attempt=run.attempt,
        fence=run.fence,
        seat=folded.seat,
        holder=folded.holder if run.state != "held" else run.holder,
    )
    if replace(folded, faults=()) != stands:
        differing = [
            f"{name} is {getattr(stands, name)!r} and the ledger tells {getattr(folded, name)!r}"
            for name in ("state", "outcome", "reason", "attempt", "fence", "holder")
            if getattr(stands, name) != getattr(folded, name)
        ]
        yield Finding(promise="P4", task=run.task, run=run.id, text="; ".join(differing))
