"""A run's life, one small function an edge: each says what the row shall be and what the ledger is told.

waiting ── claim ──▶ held ── settle ──▶ ended
   │ ▲                │ └── hand over, take over: still held
   │ └── give back, go on after an interruption (`interrupting.py`), retry after a failure (`retrying.py`)
   └── skip, cancel ──▶ ended
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Literal

from duly.core import spoken
from duly.core.admission import NOTHING, rank_of
from duly.core.edges import ERROR_MOST, entry_of, released, seconds
from duly.core.fates import Opening
from duly.core.ledger import PARKED, attempts
from duly.core.names import key_of
from duly.core.occurrences import at_key
from duly.core.reasons import ENDED
from duly.core.run import Entry, Run, RunOutcome, Step
from duly.core.task import Task
from duly.core.values import changed

DEATHS_MOST = 5
"""How often a run is given back because its holder died before its work began; at the last of them it ends."""


def opened(task: Task, opening: Opening, *, id_: str, now: datetime, holder: str | None) -> tuple[Run, Entry]:
    """Open a run for an occurrence that time brought."""
    run = Run(
        id=id_,
        task=task.id,
        occurrence=at_key(opening.due_at),
        due_at=opening.due_at,
        opened_at=now,
        opened_by=opening.opened_by,
        not_before=opening.start_at,
        spread=opening.start_at - opening.due_at,
        overlap="queue" if opening.queues else None,
        definition_version=task.definition_version,
        project=key_of(task.definition.project),
        rank=rank_of(opening.opened_by, task.definition.rules),
    )
    details: dict[str, object] = {"late_by_s": seconds(opening.late_by)}
    return run, entry_of(run, "opened", now, reason=opening.opened_by, holder=holder, details=details)


def opened_by_hand(run: Run) -> Entry:
    """Tell of a run that a person asked for."""
    return entry_of(run, "opened", run.opened_at, reason=run.opened_by, by=run.opened_by_whom)


def claimed(run: Run, *, now: datetime, late_by: timedelta, crowd: dict[str, object]) -> Entry:
    """Tell of a claim that was won; `run` is the row as it stands after it."""
    details = {"fence": run.fence, "seat": run.seat, "late_by_s": seconds(late_by), **crowd}
    return entry_of(run, "claimed", now, holder=run.holder, details=details)


def settle(
    run: Run,
    outcome: RunOutcome,
    *,
    now: datetime,
    reason: str | None = None,
    error: str | None = None,
    exit_code: int | None = None,
    signal: int | None = None,
    log_bytes: int = 0,
    log_cut: int = 0,
    worked_until: datetime | None = None,
    details: dict[str, object] | None = None,
    agent: Mapping[str, object] = NOTHING,
) -> Step:
    """End a held run with its attempt's outcome; the seat becomes free. It worked until now, unless that is known."""
    assert run.state == "held"
    after = changed(
        run,
        released(run, now, worked_until=worked_until),
        state="ended",
        # Who ended it, and by which claim, stays on the row: a lost answer is read back by the token.
        holder=run.holder,
        claim_token=run.claim_token,
        outcome=outcome,
        reason=reason,
        tried=None,
        tried_reason=None,
        error=error[:ERROR_MOST] if error else None,
        exit_code=exit_code,
        signal=signal,
        ended_at=now,
        log_bytes=log_bytes,
        log_cut=log_cut,
        agent=spoken.after_attempt(run, agent),
    )
    told = {"outcome": outcome, "fence": run.fence, **(details or {})}
    told |= {} if exit_code is None else {"exit_code": exit_code}
    entry = entry_of(run, "ended", now, reason=reason, holder=run.holder, details=told)
    return Step(before=run, after=after, entries=(entry,))


def not_confirmed(run: Run, *, now: datetime, survivors: str) -> Step:
    """End a run whose work could not be proven gone; nothing tries it again by itself."""
    return settle(run, "abandoned", now=now, reason="end_not_confirmed", error=survivors)


def give_back(run: Run, *, now: datetime, why: str, died: bool = False, deaths: int = 0) -> Step:
    """Return a claim that never began, free of charge: the attempt keeps its number, the next gets a new one.

    A run that goes on with an answer is parked again and keeps its seat. With a wish to cancel on record it ends so
    instead; so does one whose holder `died` where so many had died over it before (`deaths`) that it may kill them.
    """
    assert run.state == "held"
    if run.cancel_asked_at is not None:
        return settle(run, "cancelled", now=now, reason=run.cancel_why, error="it was cancelled before it began")
    if died and deaths + 1 >= DEATHS_MOST:
        told = f"{deaths + 1} processes died one after another before its work began: it may be what kills them"
        return settle(run, "abandoned", now=now, reason="holder_died", error=told, details={"deaths": deaths + 1})
    after = changed(run, released(run, now), state="waiting", worked_for=run.worked_for, started_at=None)
    details: dict[str, object] = {"why": why, "fence": run.fence} | ({"died": True} if died else {})
    if run.answered_at is not None:
        after = changed(after, state="parked", seat=run.seat, answered_at=run.answered_at)
        details |= {PARKED: True}
    entry = entry_of(run, "returned", now, reason="returned", holder=run.holder, details=details)
    return Step(before=run, after=after, entries=(entry,))


def deaths_of(entries: Iterable[Entry]) -> int:
    """Count how often a run was given back because its holder had died, by its entries."""
    return sum(entry.kind == "returned" and entry.details.get("died") is True for entry in entries)


