"""The one place that asks the machine for chance."""

import random
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Source = random.Random
"""What a simulation draws from."""
_drawn: ContextVar["Source | None"] = ContextVar("drawn", default=None)


def token_bytes(count: int) -> bytes:
    """So many bytes that nobody can guess."""
    drawn = _drawn.get()
    return secrets.token_bytes(count) if drawn is None else drawn.randbytes(count)


def between(low: float, high: float) -> float:
    """Draw a number between two others, for jitter; not for secrets."""
    drawn = _drawn.get()
    return random.uniform(low, high) if drawn is None else drawn.uniform(low, high)


def seeded(seed: int | str) -> Source:
    """Give a source whose draws follow from a seed, and from nothing else."""
    return random.Random(seed)


@contextmanager
def drawing(source: Source) -> Iterator[None]:
    """Let whoever asks this module inside, in this thread, draw from this source: a simulation that can be replayed."""
    before = _drawn.set(source)
    try:
        yield
    finally:
        _drawn.reset(before)
