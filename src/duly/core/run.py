"""The noun of the work opened for one occurrence, and the small nouns around it."""

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime, timedelta
from typing import Literal

from duly.core.values import value

State = Literal["waiting", "held", "parked", "ended"]
"""A run's place in its life cycle; the public word for held is `running`."""
OpenedBy = Literal["schedule", "catch_up", "event", "manual", "offer", "backfill"]
RunOutcome = Literal["succeeded", "failed", "timed_out", "cancelled", "abandoned", "skipped"]
MissedState = Literal["open", "accepted", "declined", "expired", "closed"]

BY_TIME_OR_EVENT: frozenset[str] = frozenset({"schedule", "catch_up", "event"})
NEVER_LATE: frozenset[str] = frozenset({"manual", "offer", "backfill"})


@value
class Run:
    """A run as the store holds it; `version` is what the next write must name."""

    id: str
    task: str
    occurrence: str
    due_at: datetime
    opened_at: datetime
    opened_by: OpenedBy
    opened_by_whom: str | None = None
    state: State = "waiting"
    outcome: RunOutcome | None = None
    reason: str | None = None
    version: int = 1
    attempt: int = 0
    fence: int = 0
    seat: int | None = None
    holder: str | None = None
    lease_end_us: int | None = None
    lease_boot: str | None = None
    claim_token: str | None = None
    handed_to: str | None = None
    not_before: datetime
    definition_version: int
    input: str | None = None
    anyway: bool = False
    queued: bool = False
    project: str = ""
    """The key of its task's project, whose turn it takes among others."""
    rank: int = 0
    """Among waiting runs the lower starts first."""
    overlap: str | None = None
    """Its own rule for taken seats, where it is not its task's."""
    taken: Mapping[str, int] = field(default_factory=dict)
    """The limits it counts against while it is live, with its weight in each."""
    event: str | None = None
    args: tuple[str, ...] = ()
    """Further arguments of the command, for this run only."""
    spread: timedelta = timedelta(0)
    """How long after its due instant it was meant to start; what it is late is counted from there."""
    retry_of: str | None = None
    started_at: datetime | None = None
    stopping_since: datetime | None = None
    ended_at: datetime | None = None
    cancel_asked_at: datetime | None = None
    cancel_asked_by: str | None = None
    cancel_why: str = "cancelled_by_hand"
    """The reason of the end that was asked for: `cancelled_by_hand` or `overlap`."""
    cancel_how: Literal["term", "kill"] = "term"
    worked_for: timedelta = timedelta(0)
    """The sum of the spans of the attempts that have ended."""
    interruptions: int = 0
    retries: int = 0
    """How often it was tried again after a failure."""
    tried: RunOutcome | None = None
    """The outcome of its last attempt that ended, until the run itself ends."""
    tried_reason: str | None = None
    """The reason of that outcome."""
    exit_code: int | None = None
    signal: int | None = None
    error: str | None = None
    log_bytes: int = 0
    log_cut: int = 0
    agent: Mapping[str, object] = field(default_factory=dict)
    """Of an agent: the `session` of its last turn, and the `usage` of all its turns, as far as told."""
    question: str | None = None
    """The last question that its work asked."""
    answered_at: datetime | None = None
    """While it is parked, and in the attempt that goes on from there: when its question was answered."""


@value
class Missed:
    """An occurrence, or a counted stretch of them, that was found later than its grace and not opened."""

    id: str
    task: str
    occurrence: str
    due_at: datetime
    until_at: datetime
    count: int
    reason: str
    noticed_at: datetime
    holder: str | None
    state: MissedState = "closed"
    expires_at: datetime | None = None
    decided_by: str | None = None
    decided_at: datetime | None = None
    note: str | None = None
    run: str | None = None
    """The run it became when it was accepted, or the run that was too late to go on."""


@value
class Entry:
    """One line of the ledger: what happened, to which occurrence and run, by whom, and with which figures."""

    kind: str
    at: datetime
    task: str | None = None
    occurrence: str | None = None
    run: str | None = None
    attempt: int | None = None
    reason: str | None = None
    holder: str | None = None
    by: str | None = None
    count: int | None = None
    until_at: datetime | None = None
    details: Mapping[str, object] = field(default_factory=dict)


@value
class Step:
    """A decision about one run: the row as it was read, the row as it shall be, the entries that tell of it."""

    before: Run
    after: Run
    entries: tuple[Entry, ...]


@value
class Attempt:
    """One numbered try at a run, as its ledger entries tell it."""

    attempt: int
    fence: int
    holder: str | None
    started_at: datetime
    ended_at: datetime | None = None
    outcome: str | None = None
    reason: str | None = None
