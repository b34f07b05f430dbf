"""Safe retry: what failed before anything of it could be seen is tried again by itself, later and a few times.

It is for agents whose provider or process fails before they have said, thought or done anything: nothing can have
happened, so nothing can happen twice. The run waits without a seat, as a further attempt of the same occurrence, while
its lateness allows it. A newer occurrence of its task, a switch, a hold or a removal ends it. Runs that a person asked
for are left alone: who asked is there, and sees that it failed.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

from duly.core.lateness import refused_after_interruption
from duly.core.retrying import JITTER, telling, too_late, waits_again
from duly.core.run import BY_TIME_OR_EVENT, Entry, Run, Step
from duly.core.task import Rules

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
        return telling(ended, safe_retries=before, of=len(AFTER)) if before else ended
    if hindered is not None:
        return telling(ended, refused=hindered)
    not_before = max(end.ended_at, ended_at + AFTER[before] * (1 + JITTER * draw))
    refused = refused_after_interruption(end, rules, worked_for=end.worked_for, following=following, now=not_before)
    if refused is not None:
        return too_late(ended, rules, refused, not_before)
    told = {SAFE: before + 1, "of": len(AFTER)}
    return waits_again(ended, told, not_before=not_before, agent={**end.agent, REARMED: scheduled})


def is_superseded(run: Run, scheduled: int) -> bool:
    """Whether a run that waits so has been overtaken: time has opened a newer one of its task since."""
    kept = run.agent.get(REARMED)
    return run.tried is not None and run.opened_by in BY_TIME_OR_EVENT and isinstance(kept, int) and scheduled > kept
