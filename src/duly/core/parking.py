"""Parked runs: no process, no lease, no slot, no place in limits, but their seat; and the ways out.

held ── park ──▶ parked ── answered ──▶ parked, ready ── claim ──▶ held, by the same seat
                   └── deadline (`then: fail`), cancel ──▶ ended

The time for which a person is asked is no idle time: `answer_within` bounds it, and what is late is counted beside it.
"""

from collections.abc import Mapping
from datetime import datetime

from duly.core import lifecycle, spoken
from duly.core.admission import NOTHING
from duly.core.edges import ERROR_MOST, entry_of, released
from duly.core.ledger import ATTACHED
from duly.core.questions import Question, told
from duly.core.run import Entry, Run, RunOutcome, Step
from duly.core.values import changed

WAITS_FOR_ITS_TASK = frozenset({"paused", "disabled"})
"""What keeps an answered run from going on and does not end it: it had begun, as what is running had."""

CANCELLED = "it was cancelled as it asked a question"
NOTHING_TRIED: Mapping[str, object] = dict.fromkeys(("reason", "tried", "tried_reason", "error", "exit_code", "signal"))
"""What the row tells no more of the attempts before."""


def park(
    run: Run,
    question: Question,
    *,
    now: datetime,
    agent: Mapping[str, object] = NOTHING,
    log_bytes: int = 0,
    log_cut: int = 0,
) -> Step:
    """Let a held run wait for the answer to a question; its work has ended, and `agent` tells of its session.

    With a wish to cancel on record it ends so instead.
    """
    assert run.state == "held"
    if run.cancel_asked_at is not None:
        asked = lifecycle.settle(run, "cancelled", now=now, reason=run.cancel_why, error=CANCELLED, agent=agent)
        return Step(before=run, after=changed(asked.after, log_bytes=log_bytes, log_cut=log_cut), entries=asked.entries)
    after = changed(
        run,
        {**NOTHING_TRIED, **released(run, now), "seat": run.seat},
        state="parked",
        question=question.id,
        agent=spoken.going_on(run, agent, why=spoken.ANSWERED) or spoken.after_attempt(run, agent),
        log_bytes=log_bytes,
        log_cut=log_cut,
    )
    return Step(before=run, after=after, entries=(_asks(run, question, now),))


def ask(run: Run, question: Question, *, now: datetime) -> Step:
    """Let the work of a held run wait for an answer; it lives, and the run stays held."""
    assert run.state == "held"
    after = changed(run, version=run.version + 1, question=question.id)
    return Step(before=run, after=after, entries=(_asks(run, question, now),))


def ready(run: Run, question: Question, *, now: datetime) -> Step:
    """Let a parked run whose question is answered be claimed; its lateness does not count the wait for that."""
    assert run.state == "parked"
    assert run.question == question.id
    after = changed(
        run, version=run.version + 1, answered_at=now, worked_for=run.worked_for + (now - question.asked_at)
    )
    return Step(before=run, after=after, entries=())


def unanswered(run: Run, question: Question, *, now: datetime) -> Step:
    """End a parked run whose question nobody answered in time."""
    error = f"nobody answered within its time: {question.text}"
    details = {"question": question.id}
    return _ended(run, "failed", reason="question_unanswered", now=now, error=error, details=details)


def cancelled(run: Run, *, by: str, now: datetime, why: str = "cancelled_by_hand") -> Step:
    """End a parked run because a person said so, or for a newer run (`overlap`); nothing of it lives."""
    step = _ended(run, "cancelled", reason=why, now=now, by=by, details={})
    asked = entry_of(run, "cancel_asked", now, reason=why, by=by)
    after = changed(step.after, cancel_asked_at=now, cancel_asked_by=by, cancel_why=why)
    return Step(before=run, after=after, entries=(asked, *step.entries))


def not_admitted(run: Run, reason: str, *, now: datetime, details: Mapping[str, object]) -> Step | None:
    """End an answered run that may not go on any more; None where it waits until it may."""
    if reason in WAITS_FOR_ITS_TASK:
        return None
    error = "its question was answered, and then it was too late to go on"
    return _ended(run, "abandoned", reason="stale", now=now, error=error, details={**details, "refused": reason})


def _asks(run: Run, question: Question, now: datetime) -> Entry:
    details = {"fence": run.fence, **told(question), ATTACHED: question.attached}
    return changed(entry_of(run, "parked", now, holder=run.holder, details=details), until_at=question.until)


def _ended(
    run: Run,
    outcome: RunOutcome,
    *,
    reason: str,
    now: datetime,
    details: Mapping[str, object],
    by: str | None = None,
    error: str | None = None,
) -> Step:
    assert run.state == "parked"
    after = changed(
        run,
        version=run.version + 1,
        state="ended",
        seat=None,
        outcome=outcome,
        reason=reason,
        error=error[:ERROR_MOST] if error else None,
        answered_at=None,
        ended_at=now,
    )
    entry: Entry = entry_of(run, "ended", now, reason=reason, by=by, details={"outcome": outcome, **details})
    return Step(before=run, after=after, entries=(entry,))
