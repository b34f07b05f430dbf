"""Safe retry: what failed before anything of it could be seen is tried again by itself, later and a few times.

It is for agents whose provider or process fails before they have said, thought or done anything: nothing can have
happened, so nothing can happen twice. The run waits without a seat, as a further attempt of the same occurrence, while
its lateness allows it. A newer occurrence of its task, a switch, a hold or a removal ends it. Runs that a person asked
for are left alone: who asked is there, and sees that it failed.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from duly.core.lateness import refused_after_interruption
from duly.core.retrying import ERROR_TOLD, JITTER
from duly.core.run import BY_TIME_OR_EVENT, Entry, Run, Step
from duly.core.spans import write_instant
from duly.core.task import Rules
from duly.core.values import changed

AFTER = tuple(timedelta(minutes=minutes) for minutes in (5, 15, 30, 60))
"""How long the run waits after the first such failure, the second, and so on; after the last it ends."""
REARMED = "rearmed"
"""Kept of a run that waits so: how many runs time had opened of its task by then."""
SAFE = "safe_retry"
"""In an entry: which of these retries comes next."""


def made(entries: Iterable[Entry]) -> int:
    """Count how often a run was tried again so, by its entries."""
    return sum(entry.kind == "returned" and SAFE in entry.details for entry in entries)


def rearmed(
    ended: Step,
    rules: Rules,
    *,
    before: int,
    ended_at: datetime,
    draw: float,
    scheduled: int,
    following: datetime | None,
    hindered: str | None = None,
) -> Step:
    """Judge the step that ends a held run which failed unseen: back to waiting, or the end it is.

    `before`: how often that was so already; `draw`: chance between 0 and 1; `scheduled`: how many runs time has opened
    of its task; `following`: its next occurrence; `hindered`: why nothing of its task may start now.
    """
    run, end = ended.before, ended.after
    assert run.state == "held"
    assert end.ended_at is not None
    if run.opened_by not in BY_TIME_OR_EVENT:
        return ended
    if before >= len(AFTER) or run.cancel_asked_at is not None:
        return _told(ended, {"safe_retries": before, "of": len(AFTER)} if before else {})
    if hindered is not None:
        return _told(ended, {"refused": hindered})
    not_before = max(end.ended_at, ended_at + AFTER[before] * (1 + JITTER * draw))
    refused = refused_after_interruption(end, rules, worked_for=end.worked_for, following=following, now=not_before)
    if refused is not None:
        return _refused(ended, rules, refused, not_before)
    return _waits(ended, before=before, not_before=not_before, scheduled=scheduled)


def is_superseded(run: Run, scheduled: int) -> bool:
    """Whether a run that waits so has been overtaken: time has opened a newer one of its task since."""
    kept = run.agent.get(REARMED)
    return run.tried is not None and run.opened_by in BY_TIME_OR_EVENT and isinstance(kept, int) and scheduled > kept


def _waits(ended: Step, *, before: int, not_before: datetime, scheduled: int) -> Step:
    end, entry = ended.after, ended.entries[-1]
    details: dict[str, object] = {
        "next": "retry",
        SAFE: before + 1,
        "of": len(AFTER),
        "not_before": write_instant(not_before),
    }
    if end.error:
        details["error"] = end.error[:ERROR_TOLD]
    after = changed(
        end,
        state="waiting",
        outcome=None,
        holder=None,
        claim_token=None,
        started_at=None,
        ended_at=None,
        not_before=not_before,
        tried=end.outcome,
        tried_reason=end.reason,
        agent={**end.agent, REARMED: scheduled},
    )
    returned = changed(entry, kind="returned", details={**entry.details, **details})
    return Step(before=ended.before, after=after, entries=(*ended.entries[:-1], returned))


def _refused(ended: Step, rules: Rules, reason: str, not_before: datetime) -> Step:
    end = ended.after
    told = _told(
        ended,
        {
            "refused": reason,
            "failed_by": end.reason,
            "not_before": write_instant(not_before),
            "idle_s": (not_before - end.due_at - end.worked_for).total_seconds(),
            "max_age_s": rules.max_age.total_seconds(),
        },
    )
    entry = replace(told.entries[-1], reason=reason)
    return replace(told, after=changed(end, reason=reason), entries=(*told.entries[:-1], entry))


def _told(ended: Step, more: Mapping[str, object]) -> Step:
    entry = ended.entries[-1]
    return replace(ended, entries=(*ended.entries[:-1], changed(entry, details={**entry.details, **more})))
