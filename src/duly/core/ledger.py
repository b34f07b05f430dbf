"""Reading the ledger back: the entries of one run tell its state, and its attempts one by one."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from duly.core.offers import GOES_ON
from duly.core.run import Attempt, Entry, Step

PARKED = "parked"
"""In the details of a claim that was given back: its run is parked again, with its answer."""
ATTACHED = "attached"
"""In the details of a `parked` entry: its work lives and waits, and the run stays held."""
NEXT = frozenset({"retry", "resume"})
"""What an attempt that ended may say of what is next: its run goes on, and waits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Folded:
    """A run as its entries tell it; `faults` are steps that no holder was allowed to take."""

    state: str = "none"
    outcome: str | None = None
    reason: str | None = None
    attempt: int = 0
    fence: int = 0
    seat: int | None = None
    holder: str | None = None
    answered: bool = False
    """It is parked, and its question is answered."""
    faults: tuple[str, ...] = ()


def fold(entries: Iterable[Entry]) -> Folded:
    """Fold a run's entries, oldest first, into its state; only the current attempt's holder may change it (P4)."""
    run = Folded()
    for entry in entries:
        run = _after(run, entry)
    return run


def attempts(entries: Iterable[Entry]) -> tuple[Attempt, ...]:
    """List a run's attempts as its entries tell them, oldest first."""
    out: list[Attempt] = []
    for entry in entries:
        if entry.kind == "claimed" and entry.attempt is not None:
            fence = _number(entry.details.get("fence"))
            out.append(Attempt(attempt=entry.attempt, fence=fence, holder=entry.holder, started_at=entry.at))
        elif out and out[-1].ended_at is None and entry.kind == "taken_over":
            out[-1] = replace(out[-1], holder=entry.holder)
        elif out and parks(entry):
            out[-1] = replace(out[-1], ended_at=entry.at)
        elif out and out[-1].ended_at is None and entry.kind in {"ended", "swept", "returned"}:
            # What was returned never began, unless its attempt failed and the run waits for the next.
            outcome = "abandoned" if entry.kind == "swept" else entry.details.get("outcome")
            word = None if outcome is None else str(outcome)
            out[-1] = replace(out[-1], ended_at=entry.at, outcome=word, reason=entry.reason)
    return tuple(out)


def parks(entry: Entry) -> bool:
    """Say whether an entry tells that a run is held no longer because its work has asked something and ended."""
    return entry.kind == "parked" and not entry.details.get(ATTACHED)


def never_began(step: Step) -> bool:
    """Say whether a step gives a claim back: nothing of that attempt began, and it counts for nothing."""
    return any(entry.kind == "returned" and entry.reason == "returned" for entry in step.entries)


def _after(run: Folded, entry: Entry) -> Folded:
    match entry.kind:
        case "opened":
            return _fault(run, "opened twice") if run.state != "none" else replace(run, state="waiting")
        case "claimed":
            return _claimed(run, entry)
        case "taken_over":
            run = _current(run, entry, holder=str(entry.details.get("from")))
            return replace(run, holder=entry.holder)
        case "handed_over" | "began":
            return _current(run, entry, holder=entry.holder)
        case "parked":
            run = _current(run, entry, holder=entry.holder)
            return replace(run, state="parked") if parks(entry) else run
        case "answered":
            return _answered(run)
        case "returned":
            parked = bool(entry.details.get(PARKED))
            run = _current(run, entry, holder=entry.holder)
            run = replace(run, state="parked" if parked else "waiting", answered=parked)
            again = entry.details.get("next") in NEXT
            return replace(run, reason=entry.reason) if again else run
        case "swept":
            run = _current(run, entry, holder=entry.holder)
            again = entry.details.get("next") in NEXT
            return replace(run, state="waiting", reason=entry.reason) if again else run
        case "skipped":
            run = run if run.state == "waiting" else _fault(run, f"skipped while {run.state}")
            return replace(run, state="ended", outcome="skipped", reason=entry.reason)
        case "ended":
            return _ended(run, entry)
        case "accepted" if entry.details.get(GOES_ON):
            run = run if run.state == "ended" else _fault(run, f"gone on with while {run.state}")
            return replace(run, state="waiting", outcome=None, reason=None)
        case _:
            return run


def _claimed(run: Folded, entry: Entry) -> Folded:
    fence = _number(entry.details.get("fence"))
    if run.state == "parked" and not run.answered:
        run = _fault(run, "claimed while its question was open")
    elif run.state not in {"waiting", "parked"}:
        run = _fault(run, f"claimed while {run.state}")
    if entry.attempt is None or entry.attempt <= run.attempt:
        run = _fault(run, f"attempt {entry.attempt} claimed after attempt {run.attempt}")
    if fence <= run.fence:
        run = _fault(run, f"fence {fence} claimed after fence {run.fence}")
    seat = _number(entry.details.get("seat"))
    if run.state == "parked" and seat != run.seat:
        run = _fault(run, f"claimed on seat {seat} while it was parked on seat {run.seat}")
    held = replace(run, state="held", reason=None, attempt=entry.attempt or 0, fence=fence, seat=seat, answered=False)
    return replace(held, holder=entry.holder)


def _answered(run: Folded) -> Folded:
    if run.state == "held":
        return run
    return replace(run, answered=True) if run.state == "parked" else _fault(run, f"answered while {run.state}")


def _ended(run: Folded, entry: Entry) -> Folded:
    if run.state == "held":
        run = _current(run, entry, holder=entry.holder)
    elif run.state not in {"waiting", "parked"} or entry.holder is not None:
        run = _fault(run, f"ended by {entry.holder or 'nobody'} while {run.state}")
    return replace(run, state="ended", answered=False, outcome=str(entry.details.get("outcome")), reason=entry.reason)


def _current(run: Folded, entry: Entry, *, holder: str | None) -> Folded:
    if run.state != "held":
        return _fault(run, f"{entry.kind} while {run.state}")
    if holder != run.holder:
        return _fault(run, f"{entry.kind} by {holder} while {run.holder} held it")
    if _number(entry.details.get("fence")) != run.fence:
        return _fault(run, f"{entry.kind} with fence {entry.details.get('fence')} while it was {run.fence}")
    return run


def _fault(run: Folded, text: str) -> Folded:
    return replace(run, faults=(*run.faults, text))


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0
