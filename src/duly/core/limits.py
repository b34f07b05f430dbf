"""Limits: which ones a run counts against, whether one more fits, and when the next start of a rate does."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from duly.core.names import key_of
from duly.core.task import Definition

UNSET_MOST = 1
"""What a limit allows that a task names and nobody has set: one at a time is the careful reading."""
AGENTS = "agents:"
AGENTS_MOST = 2
"""Agents of one project that are live at once, unless its limit is set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A limit as it stands: what it allows, what is taken of it, and when its rate has room again."""

    key: str
    most: int
    used: int = 0
    rate: int | None = None
    """How many starts fit into any span of `rate_for`."""
    rate_for: timedelta | None = None
    free_at: datetime | None = None
    """While the rate is reached: when the next start fits."""
    set_at: datetime | None = None
    set_by: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Short:
    """What keeps a run from starting now: a limit that is full, or a rate that is reached, with its figures."""

    what: Literal["limit", "rate"]
    limit: Limit
    weight: int


def weights_of(definition: Definition) -> Mapping[str, int]:
    """Give the limits that a run of this definition counts against, with its weight in each."""
    weights = dict(definition.rules.limits)
    if definition.action.get("kind") == "agent":
        weights.setdefault(AGENTS + key_of(definition.project), 1)
    return weights


def unset(key: str) -> Limit:
    """Give the limit that a key means before anybody has set it."""
    return Limit(key=key, most=AGENTS_MOST if key.startswith(AGENTS) else UNSET_MOST)


def short_of(weights: Mapping[str, int], limits: Mapping[str, Limit], now: datetime) -> Short | None:
    """Give the first limit, by key, that has no room for one more of these weights now; None where all have."""
    for key in sorted(weights):
        limit = limits.get(key) or unset(key)
        if limit.used + weights[key] > limit.most:
            return Short(what="limit", limit=limit, weight=weights[key])
        if limit.free_at is not None and limit.free_at > now:
            return Short(what="rate", limit=limit, weight=weights[key])
    return None


def next_start(starts: Sequence[datetime], rate: int, rate_for: timedelta) -> datetime | None:
    """Give when one more start fits, from the last starts in their order; None while there is room anyway.

    A start counts for exactly `rate_for`: at its own instant plus that span it is out.
    """
    return None if len(starts) < rate else sorted(starts)[-rate] + rate_for
