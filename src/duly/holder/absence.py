"""The store away: since when, told once and then at most once a minute, and as an outage once it is back."""

from collections.abc import Callable, Mapping
from datetime import timedelta

from duly import clock as machine
from duly.clock import Clock
from duly.core.outages import LEAST, Outage
from duly.errors import StoreAway

TOLD_AGAIN_S = 60.0


class Absence:
    """Knows whether the store can be used; `begun_s` since when it cannot, on the clock of waits."""

    def __init__(self, clock: Clock, tell: Callable[[str, Mapping[str, object]], None]) -> None:
        self._clock = clock
        self._tell = tell
        self.begun_s: float | None = None
        self._error = ""
        self._told_s: dict[str, float] = {}

    def begin(self, error: StoreAway) -> float:
        """Note that the store cannot be used; gives for how many seconds that has been so."""
        if self.begun_s is None:
            self.begun_s, self._error = machine.monotonic_s(), error.message
        self.tell("store away", error)
        return machine.monotonic_s() - self.begun_s

    def tell(self, event: str, error: StoreAway) -> None:
        """Tell of a store that cannot be used, once and then at most once a minute."""
        now_s = machine.monotonic_s()
        if now_s - self._told_s.get(event, float("-inf")) >= TOLD_AGAIN_S:
            self._told_s[event] = now_s
            self._tell(event, {"error": error.message})

    def end(self, claims_undone: int) -> Outage | None:
        """Note that the store can be used; gives the outage that this ends, if it cost a claim or was no moment."""
        if self.begun_s is None:
            return None
        away = timedelta(seconds=machine.monotonic_s() - self.begun_s)
        self._tell("store back", {"away_s": round(away.total_seconds(), 1)})
        self.begun_s = None
        self._told_s.clear()
        if away < LEAST and not claims_undone:
            return None
        now = self._clock.now()
        details = {"error": self._error, "claims_undone": claims_undone or None}
        return Outage(cause="store_away", since=now - away, until=now, details=details)
