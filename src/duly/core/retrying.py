"""Retries: whether a run whose attempt failed is tried again, and how long it waits until then.

An attempt that failed or ran longer than its timeout is tried again while its run has retries left. One that was
cancelled is not, and one that was interrupted is the matter of `on_interrupt`. None is free: whatever failed before
it began (a missing program, a missing folder) counts like any other, for what is written there is wrong or gone.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from duly.core.lateness import waited_too_long
from duly.core.run import Run, Step
from duly.core.spans import write_instant
from duly.core.task import Rules
from duly.core.values import changed

AGAIN = frozenset({"failed", "timed_out"})
"""Outcomes of attempts that are tried again."""
NEVER_AGAIN = frozenset({"question_unanswered"})
"""Reasons of failures that another try would only wait for once more."""
JITTER = 0.2
"""The share of a wait that chance adds, so that what failed together is not tried again together."""
ERROR_TOLD = 200
"""Characters of an attempt's error that its entry tells; the next attempt has the row's."""


def may_be_retried(run: Run, rules: Rules, outcome: str) -> bool:
    """Whether an attempt with this outcome leaves its run a retry, if neither its lateness nor its task forbid it."""
    return outcome in AGAIN and run.retries < rules.retries and run.cancel_asked_at is None


def retried(ended: Step, rules: Rules, *, ended_at: datetime, draw: float, hindered: str | None = None) -> Step:
    """Judge the step that ends a held run: back to waiting for its next attempt, or the end it is.

    `ended_at` is when the attempt's work ended, `draw` chance between 0 and 1, `hindered` why nothing of its task may
    start now (`disabled`, `paused`, `task_removed`). A run that would be too late at its retry ends now, as `stale`.
    """
    run, end = ended.before, ended.after
    assert run.state == "held"
    assert end.ended_at is not None
    if end.outcome is None or end.reason in NEVER_AGAIN or not may_be_retried(run, rules, end.outcome):
        return _counted(ended, rules)
    not_before = max(end.ended_at, ended_at + wait(rules, run.retries, draw))
    if hindered is None and waited_too_long(end, rules, not_before):
        return too_late(ended, rules, "stale", not_before)
    if hindered is not None:
        return telling(ended, refused=hindered)
    told = {"retry": run.retries + 1, "of": rules.retries}
    return waits_again(ended, told, not_before=not_before, retries=run.retries + 1)


def waits_again(ended: Step, told: Mapping[str, object], *, not_before: datetime, **kept: object) -> Step:
    """Give a failed attempt's run back to waiting until then: `told` by its entry, `kept` on its row."""
    end, entry = ended.after, ended.entries[-1]
    details: dict[str, object] = {"next": "retry", **told, "not_before": write_instant(not_before)}
    if end.error:
        details["error"] = end.error[:ERROR_TOLD]
    after = changed(
        end,
        kept,
        state="waiting",
        outcome=None,
        holder=None,
        claim_token=None,
        started_at=None,
        ended_at=None,
        not_before=not_before,
        tried=end.outcome,
        tried_reason=end.reason,
    )
    returned = changed(entry, kind="returned", details={**entry.details, **details})
    return Step(before=ended.before, after=after, entries=(*ended.entries[:-1], returned))


def wait(rules: Rules, retries: int, draw: float) -> timedelta:
    """How long a run that was retried so often waits for the next: twice as long each time, up to retry_up_to.

    Chance adds up to a fifth, or where that is more than `retry_up_to` takes it away. Never sooner than `retry_after`.
    """
    span = rules.retry_after
    for _ in range(retries):
        if span >= rules.retry_up_to:
            break
        span *= 2
    most = min(span * (1 + JITTER), rules.retry_up_to)
    least = max(min(span, most / (1 + JITTER)), min(rules.retry_after, most))
    return least + (most - least) * draw


def backs_off(run: Run, now: datetime) -> bool:
    """Whether a run waits for its next attempt after a failure, and not yet for anything else."""
    return run.state == "waiting" and run.tried in AGAIN and run.not_before > now


def _counted(ended: Step, rules: Rules) -> Step:
    """The end as it is, with how often it was tried again, where the task has retries at all."""
    return telling(ended, retries=ended.before.retries, of=rules.retries) if ended.before.retries else ended


def too_late(ended: Step, rules: Rules, reason: str, not_before: datetime) -> Step:
    """End a failed run that would be too late at its next attempt, for this reason, with the figures."""
    end = ended.after
    told = telling(
        ended,
        refused=reason,
        failed_by=end.reason,
        not_before=write_instant(not_before),
        idle_s=(not_before - end.due_at - end.worked_for).total_seconds(),
        max_age_s=rules.max_age.total_seconds(),
    )
    entry = replace(told.entries[-1], reason=reason)
    return replace(told, after=changed(end, reason=reason), entries=(*told.entries[:-1], entry))


def telling(ended: Step, **more: object) -> Step:
    """Tell more in the entry of an end."""
    entry = ended.entries[-1]
    return replace(ended, entries=(*ended.entries[:-1], changed(entry, details={**entry.details, **more})))
