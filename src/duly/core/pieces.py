"""A span of time cut where ranges that a person skipped begin and end."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from duly.core.schedule import TICK
from duly.core.skips import Range


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """The time in (after, until], and the range that skips it, if one does."""

    after: datetime
    until: datetime
    by_hand: Range | None


def pieces(after: datetime, until: datetime, skipped: Sequence[Range]) -> Iterator[Piece]:
    """Cut (after, until] into pieces, in order and without a hole; where ranges overlap, what began first counts."""
    at = after
    for range_ in sorted(skipped, key=lambda one: one.first):
        first, last = max(range_.first - TICK, at), min(range_.last, until)
        if first >= last:
            continue
        if first > at:
            yield Piece(after=at, until=first, by_hand=None)
        yield Piece(after=first, until=last, by_hand=range_)
        at = last
    if at < until:
        yield Piece(after=at, until=until, by_hand=None)
