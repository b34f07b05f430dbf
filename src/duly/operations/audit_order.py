"""What was written in nearly the order it is wanted in, put in that order in bounded memory."""

import heapq
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

T = TypeVar("T", bound=tuple[Any, ...])
KEPT = 4_096
"""What is out of order by less than this is put right on the way; planning writes not nearly so much at once."""


class FarOutOfOrder(Exception):
    """Something came so late that what comes before it was given already."""


def in_order(found: Iterable[T], most: int = KEPT) -> Iterator[T]:
    """Give all of them in order; FarOutOfOrder where one comes more than `most` places late."""
    kept: list[T] = []
    last: T | None = None
    for one in found:
        kept.append(one)
        if len(kept) >= 2 * most:
            kept.sort()
            last = _check(last, kept)
            yield from kept[:most]
            last = kept[most - 1]
            del kept[:most]
    kept.sort()
    _check(last, kept)
    yield from kept


def in_passes(read: Callable[[], Iterable[T]], most: int = KEPT * 4) -> Iterator[T]:
    """Give all of them in order however they lie, reading them once for every `most` of them."""
    last: T | None = None
    while True:
        page = heapq.nsmallest(most, (one for one in read() if last is None or one > last))
        yield from page
        if len(page) < most:
            return
        last = page[-1]


def _check(last: T | None, kept: list[T]) -> T | None:
    if last is not None and kept and kept[0] < last:
        raise FarOutOfOrder
    return last
