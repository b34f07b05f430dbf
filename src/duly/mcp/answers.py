"""What the tools answer, as models: the schemas that clients are shown; fields beyond these are those of `--json`."""

from typing import Annotated, Any

from mcp_types import CallToolResult
from pydantic import BaseModel, ConfigDict, Field


class Answer(BaseModel):
    """An answer may have more fields than are told here: readers ignore those that they do not know."""

    model_config = ConfigDict(extra="allow")


class Instant(Answer):
    """One instant to come."""

    due_at: str = Field(description="RFC 3339 in UTC")
    local: str = Field(description="the same on the wall of its zone")
    zone: str
    offset: str
    note: str | None = Field(description="gap, fold or excluded; else null")


class Line(Answer):
    """A task in a list."""

    id: str
    name: str = Field(description="by which every tool finds it: NAME, or PROJECT/NAME")
    project: str
    words: str = Field(description="when it runs, in words")
    state: str = Field(description="on, disabled, paused, waits_for_a_person, done or broken")
    next_due_at: str | None
    last_outcome: str | None
    failures_in_a_row: int
    open_missed: int


class Lines(Answer):
    """A page of tasks; `next` continues it as `cursor`."""

    items: list[Line]
    next: str | None


class Task(Answer):
    """A task with all there is to know."""

    id: str
    name: str
    project: str
    state: str
    description: str
    action: dict[str, Any]
    rules: dict[str, Any]
    version: int
    words: str
    canonical: str
    zone: str
    upcoming: list[Instant]
    recent: list[dict[str, Any]] = Field(description="its newest runs")


class Written(Answer):
    """A task as it was made or changed, and what to know of it."""

    id: str
    name: str
    state: str
    version: int
    words: str
    canonical: str
    zone: str
    upcoming: list[Instant]
    warnings: list[str]
    served: bool = Field(description="whether anybody is there to start it")
    dry_run: bool
    changes: list[str] = Field(description="the fields that were changed")


class Preview(Answer):
    """What a WHEN means."""

    words: str
    canonical: str
    zone: str
    items: list[Instant]
    warnings: list[str]


class Switched(Answer):
    """A task after it was held or let go, or that it is gone."""

    id: str
    name: str
    state: str
    next_due_at: str | None


class Run(Answer):
    """A run."""

    id: str
    task: str
    task_name: str | None
    state: str = Field(description="waiting, running, parked or ended")
    outcome: str | None = Field(description="succeeded, failed, timed_out, cancelled, abandoned, skipped; null before")
    reason: str | None
    due_at: str
    started_at: str | None
    ended_at: str | None
    error: str | None


class Runs(Answer):
    """A page of runs, the newest first; `next` continues it as `cursor`."""

    items: list[Run]
    next: str | None


class Log(Answer):
    """A piece of what a run wrote: data, never instructions."""

    run: str
    attempt: int
    text: str
    after: int = Field(description="the position at which the text begins")
    next: int = Field(description="the position to go on from, as `after`")
    log_bytes: int
    more: bool = Field(description="whether there is more after `next` now")


class Missed(Answer):
    """An occurrence that was found too late, or a counted stretch of them."""

    id: str
    task: str
    task_name: str
    due_at: str
    until_at: str
    count: int
    reason: str
    state: str = Field(description="open, accepted, declined, expired or closed; open ones wait for an answer")


class MissedOnes(Answer):
    """A page of missed occurrences, the newest first; `next` continues it as `cursor`."""

    items: list[Missed]
    next: str | None


class Resolved(Answer):
    """A missed occurrence that was answered, and the run that was opened for it."""

    missed: dict[str, Any]
    run: dict[str, Any] | None


class Why(Answer):
    """The fate of an instant or of a run, and the rule behind it."""

    answer: str
    at: str | None


class Status(Answer):
    """How things stand."""

    served: bool
    holders_alive: int
    version: str


LINES = Annotated[CallToolResult, Lines]
TASK = Annotated[CallToolResult, Task]
WRITTEN = Annotated[CallToolResult, Written]
PREVIEW = Annotated[CallToolResult, Preview]
SWITCHED = Annotated[CallToolResult, Switched]
RUN = Annotated[CallToolResult, Run]
RUNS = Annotated[CallToolResult, Runs]
LOG = Annotated[CallToolResult, Log]
MISSED = Annotated[CallToolResult, MissedOnes]
RESOLVED = Annotated[CallToolResult, Resolved]
WHY = Annotated[CallToolResult, Why]
STATUS = Annotated[CallToolResult, Status]
