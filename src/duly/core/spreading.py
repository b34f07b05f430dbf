"""Spread: by how much of a span one occurrence of one task starts after its due instant.

The share is drawn from the task's id and the due instant alone: it is the same in every process and after every
restart, and no part of the occurrence's key. It is less than the distance to the next occurrence, so that starts keep
their order.
"""

from datetime import datetime, timedelta
from hashlib import blake2b
from zoneinfo import ZoneInfo

from duly.core.occurrences import at_key
from duly.core.schedule import next_due
from duly.core.task import Definition

STEP = timedelta(milliseconds=1)
"""Shares are whole milliseconds."""
SHARE_BITS = 64


def share_of(task: str, due_at: datetime, *, spread: timedelta, following: datetime | None) -> timedelta:
    """Give the wait of this task's occurrence: from nothing to less than `spread`, or than the distance to the next."""
    room = spread if following is None else min(spread, following - due_at)
    if room < STEP:
        return timedelta(0)
    drawn = blake2b(f"{task} {at_key(due_at)}".encode(), digest_size=SHARE_BITS // 8).digest()
    return (room // STEP * int.from_bytes(drawn, "big") >> SHARE_BITS) * STEP


def start_of(task: str, definition: Definition, zone: ZoneInfo, due_at: datetime) -> datetime:
    """Give the instant before which this occurrence shall not start, and from which it is late."""
    spread = definition.rules.spread
    if not spread:
        return due_at
    following = next_due(definition, zone, due_at)
    return due_at + share_of(task, due_at, spread=spread, following=following)
