"""The one place that asks the machine for the time.

Three clocks, for three questions: the *civil* clock says what is due, the *lease* clock says who holds
(monotonic; blind to sleep and to steps of the civil clock; comparable between all processes of one boot),
and the *boot* clock counts sleep too.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
INSTANTS_KEPT = 4096
"""Rows that are read together mostly name the same instants."""
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_told: ContextVar["Told | None"] = ContextVar("told", default=None)


def now() -> datetime:
    """Civil time of this machine, aware, in UTC."""
    told = _told.get()
    return datetime.now(UTC) if told is None else told.now()


def lease_us() -> int:
    """Microseconds on the lease clock: CLOCK_MONOTONIC, which stops in sleep and never steps."""
    told = _told.get()
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000 if told is None else told.lease_us()


def slept_us() -> int:
    """Microseconds that this machine has slept since its boot: what CLOCK_BOOTTIME counts and CLOCK_MONOTONIC does not.

    Two readings of them one after the other are never closer, so that only a growth means anything.
    """
    if _told.get() is not None:
        return 0
    return (time.clock_gettime_ns(time.CLOCK_BOOTTIME) - time.clock_gettime_ns(time.CLOCK_MONOTONIC)) // 1000


def boottime_us() -> int:
    """Microseconds on CLOCK_BOOTTIME, which goes on in sleep and never steps."""
    told = _told.get()
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000 if told is None else told.lease_us()


def monotonic_s() -> float:
    """Seconds on CLOCK_MONOTONIC, for waits and for measuring spans inside this process."""
    told = _told.get()
    return time.monotonic() if told is None else told.lease_us() / 1e6


def boot_id() -> str:
    """Identify this boot of this machine; lease instants of another boot are over."""
    told = _told.get()
    if told is not None:
        return told.boot_id()
    try:
        return BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        # Without the kernel's word, a boot is told by the civil instant at which its monotonic clock began.
        return f"boot-{round(time.time() - time.monotonic(), -1):.0f}"


class Clock:
    """The clocks a store and a holder decide by; a simulation gives another of the same shape."""

    def now(self) -> datetime:
        """Civil time, aware, in UTC."""
        return now()

    def lease_us(self) -> int:
        """Microseconds on the lease clock."""
        return lease_us()

    def awake_us(self) -> int:
        """Microseconds on a clock of this machine that stops in sleep and never steps."""
        return self.lease_us()

    def slept_us(self) -> int:
        """How long the machine has slept since its boot; only a growth means anything."""
        return slept_us()

    def trust_us(self) -> int:
        """Microseconds on the clock by which a holder trusts its own leases; only differences mean anything."""
        return self.lease_us()

    def ahead_us(self) -> int:
        """By how much the lease clock is ahead of the one by which trust is counted, as it was seen last."""
        return 0

    def boot_id(self) -> str:
        """This boot of this machine."""
        return boot_id()

    def lease_boot(self) -> str:
        """To what the lease clock's instants belong: those of another are over."""
        return self.boot_id()

    def begun(self) -> tuple[datetime, int]:
        """Read both clocks for a transaction that has just begun."""
        return self.now(), self.lease_us()


class Told(Clock):
    """A clock that is told to all who ask this module, in place of the machine's, inside `telling`."""

    def pause(self, seconds: float) -> None:
        """Let so many seconds pass on it."""
        raise NotImplementedError


@contextmanager
def telling(told: Told) -> Iterator[None]:
    """Let whoever asks this module inside, in this thread, be told another time than the machine's: a simulation's."""
    before = _told.set(told)
    try:
        yield
    finally:
        _told.reset(before)


def pause(seconds: float) -> None:
    """Let this thread sleep for so many seconds."""
    told = _told.get()
    if told is None:
        time.sleep(seconds)
    else:
        told.pause(seconds)


def to_us(instant: datetime) -> int:
    """Whole microseconds since 1970 UTC, as instants are stored."""
    return (instant - EPOCH) // MICROSECOND


@lru_cache(maxsize=INSTANTS_KEPT)
def from_us(us: int) -> datetime:
    """Give back the aware UTC instant that `to_us` stored."""
    return EPOCH + timedelta(microseconds=us)
