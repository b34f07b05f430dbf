"""What becomes of occurrences whose time has come: opened, or not opened with a reason, one by one or counted."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

from duly.core.values import value


@value
class Opening:
    """An occurrence to open a run for; it shall not start before `start_at`, from which its lateness counts."""

    due_at: datetime
    start_at: datetime
    opened_by: Literal["schedule", "catch_up"]
    late_by: timedelta
    queues: bool = False
    """It waits for its seat, whatever its task's rule for taken ones: what is caught up together is no rival."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Occurrences in a row with one fate that is no start: the first, the last, how many, why, with which figures."""

    first: datetime
    last: datetime
    count: int
    reason: str
    details: Mapping[str, object] = field(default_factory=dict)
    by: str | None = None


Fate = Opening | Stretch
