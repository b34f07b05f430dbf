"""What a person skipped beforehand: stretches of time in which a task opens nothing."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """All occurrences of a task from the first to the last instant, both included, skipped by whom and why."""

    first: datetime
    last: datetime
    by: str
    note: str | None
