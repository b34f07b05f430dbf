"""Missed occurrences in the hands of people: offered, accepted, declined, run out; and how an accepted one starts.

open ──▶ accepted · declined · expired · closed (its task was removed)
closed, expired ──▶ accepted, as long as its newest occurrence never ran

Accepting opens a run for the newest occurrence of the count; where the record names a run that was too late to go on,
that run goes on instead.
"""

from dataclasses import replace
from datetime import datetime

from duly.core.admission import rank_of
from duly.core.names import key_of
from duly.core.occurrences import at_key, is_of_time
from duly.core.run import Entry, Missed, Run, Step
from duly.core.task import Task

GOES_ON = "goes_on"
"""In the details of an `accepted` entry: its run had ended and waits again."""


def newest_of(one: Missed) -> str:
    """The key of the occurrence that accepting runs: the newest of the count."""
    return at_key(one.until_at) if is_of_time(one.occurrence) else one.occurrence


def seen(one: Missed, now: datetime) -> Missed:
    """The record as it stands at this moment, whether or not anybody has written that its window is over."""
    over = one.state == "open" and one.expires_at is not None and one.expires_at <= now
    return replace(one, state="expired", decided_at=one.expires_at) if over else one


def names_a_run_to_go_on(one: Missed, run: Run) -> bool:
    """The run was refused its next attempt for being late, and kept for a person to decide."""
    return one.run == run.id and run.state == "ended" and run.reason == "missed_offer"


def run_for(one: Missed, task: Task, *, id_: str, by: str, anyway: bool, now: datetime) -> Run:
    """Make the run that an accepted one opens; it waits for its seat, and no policy asks how late it is."""
    return Run(
        id=id_,
        task=task.id,
        occurrence=newest_of(one),
        due_at=one.until_at,
        opened_at=now,
        opened_by="offer",
        opened_by_whom=by,
        not_before=now,
        definition_version=task.definition_version,
        anyway=anyway,
        queued=True,
        project=key_of(task.definition.project),
        rank=rank_of("offer", task.definition.rules),
    )


def goes_on(run: Run, task: Task, *, missed: str, by: str, anyway: bool, now: datetime) -> Step:
    """Let an ended run wait for its next attempt, by its own definition; from here on it is a person's ask."""
    assert run.state == "ended"
    after = replace(
        run,
        version=run.version + 1,
        state="waiting",
        opened_by="offer",
        opened_by_whom=by,
        anyway=anyway,
        queued=True,
        rank=rank_of("offer", task.definition.rules),
        not_before=now,
        tried=run.outcome,
        tried_reason=run.reason,
        outcome=None,
        reason=None,
        error=None,
        exit_code=None,
        signal=None,
        holder=None,
        claim_token=None,
        started_at=None,
        ended_at=None,
        cancel_asked_at=None,
        cancel_asked_by=None,
        cancel_why="cancelled_by_hand",
        cancel_how="term",
    )
    told = Entry(
        kind="accepted",
        at=now,
        task=run.task,
        occurrence=run.occurrence,
        run=run.id,
        by=by,
        details={"missed": missed, GOES_ON: True},
    )
    return Step(before=run, after=after, entries=(told,))


def accepted(one: Missed, run: str, *, by: str, now: datetime) -> Missed:
    """The record of one that a person wanted all the same."""
    return replace(one, state="accepted", run=run, decided_by=by, decided_at=now)


def declined(one: Missed, *, by: str, note: str | None, now: datetime) -> Missed:
    """The record of one that a person did not want."""
    return replace(one, state="declined", decided_by=by, decided_at=now, note=note)


def expired(one: Missed) -> Missed:
    """The record of one that nobody answered in its window: nobody decided, and it is over since then."""
    assert one.expires_at is not None
    return replace(one, state="expired", decided_at=one.expires_at)


def closed(one: Missed, *, by: str, now: datetime) -> Missed:
    """The record of one that is asked no longer, because its task is gone."""
    return replace(one, state="closed", decided_by=by, decided_at=now)


def told(one: Missed, kind: str, *, now: datetime, run: Run | None = None, reason: str | None = None) -> Entry:
    """Tell what became of a record: `accepted` with the run it opened, `declined`, `expired`."""
    details: dict[str, object] = {"missed": one.id}
    if one.note is not None:
        details["note"] = one.note
    return Entry(
        kind=kind,
        at=now,
        task=one.task,
        occurrence=one.occurrence if run is None else run.occurrence,
        run=None if run is None else run.id,
        reason=reason,
        by=one.decided_by,
        count=one.count,
        until_at=one.until_at if one.count > 1 else None,
        details=details,
    )
