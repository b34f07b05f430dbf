"""What the Python face takes and gives: rules as keywords, and tasks and runs as small values.

What is given holds the fields that programs ask for, and all of it as the JSON that every other front shows.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, TypedDict

Span = str | timedelta
"""A length of time: a timedelta of whole seconds, or a text such as `15m`."""
Moment = str | datetime
"""An instant: a datetime (without an offset it is meant on the task's wall), or a text as in RFC 3339."""
Function = str | Callable[..., Any]
"""An importable function, or its name `package.module:function`."""
Outcome = Literal["succeeded", "failed", "timed_out", "cancelled", "abandoned", "skipped"]
State = Literal["waiting", "running", "parked", "ended"]


class Rules(TypedDict, total=False):
    """How a task is judged when things are not normal; docs/late.md and docs/commands.md tell what each means."""

    on_missed: Literal["run", "run_all", "skip", "offer"]
    at_most: int
    max_age: Span
    grace: Span
    offer_for: Span
    overlap: Literal["skip", "queue", "cancel_running", "kill_running"]
    seats: int
    queue: int
    limits: Mapping[str, int]
    budget: Mapping[str, object]
    priority: int
    needs: Sequence[str]
    timeout: Span
    idle_timeout: Span
    leftovers: Literal["end", "leave"]
    retries: int
    retry_after: Span
    retry_up_to: Span
    on_interrupt: Literal["fail", "retry", "resume"]
    gate: str | Mapping[str, object]
    success_when: Mapping[str, object]
    pause_after: int
    store_access: Literal["none", "read", "run"]
    spread: Span
    gap: Literal["run", "skip"]
    fold: Literal["first", "second", "both"]
    start: Moment
    until: Moment
    times: int
    remove_when_done: bool
    estimate: Mapping[str, object]
    unattended: Literal["deny", "allow", "fail", "park"]
    permissions: Sequence[Mapping[str, str]]
    answer_within: Span
    then: Literal["fail", "deny"]
    notify: Sequence[str]
    notify_after: int
    ping: str


class Options(Rules, total=False):
    """A task's rules, and what else is said of it beside its name, its times and its work."""

    project: str
    zone: str
    """Where its times are meant; this machine's zone where nothing is said."""
    description: str
    labels: Mapping[str, str]
    enabled: bool
    """Said when it is first defined; afterwards it is a person's switch."""
    args: Sequence[object] | Mapping[str, object]
    """What a function is called with; JSON values."""
    place: Literal["child", "thread"]
    """Where a function runs."""
    cwd: str
    env: Mapping[str, str]


class Work(Options, total=False):
    """What is done, one of these, and all else that is said of a task."""

    call: Function
    command: Sequence[str]
    shell: str
    agent: str
    """An agent by its name in the config, which is prompted."""
    prompt: str
    prompt_file: str
    """In the place of `prompt`: read at each start, from the folder to work in."""
    model: str
    worktree: bool
    url: str
    """An address that is sent to."""
    method: str
    headers: Mapping[str, str]
    body: str
    sign: str


class Serving(TypedDict, total=False):
    """How a holder shall run: docs/python.md tells what each means."""

    slots: int
    """How many runs at once; 4, or as many as CPUs where those are more."""
    drain: Span
    """How long live runs may go on at a stop before they are left to whoever serves next."""
    on_stop: Literal["hand-over", "cancel"]
    """What becomes then of commands that still run: left to whoever serves next, or ended."""
    labels: Sequence[str]
    beat: Span
    lease: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A task as it stood when it was asked for; `json` is all of it, as `duly show --json` has it."""

    id: str
    name: str
    project: str
    enabled: bool
    paused: bool
    done: bool
    version: int
    next_due_at: datetime | None
    last_outcome: Outcome | None
    json: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run as it stood when it was asked for; `json` is all of it, as `duly show --json` has it."""

    id: str
    task: str
    """The id of its task."""
    task_name: str
    state: State
    outcome: Outcome | None
    reason: str | None
    error: str | None
    exit_code: int | None
    attempt: int
    due_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    json: Mapping[str, Any]


def task_of(shape: Mapping[str, Any]) -> Task:
    """Make the value of a task from its JSON."""
    last = shape["last_run"]
    return Task(
        id=shape["id"],
        name=shape["name"],
        project=shape["project"],
        enabled=shape["enabled"],
        paused=bool(shape["paused"]),
        done=shape["done"],
        version=shape["version"],
        next_due_at=instant(shape["next_due_at"]),
        last_outcome=None if last is None else last["outcome"],
        json=shape,
    )


def run_of(shape: Mapping[str, Any]) -> Run:
    """Make the value of a run from its JSON."""
    due = instant(shape["due_at"])
    assert due is not None
    return Run(
        id=shape["id"],
        task=shape["task"],
        task_name=shape["task_name"] or "",
        state=shape["state"],
        outcome=shape["outcome"],
        reason=shape["reason"],
        error=shape["error"],
        exit_code=shape["exit_code"],
        attempt=shape["attempt"],
        due_at=due,
        started_at=instant(shape["started_at"]),
        ended_at=instant(shape["ended_at"]),
        json=shape,
    )


def instant(text: str | None) -> datetime | None:
    """Read an instant as JSON has it."""
    return None if text is None else datetime.fromisoformat(text)
