"""The late table: what is punctual, what is late, what is too late, on every road to a start.

| road                                           | policy asked when    | ceiling max_age            |
|------------------------------------------------|----------------------|----------------------------|
| opening                                        | lateness > grace     | over `run` only            |
| start of a run that waited                     | never                | yes                        |
| retry after an interruption                    | idle lateness > grace| yes, by idle lateness      |
| adoption, re-attachment                        | never                | never                      |
| by hand, accepted offer, backfill              | never                | never                      |

Exactly grace is punctual, exactly max_age runs. Idle lateness leaves out the time in which the run worked.
"""

from datetime import datetime, timedelta

from duly.core.run import NEVER_LATE, Run
from duly.core.task import Rules

GRACE_MOST = timedelta(seconds=60)
"""The default grace is never longer than this, however far the next occurrence is."""


def grace_for(rules: Rules, due_at: datetime, following: datetime | None) -> timedelta:
    """How late this occurrence is still punctual: the rule, else min(60 s, half the distance to the next)."""
    if rules.grace is not None:
        return rules.grace
    if following is None:
        return GRACE_MOST
    return min(GRACE_MOST, (following - due_at) / 2)


def waited_too_long(run: Run, rules: Rules, now: datetime) -> bool:
    """A run that waited for its start is past max_age, by its idle time; runs that a person asked for never are."""
    return run.opened_by not in NEVER_LATE and now - run.due_at - run.worked_for > rules.max_age


def refused_after_interruption(
    run: Run, rules: Rules, *, worked_for: timedelta, following: datetime | None, now: datetime
) -> str | None:
    """Why an interrupted run may not be tried again (`stale`, `missed_skip`), or None when it may."""
    if run.opened_by in NEVER_LATE:
        return None
    idle = now - run.due_at - worked_for
    if idle > rules.max_age:
        return "stale"
    if rules.on_missed == "skip" and idle > grace_for(rules, run.due_at, following):
        return "missed_skip"
    return None
