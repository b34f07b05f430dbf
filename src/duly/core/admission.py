"""Whether a waiting run whose seat is free may be claimed now."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import Any

from duly.core.budgets import Lacking, key_of_budget
from duly.core.lateness import idle_lateness, waited_too_long
from duly.core.limits import Limit, Short, short_of
from duly.core.rearming import is_superseded
from duly.core.run import BY_TIME_OR_EVENT, Run
from duly.core.task import Rules, Task

NOTHING: Mapping[str, Any] = MappingProxyType({})
BEYOND_PRIORITY = 1_000_000
"""More than any priority: what a person asked for goes before all, what fills the past goes after."""


@dataclass(frozen=True, slots=True)
class Admitted:
    """It may start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """It will not start: the reason and its figures."""

    reason: str
    details: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """It may not start yet: for what, which one, and until when where that is known."""

    what: str
    key: str | None = None
    until: datetime | None = None


def rank_of(opened_by: str, rules: Rules) -> int:
    """Give the rank of a run among those that wait, the lower first: by hand, then by priority, backfills last."""
    if opened_by in {"manual", "offer"}:
        return -BEYOND_PRIORITY
    return BEYOND_PRIORITY - rules.priority if opened_by == "backfill" else -rules.priority


def admit(
    run: Run,
    task: Task,
    rules: Rules | None,
    *,
    paused: bool,
    kinds: Collection[str],
    now: datetime,
    kind: str | None = None,
    labels: Collection[str] = (),
    weights: Mapping[str, int] = NOTHING,
    limits: Mapping[str, Limit] = NOTHING,
    lacks: Lacking | None = None,
) -> Admitted | Skipped | Waits:
    """Judge one waiting run with a free seat; `rules` are those it will be performed by, None where they do not read.

    `kind` is its action's, where that may not be its task's any more; `kinds` and `labels` are the holder's;
    `weights` is what the run takes of `limits`, as these stand now; `lacks` is what its budgets lack for it.
    """
    by_time = run.opened_by in BY_TIME_OR_EVENT
    if task.removed_at is not None:
        return Skipped(reason="task_removed")
    if by_time and not task.definition.enabled:
        return Skipped(reason="disabled")
    if paused and not run.anyway:
        return Skipped(reason="paused") if by_time else Waits(what="pause")
    if rules is None or task.broken is not None:
        return Waits(what="definition")
    if is_superseded(run, task.scheduled_runs):
        return Skipped(reason="superseded")
    if waited_too_long(run, rules, now):
        late = idle_lateness(run, now, worked_for=run.worked_for).total_seconds()
        return Skipped(reason="stale", details={"late_by_s": late, "max_age_s": rules.max_age.total_seconds()})
    kind = kind or str(task.definition.action.get("kind"))
    if kind not in kinds:
        return Waits(what="runner", key=kind)
    for label in rules.needs:
        if label not in labels:
            return Waits(what="label", key=label)
    return _room(short_of(weights, limits, now), lacks)


def _room(short: Short | None, lacks: Lacking | None) -> Admitted | Waits:
    if short is not None:
        return Waits(what=short.what, key=short.limit.key, until=short.limit.free_at if short.what == "rate" else None)
    if lacks is not None:
        return Waits(what="budget", key=key_of_budget(lacks.standing.budget), until=lacks.standing.until)
    return Admitted()
