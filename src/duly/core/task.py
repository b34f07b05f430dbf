"""The nouns of what shall be done: a task's definition, its rules, and the task as the loops read it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

from duly.core.triggers import Trigger

OnMissed = Literal["run", "skip"]
Overlap = Literal["skip", "queue"]
OnInterrupt = Literal["fail", "retry"]

DEFAULT_MAX_AGE = timedelta(hours=6)
DEFAULT_QUEUE = 5
DEFAULT_TIMEOUT: Mapping[str, timedelta] = {"command": timedelta(hours=24)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How a task is judged when things are not normal; None is the default that depends on the task."""

    on_missed: OnMissed = "run"
    max_age: timedelta = DEFAULT_MAX_AGE
    grace: timedelta | None = None
    overlap: Overlap = "skip"
    queue: int = DEFAULT_QUEUE
    on_interrupt: OnInterrupt = "fail"
    timeout: timedelta | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """Why a stored definition no longer validates: the field and what is wrong with it."""

    field: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
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
    failures_in_a_row: int
    last_run: str | None
    source: Mapping[str, object]
    created_at: datetime
    created_by: str
    updated_at: datetime
    removed_at: datetime | None


def timeout_of(definition: Definition) -> timedelta:
    """How long an attempt may run: the task's own rule, else the default of its kind of action."""
    if definition.rules.timeout is not None:
        return definition.rules.timeout
    return DEFAULT_TIMEOUT[str(definition.action["kind"])]
