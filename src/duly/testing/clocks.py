"""Clocks of a simulated world: one true time, machines that boot, holders whose civil clocks differ, drift and step."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from math import ceil

from duly import clock

START = datetime(2026, 3, 2, 9, tzinfo=UTC)
BOOTED_US = 1_000_000_000
"""What the lease clock of a machine shows at the begin of a world: it has been up for a while."""
REBOOTED_US = 5_000_000
Wait = Callable[[float], None]


class Time:
    """The true time of a world, in microseconds since its begin; only the world lets it pass."""

    def __init__(self) -> None:
        self.us = 0
        self.store_off_us = 0
        """By how much the clock of the database is off, where that has one of its own."""
        self.turn_s = 1.0
        """What half a beat is in this world, where the house takes ten seconds for it."""

    @property
    def store_us(self) -> int:
        """What the clock of a database shows, in microseconds since 1970."""
        return clock.to_us(START) + self.us + self.store_off_us


class Machine:
    """One machine: its boot, its lease clock, and how far its civil clock is off."""

    def __init__(self, time: Time, *, name: str = "boot", rate: float = 1.0, up_us: int = BOOTED_US) -> None:
        self.time = time
        self.name = name
        self.rate = rate
        """How fast its clocks go, for one second of true time."""
        self.boots = 1
        self.off_us = 0
        """By how much its civil clock has been moved: by sleep, by hand, by the network's time."""
        self.cut_off_until_us = 0
        """Nobody on it reaches the store before this instant."""
        self._booted_us = -up_us

    @property
    def boot(self) -> str:
        """The id of its present boot."""
        return f"{self.name}-{self.boots}"

    @property
    def lease_us(self) -> int:
        """Its lease clock: monotonic, from its last boot on."""
        return int((self.time.us - self._booted_us) * self.rate)

    def true_us(self, lease_us: int) -> int:
        """Give the true instant of one on its lease clock; never before that is over."""
        return self._booted_us + ceil(lease_us / self.rate)

    def reboot(self) -> None:
        """Begin another boot: the lease clock counts anew."""
        self.boots += 1
        self._booted_us = self.time.us - REBOOTED_US


class Face(clock.Told):
    """What one process sees of the time; its civil clock may be off and drift, its lease clock is the machine's."""

    def __init__(self, machine: Machine, wait: Wait, *, off_us: int = 0, drift: float = 0.0) -> None:
        self.machine = machine
        self._wait = wait
        self.off_us = off_us
        self.drift = drift

    def now(self) -> datetime:
        """Civil time as this process is told it."""
        us = self.machine.time.us
        return START + timedelta(microseconds=us + self.machine.off_us + self.off_us + int(us * self.drift))

    def lease_us(self) -> int:
        """Microseconds on the machine's lease clock."""
        return self.machine.lease_us

    def boot_id(self) -> str:
        """The machine's present boot."""
        return self.machine.boot

    def pause(self, seconds: float) -> None:
        """Let so many seconds pass, in which everybody else goes on."""
        self._wait(seconds)
