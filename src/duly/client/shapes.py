"""The shapes of answers as types; instants are texts (RFC 3339, UTC), and there may be more fields than these."""

from typing import Any, Literal, TypedDict


class Task(TypedDict):
    """A task as it stands."""

    id: str
    project: str
    name: str
    description: str | None
    labels: dict[str, str]
    enabled: bool
    done: bool
    broken: dict[str, str] | None
    paused: list[dict[str, Any]]
    triggers: list[dict[str, Any]]
    zone: str
    action: dict[str, Any]
    rules: dict[str, Any]
    source: dict[str, Any]
    version: int
    created_at: str
    created_by: str
    updated_at: str
    next_due_at: str | None
    next_start_at: str | None
    last_run: dict[str, Any] | None
    counts: dict[str, int]


class Run(TypedDict):
    """A run as it stands."""

    id: str
    task: str
    task_name: str | None
    project: str | None
    occurrence: str
    due_at: str
    opened_at: str
    opened_by: str
    opened_by_whom: str | None
    state: Literal["waiting", "running", "parked", "ended"]
    outcome: str | None
    reason: str | None
    attempt: int
    fence: int
    seat: int | None
    holder: str | None
    host: str | None
    input: str | None
    retry_of: str | None
    waiting_for: dict[str, Any] | None
    started_at: str | None
    ended_at: str | None
    late_by_s: float | None
    exit_code: int | None
    signal: int | None
    error: str | None
    session: str | None
    question: str | None
    log_bytes: int
    log_cut: int
    attempts: list[dict[str, Any]]


class Missed(TypedDict):
    """A missed occurrence, or a counted stretch of them."""

    id: str
    task: str
    occurrence: str
    due_at: str
    until_at: str
    count: int
    reason: str
    state: str
    run: str | None


class Question(TypedDict):
    """What the work of a run asks."""

    id: str
    run: str
    task: str
    asked_at: str
    until: str
    kind: Literal["permission", "question"]
    text: str
    options: list[str]
    state: str
    answer: str | None


class Entry(TypedDict):
    """One entry of the ledger."""

    seq: int
    at: str
    task: str | None
    occurrence: str | None
    run: str | None
    attempt: int | None
    kind: str
    reason: str | None
    holder: str | None
    by: str | None
    count: int | None
    until_at: str | None
    details: dict[str, Any]


class Reset(TypedDict):
    """Entries after `after` are gone or are none of this store's: read anew what is shown, the stream goes on."""

    after: int
    last: int
