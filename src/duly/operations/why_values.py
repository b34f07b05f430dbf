"""The values of `why`: what is known of one instant of a task, or of one run, with the rule behind its fate."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from zoneinfo import ZoneInfo

from duly.core.explaining import Judgement
from duly.core.run import Attempt, Missed, Run
from duly.core.sentences import Use
from duly.core.task import Task
from duly.operations.why_then import Hold, InForce, Versions
from duly.store.rows import HolderRow, Written
from duly.store.store import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """One question: the transaction it is asked in, the task, its versions, and which holders are known to live.

    `alive` None: it is judged by their beats. `boot` None: leases are of this boot.
    """

    session: Session
    task: Task
    versions: Versions
    alive: Collection[str] | None = None
    boot: str | None = None
    projects: Collection[str] | None = None
    """The keys of the projects of which who asks may hear; None: of all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """A counted stretch of instants with one fate that the instant is one of."""

    first: datetime
    last: datetime
    count: int
    reason: str
    written_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """What becomes of an instant: a word of `sentences.FATES`, its reason, the rule behind it, the figures.

    `use` names the table that `reason` is of.
    """

    word: str
    use: Use = "no_start"
    reason: str | None = None
    rule: str | None = None
    figures: Mapping[str, object] = field(default_factory=dict)
    run: Run | None = None
    missed: Missed | None = None
    stretch: Stretch | None = None
    noticed_at: datetime | None = None
    noticed_by: str | None = None
    """The holder that found it."""
    judged_at: datetime | None = None
    """When it was decided; the rules of that moment are the ones that count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """What stands in the way of a start: `what` is of the table `ahead`; a sure one no waiting helps."""

    what: str
    sure: bool
    figures: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """Who holds a run: the holder's row where it is known, whether it lives, and when its lease ends."""

    holder: str
    row: HolderRow | None
    alive: bool
    lease_ends_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbour:
    """The instant before or after, with its fate where that is known."""

    due_at: datetime
    fate: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruled:
    """A rule with its value as JSON has it, and whose it is: `own`, or of the `project`, the `store`, `built_in`."""

    name: str
    value: object
    whose: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """The answer to one question; `at` is the instant it is about, None where there is none.

    `asked_at` None: about the last instant, the next, and what is wrong now. `due` None: nobody can tell.
    """

    kind: str
    """Whether a `task` or a `run` was asked about."""
    task: Task | None
    run: Run | None
    now: datetime
    asked_at: datetime | None
    at: datetime | None
    zone: ZoneInfo | None
    due: bool | None
    fate: Fate
    rule: Ruled | None = None
    in_force: InForce | None = None
    defined_by: str | None = None
    """Who wrote the version in force."""
    judgement: Judgement | None = None
    before: Neighbour | None = None
    after: Neighbour | None = None
    start_at: datetime | None = None
    """When it starts, with its spread."""
    noticed_by: HolderRow | None = None
    """The holder that found the instant, where it is still known."""
    outage: Written | None = None
    """The span in which nobody served, or time did not go on as it does, that the instant lies in."""
    waiting_for: Mapping[str, object] | None = None
    held_by: Holding | None = None
    holds: Sequence[Hold] = ()
    """The pauses in force at the instant; for one to come those in force now."""
    troubles: Sequence[Trouble] = ()
    """What stands in the way now, or at an instant to come."""
    serving: Sequence[HolderRow] | None = None
    """The holders that live, where the answer depends on them."""
    beside: Sequence[Run] = ()
    """Other runs of the task that were live at the instant, or are now where it is to come."""
    attempts: Sequence[Attempt] = ()
    story: Sequence[Written] = ()
    upcoming: "Why | None" = None
    """The next instant, where the question named none."""
