"""What the edges of a run's life are made of: the entry of a run, and a row that is held no longer."""

from datetime import datetime, timedelta

from duly.core.run import Entry, Run

ERROR_MOST = 2_000
"""Characters of an error that are kept."""


def entry_of(
    run: Run,
    kind: str,
    now: datetime,
    *,
    reason: str | None = None,
    holder: str | None = None,
    by: str | None = None,
    details: dict[str, object] | None = None,
) -> Entry:
    """Give an entry of the ledger about a run and its attempt."""
    return Entry(
        kind=kind,
        at=now,
        task=run.task,
        occurrence=run.occurrence,
        run=run.id,
        attempt=run.attempt or None,
        reason=reason,
        holder=holder,
        by=by,
        details=details or {},
    )


def seconds(span: timedelta) -> float:
    """Give a span as the ledger has it."""
    return round(span.total_seconds(), 6)


def released(run: Run, now: datetime, *, worked_until: datetime | None = None) -> dict[str, object]:
    """Give what a run has when it is held no longer; it worked until now, unless that is known."""
    return {
        "version": run.version + 1,
        "seat": None,
        "taken": {},
        "holder": None,
        "lease_end_us": None,
        "lease_boot": None,
        "claim_token": None,
        "handed_to": None,
        "stopping_since": None,
        "answered_at": None,
        "worked_for": run.worked_for + worked(run, min(now, worked_until or now)),
    }


def worked(run: Run, until: datetime) -> timedelta:
    """Give for how long the attempt of a run has worked by then."""
    if run.started_at is None or until <= run.started_at:
        return timedelta(0)
    return until - run.started_at
