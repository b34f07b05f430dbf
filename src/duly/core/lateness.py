"""The late table: what is punctual, what is late, what is too late, on every road to a start.

| road                                           | policy asked when    | ceiling max_age            |
|------------------------------------------------|----------------------|----------------------------|
| opening                                        | lateness > grace     | over `run`, `run_all` only |
| start of a run that waited                     | never                | yes                        |
| retry after a failure                          | never                | yes, by idle lateness      |
| safe retry after a failure that nobody saw     | idle lateness > grace| yes, by idle lateness      |
| retry after an interruption                    | idle lateness > grace| yes, by idle lateness      |
| adoption, re-attachment                        | never                | never                      |
| by hand, accepted offer, backfill              | never                | never                      |

Lateness is counted from the due instant with its spread. Exactly grace is punctual, exactly max_age runs. Idle lateness
leaves out the time in which the run worked. The road `opening` is `planning`, with `catching_up`.
"""

from datetime import datetime, timedelta

from duly.core.run import NEVER_LATE, Missed, Run
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


def idle_lateness(run: Run, now: datetime, *, worked_for: timedelta) -> timedelta:
    """How late a run is but for its spread and the time in which it worked."""
    return now - run.due_at - run.spread - worked_for


def waited_too_long(run: Run, rules: Rules, now: datetime) -> bool:
    """A run that waited for its start is past max_age, by its idle time; runs that a person asked for never are.

    One that starts at the very moment of its opening has not waited: how late it was, its opening has judged.
    """
    if run.opened_by in NEVER_LATE or (run.attempt == 0 and run.opened_at == now):
        return False
    return idle_lateness(run, now, worked_for=run.worked_for) > rules.max_age


def refused_after_interruption(
    run: Run, rules: Rules, *, worked_for: timedelta, following: datetime | None, now: datetime
) -> str | None:
    """Why an interrupted run may not be tried again (`stale`, `missed_skip`, `missed_offer`), or None when it may.

    Beyond max_age it is stale under every policy.
    """
    if run.opened_by in NEVER_LATE:
        return None
    idle = idle_lateness(run, now, worked_for=worked_for)
    if idle > rules.max_age:
        return "stale"
    if idle > grace_for(rules, run.due_at, following):
        return {"skip": "missed_skip", "offer": "missed_offer"}.get(rules.on_missed)
    return None


def offer_of(run: Run, rules: Rules, *, id_: str, now: datetime, holder: str) -> Missed:
    """Make the offer to go on with a run that was refused as `missed_offer`."""
    return Missed(
        id=id_,
        task=run.task,
        occurrence=run.occurrence,
        due_at=run.due_at,
        until_at=run.due_at,
        count=1,
        reason="missed_offer",
        noticed_at=now,
        holder=holder,
        state="open",
        expires_at=now + rules.offer_for,
        run=run.id,
    )
