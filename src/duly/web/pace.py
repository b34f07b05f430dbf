"""How fast one may ask: failed guesses by address and requests by token, each a bucket that fills with time."""

import threading
from collections import OrderedDict

from duly import clock
from duly.errors import Refused

KEPT_MOST = 10_000
"""Askers that are remembered; who asked longest ago is forgotten first."""
FAILED_AT_ONCE, FAILED_PER_S = 30.0, 0.5
ASKED_AT_ONCE, ASKED_PER_S = 2_000.0, 200.0


class Pace:
    """Counts in memory, for this process alone: it protects the process, and decides nothing about tasks."""

    def __init__(
        self,
        *,
        failed: tuple[float, float] = (FAILED_AT_ONCE, FAILED_PER_S),
        asked: tuple[float, float] = (ASKED_AT_ONCE, ASKED_PER_S),
    ) -> None:
        self._failed = _Buckets(*failed)
        self._asked = _Buckets(*asked)

    def failed(self, client: str) -> None:
        """Count a wrong token; refused `rate_limited` where an address brought too many. A right one always passes."""
        self._failed.take(client, "too many wrong tokens came from this address")

    def asked(self, secret: str) -> None:
        """Count a request; refused `rate_limited` where a token asks faster than it may."""
        self._asked.take(secret, "this token asks faster than it may")


class _Buckets:
    def __init__(self, most: float, per_s: float) -> None:
        self._most, self._per_s = most, per_s
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, key: str, sentence: str) -> None:
        now_s = clock.monotonic_s()
        with self._lock:
            left, at_s = self._left.pop(key, (self._most, now_s))
            left = min(self._most, left + (now_s - at_s) * self._per_s)
            fits = left >= 1
            self._left[key] = (left - 1 if fits else left, now_s)
            if len(self._left) > KEPT_MOST:
                self._left.popitem(last=False)
        if not fits:
            wait_s = round((1 - left) / self._per_s, 3)
            raise Refused("rate_limited", sentence, details={"retry_after_s": wait_s})
