"""What a runner is to the house: it gets an assignment, it gives back an outcome, it knows nothing else.

A runner is made for one attempt by a factory found in the registry (entry point group `duly.runners`). It knows
no store, no lease and no other runner.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal, Protocol

from duly.core.events import Event
from duly.core.permissions import Permission, Unattended
from duly.core.questions import Answered, Asked
from duly.core.reasons import Refusal
from duly.core.successes import Success
from duly.core.values import value

How = Literal["term", "kill", "detach"]
OutcomeWord = Literal["succeeded", "failed", "timed_out", "cancelled", "abandoned"]


@value
class Resumption:
    """Where an attempt goes on: in which session of its agent, why, and with which answer."""

    session: str | None
    """None where nothing was asked of an agent yet, so that the attempt begins anew."""
    prompted: bool
    """Its prompt may have reached the agent: it is not sent again."""
    why: Literal["interrupted", "answered", "bound"]
    answer: Answered | None = None
    """What the work had asked before it ended, with the answer; None where it asked nothing."""


@value
class Assignment:
    """One attempt, flat: what to do, where its traces go, and what the work is told about itself."""

    run: str
    attempt: int
    fence: int
    holder: str
    task: str
    task_name: str
    project: str
    occurrence: str
    due_at: datetime | None
    opened_by: str
    action: Mapping[str, object]
    input: str | None
    args: tuple[str, ...] = ()
    """Further arguments, for this run only."""
    timeout: timedelta
    idle_timeout: timedelta | None = None
    """How long the work may say nothing; None: for as long as it likes."""
    leftovers: Literal["end", "leave"] = "end"
    """What becomes of processes that a work which succeeded leaves running."""
    event: Event | None = None
    """What the run was opened for, where that was an event."""
    zone: str = "UTC"
    """The task's time zone, by its IANA name."""
    unattended: Unattended = "deny"
    permissions: tuple[Permission, ...] = ()
    answer_within: timedelta = timedelta(hours=24)
    """How long a person has for an answer."""
    resumes: Resumption | None = None
    """Where the work of an earlier attempt goes on; None where it begins."""
    lent: Mapping[str, str] = field(default_factory=dict)
    """What the work sees beside what it is told: the store and a token of its own, where its task says so."""
    success_when: Success | None = None
    """What the task calls a success, beside the end of the work."""
    folder: Path
    """The attempt's folder in the run folder: lock, begun, end, exit and log. The runner makes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NothingToResume:
    """The session of an agent cannot be gone on with, in words; nothing was asked anew. It is confirmed to be gone."""

    told: str
    agent: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Busy:
    """What the work was to be done in is taken, in words, and its task does not wait for that: nothing began."""

    told: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How an attempt ended. `confirmed`: nothing of its work lives. `side_effect`: one was possible."""

    word: OutcomeWord
    reason: str | None = None
    error: str | None = None
    exit_code: int | None = None
    signal: int | None = None
    confirmed: bool = True
    side_effect: bool = True
    unseen: bool = False
    """Of an agent: it failed before anything of its turn could be seen, so that it may be asked once more."""
    log_bytes: int = 0
    log_cut: int = 0
    interrupted: bool = False
    """What it worked at went away under it, a server of others' work too: it goes on there, where the task says so."""
    ended_at: datetime | None = field(default=None, compare=False)
    """When its work ended, where that was written down; else it is as good as now."""
    details: Mapping[str, object] = field(default_factory=dict)
    agent: Mapping[str, object] = field(default_factory=dict)
    """Of an agent's turn: `session`, the id by which its agent finds it again, and `usage`, where told."""


@dataclass(frozen=True, slots=True)
class Detached:
    """`stop("detach")` was obeyed: the work lives on under its keeper, for another holder to adopt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parked:
    """The work asks something and has ended; `agent` names the session that goes on with the answer.

    It is confirmed to be gone: nothing of it lives while a person is asked.
    """

    asked: Asked
    agent: Mapping[str, object]
    log_bytes: int = 0
    log_cut: int = 0


Came = Outcome | Parked | NothingToResume | Busy
"""What an attempt came to that nobody let go."""


class Runner(Protocol):
    """One attempt's performer.

    One whose work lives in its own process, where nobody else can find or end it, has an attribute `kept` that is
    false, or a method that says so of an action. Work that cannot be ended at all tells by `overdue` that its time
    is over.
    One that learns while it works what its run shall show has an attribute `on_told`, which is called with the facts.
    One whose work asks a person something while it lives has an attribute `on_asked`, which is called with an Asked,
    and a method `answer`, which is called from any thread with the Answered (`core.questions`) of the same `key`; in
    between its slot is somebody else's, and no timeout of its own ends it.
    Work that needs nothing but this machine has an attribute `at_once` that is true: what was missed may start all
    together.
    """

    def check(self, action: Mapping[str, object]) -> Refusal | None:
        """Say beforehand why this action cannot run here; spends nothing and starts nothing."""

    def perform(self, assignment: Assignment, checkpoint: Mapping[str, object] | None) -> Came | Detached:
        """Do the work in the caller's thread and return when it has ended; with a checkpoint, attach to it."""

    def stop(self, how: How) -> None:
        """Ask from any thread for the end (or the letting go) of the work; returns at once; may be repeated."""


RunnerFactory = Callable[[], Runner]
