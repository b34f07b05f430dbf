"""The header Range, as far as one stretch of bytes is asked for."""

import re
from collections.abc import Sequence

from duly.core.reading import shown
from duly.web.problems import Unreadable

SPELLED = re.compile(r"bytes=(\d{0,18})-(\d{0,18})", re.ASCII)


def wanted(header: str | None, size: int) -> tuple[int, int] | None:
    """Read which bytes are asked for, as begin and end; None where all are. The end may lie beyond the size.

    Unreadable 400 where the header is none that is read here: another unit, several ranges, a range backwards.
    """
    if header is None:
        return None
    found = SPELLED.fullmatch(header.replace(" ", ""))
    if found is None or not any(found.groups()):
        raise _unreadable(header, "one range of bytes is wanted, such as bytes=0-1023 or bytes=-4096")
    first, last = found.groups()
    if not first:
        return max(0, size - int(last)), size
    if not last:
        return int(first), max(size, int(first))
    if int(last) < int(first):
        raise _unreadable(header, "it ends before it begins")
    return int(first), int(last) + 1


def within(asked: tuple[int, int], kept: Sequence[tuple[int, int]]) -> tuple[int, int] | None:
    """Give the first stretch of what is kept that was asked for; None where nothing of it is kept."""
    for begin, end in kept:
        lower, upper = max(asked[0], begin), min(asked[1], end)
        if lower < upper:
            return lower, upper
    return None


def _unreadable(header: str, why: str) -> Unreadable:
    return Unreadable(400, f"the header Range {shown(header)} is not read: {why}", field="Range")
