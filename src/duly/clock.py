"""The one place that asks the machine for the time.

Three clocks, for three questions: the *civil* clock says what is due, the *lease* clock says who holds
(monotonic; blind to sleep and to steps of the civil clock; comparable between all processes of one boot),
and the *boot* clock counts sleep too.
"""

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def now() -> datetime:
    """Civil time of this machine, aware, in UTC."""
    return datetime.now(UTC)


def lease_us() -> int:
    """Microseconds on the lease clock: CLOCK_MONOTONIC, which stops in sleep and never steps."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000


def monotonic_s() -> float:
    """Seconds on CLOCK_MONOTONIC, for waits and for measuring spans inside this process."""
    return time.monotonic()


def boot_id() -> str:
    """Identify this boot of this machine; lease instants of another boot are over."""
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

    def boot_id(self) -> str:
        """The boot to which the lease clock's instants belong."""
        return boot_id()


def pause(seconds: float) -> None:
    """Let this thread sleep for so many seconds."""
    time.sleep(seconds)


def to_us(instant: datetime) -> int:
    """Whole microseconds since 1970 UTC, as instants are stored."""
    return (instant - EPOCH) // MICROSECOND


def from_us(us: int) -> datetime:
    """Give back the aware UTC instant that `to_us` stored."""
    return EPOCH + timedelta(microseconds=us)
