"""Gates: what becomes of a claimed run that is not let begin, before anything of its work has begun."""

from dataclasses import replace
from datetime import datetime

from duly.core import lifecycle
from duly.core.run import Entry, Run, Step


def not_now(run: Run, *, now: datetime, reason: str, told: str, details: dict[str, object]) -> Step:
    """End a held run that nothing lets begin: its gate did not open, its project is away; told in words.

    Seat, limits and the attempt's claim go back in the same write, and no attempt counts as failed. A retry ends with
    the outcome of its last attempt; a run that somebody cancelled meanwhile is cancelled.
    """
    back = lifecycle.give_back(run, now=now, why=told)
    if back.after.state == "ended":
        return back
    ended = lifecycle.skip(back.after, reason=reason, now=now, details=details)
    after = replace(
        ended.after,
        version=run.version + 1,
        # Who ended it, and by which claim, stays on the row: a lost answer is read back by the token.
        holder=run.holder,
        claim_token=run.claim_token,
        error=told if ended.after.outcome == "skipped" else run.error,
    )
    return Step(before=run, after=after, entries=(*back.entries, *ended.entries))


def began(run: Run, *, now: datetime, details: dict[str, object]) -> Entry:
    """Tell that the gate of a held run let it go, and its work begins."""
    return Entry(
        kind="began",
        at=now,
        task=run.task,
        occurrence=run.occurrence,
        run=run.id,
        attempt=run.attempt,
        holder=run.holder,
        details={"fence": run.fence, **details},
    )