def take_over(run: Run, *, holder: str, token: str, lease_end_us: int, boot: str, now: datetime, why: str) -> Step:
    """Hold a run that a dead or silent holder held: same fence, new lease. It is no start."""
    assert run.state == "held"
    after = changed(
        run,
        version=run.version + 1,
        holder=holder,
        claim_token=token,
        lease_end_us=lease_end_us,
        lease_boot=boot,
        handed_to=None,
    )
    entry = entry_of(
        run, "taken_over", now, holder=holder, details={"from": run.holder, "why": why, "fence": run.fence}
    )
    return Step(before=run, after=after, entries=(entry,))


def adopted(run: Run, *, now: datetime, holder: str) -> Entry:
    """Tell that living work goes on under another holder."""
    return entry_of(run, "adopted", now, holder=holder, details={"fence": run.fence})


def hand_over(run: Run, *, place: str, lease_end_us: int, now: datetime) -> Step:
    """Leave living work to the next holder at this place; others may take it after the end of the lease."""
    assert run.state == "held"
    after = changed(run, version=run.version + 1, handed_to=place, lease_end_us=lease_end_us)
    entry = entry_of(run, "handed_over", now, holder=run.holder, details={"fence": run.fence})
    return Step(before=run, after=after, entries=(entry,))


def skip(run: Run, *, reason: str, now: datetime, details: dict[str, object], by: str | None = None) -> Step:
    """End a waiting run without a start; one that had an attempt ends with that one's outcome, and this reason."""
    assert run.state == "waiting"
    tried = last_outcome(run)
    if tried is not None:
        outcome, why = tried
        why = reason if reason in ENDED else why
        after = changed(
            run,
            version=run.version + 1,
            state="ended",
            outcome=outcome,
            reason=why,
            tried=None,
            tried_reason=None,
            ended_at=now,
        )
        told = {**details, "outcome": outcome, "refused": reason}
        return Step(before=run, after=after, entries=(entry_of(run, "ended", now, reason=why, by=by, details=told),))
    after = changed(run, version=run.version + 1, state="ended", outcome="skipped", reason=reason, ended_at=now)
    return Step(
        before=run, after=after, entries=(entry_of(run, "skipped", now, reason=reason, by=by, details=details),)
    )


def last_outcome(run: Run) -> tuple[RunOutcome, str] | None:
    """Give the outcome and the reason of a waiting run's last attempt that ended; None where it had none."""
    if run.tried is not None:
        return run.tried, run.tried_reason or run.reason or "preflight"
    # Rows of the first revision keep neither.
    return ("abandoned", run.reason or "holder_died") if run.interruptions else None


def cancel_waiting(run: Run, *, by: str, now: datetime) -> Step:
    """End a waiting run because a person said so."""
    assert run.state == "waiting"
    after = changed(
        run,
        version=run.version + 1,
        state="ended",
        outcome="cancelled",
        reason="cancelled_by_hand",
        ended_at=now,
        cancel_asked_at=now,
        cancel_asked_by=by,
    )
    asked = entry_of(run, "cancel_asked", now, reason="cancelled_by_hand", by=by)
    ended = entry_of(run, "ended", now, reason="cancelled_by_hand", by=by, details={"outcome": "cancelled"})
    return Step(before=run, after=after, entries=(asked, ended))


def ask_cancel(
    run: Run, *, by: str, now: datetime, why: str = "cancelled_by_hand", how: Literal["term", "kill"] = "term"
) -> Step:
    """Put the wish to end a held run on record, for its holder to obey: by a person, or for a newer run."""
    assert run.state == "held"
    after = changed(
        run, version=run.version + 1, cancel_asked_at=now, cancel_asked_by=by, cancel_why=why, cancel_how=how
    )
    return Step(before=run, after=after, entries=(entry_of(run, "cancel_asked", now, reason=why, by=by),))


def stopping(run: Run, *, now: datetime) -> Step:
    """Note since when the work of a held run has been asked to end."""
    return Step(before=run, after=changed(run, version=run.version + 1, stopping_since=now), entries=())


def fence_lost(run: str, *, task: str | None, attempt: int, fence: int, holder: str, now: datetime) -> Entry:
    """Tell that a holder came back after its run had been taken away; it changed nothing."""
    return Entry(
        kind="fence_lost",
        at=now,
        task=task,
        run=run,
        attempt=attempt,
        reason="fence_lost",
        holder=holder,
        details={"fence": fence},
    )


def outcome_late(
    run: Run, entries: Sequence[Entry], *, fence: int, outcome: RunOutcome, now: datetime, details: dict[str, object]
) -> Entry | None:
    """Tell of an outcome that was found when its attempt had been given up; it changes nothing, and is told once.

    None where the attempt's end is known to be this one, or is nothing that it could contradict.
    """
    attempt = next((one for one in attempts(entries) if one.fence == fence), None)
    if attempt is None or attempt.outcome != "abandoned" or outcome in {"abandoned", "cancelled"}:
        return None
    if any(entry.kind == "outcome_late" and entry.attempt == attempt.attempt for entry in entries):
        return None
    return Entry(
        kind="outcome_late",
        at=now,
        task=run.task,
        occurrence=run.occurrence,
        run=run.id,
        attempt=attempt.attempt,
        holder=attempt.holder,
        details={"fence": fence, "outcome": outcome, **details},
    )
