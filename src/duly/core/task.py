"""The nouns of what shall be done: a task's definition, its rules, and the task as the loops read it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

from duly.core.action_fields import bound_to
from duly.core.amounts import Allowance, Amounts
from duly.core.permissions import Permission, Then, Unattended
from duly.core.successes import Success
from duly.core.triggers import Trigger
from duly.core.values import value
from duly.core.wallclock import Fold, Gap

StoreAccess = Literal["none", "read", "run"]
OnMissed = Literal["run", "run_all", "skip", "offer"]
Overlap = Literal["skip", "queue", "cancel_running", "kill_running"]
OnInterrupt = Literal["fail", "retry", "resume"]

DEFAULT_MAX_AGE = timedelta(hours=6)
DEFAULT_AT_MOST = 10
DEFAULT_OFFER_FOR = timedelta(days=7)
DEFAULT_QUEUE = 5
DEFAULT_RETRY_AFTER = timedelta(seconds=30)
DEFAULT_RETRY_UP_TO = timedelta(hours=1)
DEFAULT_ANSWER_WITHIN = timedelta(hours=24)
DEFAULT_GATE_TIMEOUT = timedelta(seconds=60)
DEFAULT_TIMEOUT: Mapping[str, timedelta] = {
    "command": timedelta(hours=24),
    "call": timedelta(hours=24),
    "agent": timedelta(minutes=30),
    "http": timedelta(minutes=5),
}
DEFAULT_ON_INTERRUPT: Mapping[str, OnInterrupt] = {"agent": "resume"}
DEFAULT_IDLE_TIMEOUT: Mapping[str, timedelta] = {"agent": timedelta(minutes=10)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """What is asked before each start: a program whose exit status says go or not now."""

    argv: tuple[str, ...]
    timeout: timedelta = DEFAULT_GATE_TIMEOUT
    on_error: Literal["closed", "go"] = "closed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How a task is judged when things are not normal; None is the default that depends on the task, or no rule."""

    on_missed: OnMissed = "run"
    at_most: int = DEFAULT_AT_MOST
    max_age: timedelta = DEFAULT_MAX_AGE
    grace: timedelta | None = None
    offer_for: timedelta = DEFAULT_OFFER_FOR
    overlap: Overlap = "skip"
    seats: int = 1
    queue: int = DEFAULT_QUEUE
    limits: Mapping[str, int] = field(default_factory=dict)
    priority: int = 0
    needs: tuple[str, ...] = ()
    timeout: timedelta | None = None
    idle_timeout: timedelta | None = None
    leftovers: Literal["end", "leave"] = "end"
    retries: int = 0
    retry_after: timedelta = DEFAULT_RETRY_AFTER
    retry_up_to: timedelta = DEFAULT_RETRY_UP_TO
    on_interrupt: OnInterrupt | None = None
    gate: Gate | None = None
    pause_after: int | None = None
    spread: timedelta = timedelta(0)
    gap: Gap = "run"
    fold: Fold = "first"
    start: datetime | None = None
    until: datetime | None = None
    times: int | None = None
    remove_when_done: bool = False
    unattended: Unattended = "deny"
    permissions: tuple[Permission, ...] = ()
    answer_within: timedelta = DEFAULT_ANSWER_WITHIN
    then: Then = "fail"
    """What becomes of a run whose question nobody answers in time: it fails, or goes on with a no."""
    budget: Allowance | None = None
    estimate: Amounts | None = None
    """What one run is thought to cost, in tokens and money."""
    success_when: Success | None = None
    notify: tuple[str, ...] | None = None
    """The channels that are told of it; None: those of the store."""
    notify_after: int = 1
    ping: str | None = None
    """Where a monitor outside is asked; secrets are only named in it."""
    store_access: StoreAccess = "none"
    """What its runs may do at the store with what they are lent for it."""


@value
class Definition:
    """What an author wrote, whole and valid: one version of a task."""

    name: str
    project: str = "default"
    description: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    enabled: bool = True
    triggers: tuple[Trigger, ...] = ()
    zone: str = "UTC"
    action: Mapping[str, object] = field(default_factory=dict)
    rules: Rules = Rules()
    own_rules: frozenset[str] = frozenset()
    """Names of the rules the author wrote; the others are defaults."""
    inherited: Mapping[str, str] = field(default_factory=dict)
    """What is filled in by a default of the `store` or of the `project`: names of rules, and `cwd` of the action."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """Why a stored definition no longer validates: the field and what is wrong with it."""

    field: str
    message: str


@value
class Task:
    """A task as the store holds it: its definition in force, and the state that only the engine writes."""

    id: str
    definition: Definition
    broken: Broken | None
    version: int
    """Rises with every write of the definition, its switch or its pauses; what writers name."""
    definition_version: int
    planned_until: datetime
    """The cursor: every occurrence up to and including this instant has its fate."""
    next_due_at: datetime | None
    next_start_at: datetime | None
    done: bool
    fence: int
    runs: int
    scheduled_runs: int
    """Runs that time has opened; what `times` counts."""
    failures_in_a_row: int
    last_run: str | None
    source: Mapping[str, object]
    created_at: datetime
    created_by: str
    updated_at: datetime
    removed_at: datetime | None
    planned_wall: str | None = None
    """The cursor on the wall of the task's zone, by the zone data of the moment it was written."""
    zone_data: str | None = None
    """The version of the zone data by which the next instants were computed."""
    pruned_until: datetime | None = None
    """The watermark of pruning: of what lies before it, rows may be gone."""


def timeout_of(definition: Definition) -> timedelta:
    """How long an attempt may run: the task's own rule, else the default of its kind of action."""
    if definition.rules.timeout is not None:
        return definition.rules.timeout
    return DEFAULT_TIMEOUT[str(definition.action["kind"])]


def on_interrupt_of(rules: Rules, action: Mapping[str, object]) -> OnInterrupt:
    """What becomes of an interrupted run: the rule in force, else the default of its kind of action.

    A session that the action is bound to is gone on in also where the rule is to retry: its prompt is there already.
    """
    if rules.on_interrupt == "retry" and bound_to(action) is not None:
        return "resume"
    return rules.on_interrupt or DEFAULT_ON_INTERRUPT.get(str(action.get("kind")), "fail")


def idle_timeout_of(definition: Definition) -> timedelta | None:
    """How long an attempt may be silent: the task's own rule, else the default of its kind of action, if any."""
    if definition.rules.idle_timeout is not None:
        return definition.rules.idle_timeout
    return DEFAULT_IDLE_TIMEOUT.get(str(definition.action["kind"]))
