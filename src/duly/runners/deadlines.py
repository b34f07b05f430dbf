"""Until when a holder is believed, as a file that its heart moves and its keepers read: they end the work without it.

Only where another host might start the work again; beside a SQLite file there is none. Standard library only: keepers
load it by path. Instants are microseconds of CLOCK_BOOTTIME, which counts sleep.
"""

import time
from pathlib import Path

from duly.runners import processes

SUFFIX = ".deadline"
FILE_BYTES = 64
LOOK_EVERY_MS = 1000  # a sleep of the machine moves the clock, and wakes nobody
NEVER = 2**62


def write(holders: Path, holder: str, trust_us: int, kill_us: int) -> None:
    """Let a holder's keepers work until an instant, and be ended by force at the second."""
    aside = holders / f".{holder}{SUFFIX}"
    aside.write_text(f"{trust_us} {kill_us}\n", encoding="ascii")
    aside.rename(holders / f"{holder}{SUFFIX}")


class Deadline:
    """A keeper's own view of the deadline of the holder it obeys."""

    def __init__(self, folder: int, holder: str) -> None:
        self.holder = holder
        self._folder = folder
        self._trust_us = self._kill_us = NEVER
        self._look()

    def over(self) -> bool:
        """The holder is not believed any more: the work has to end."""
        return self._trust_us != NEVER and self._is_past() and not self._look()

    def kill(self) -> bool:
        """What was asked to end has to be gone now."""
        return self._is_past() and _now_us() >= self._kill_us

    def wait_ms(self, wait: int | None) -> int | None:
        """How long to sleep at most, where nothing else wakes sooner than this."""
        if self._trust_us == NEVER:
            return wait
        ahead = (self._kill_us if self._is_past() else self._trust_us) - _now_us()
        mine = max(0, min(LOOK_EVERY_MS, ahead // 1000 + 1))
        return mine if wait is None else min(wait, mine)

    def _is_past(self) -> bool:
        return _now_us() >= self._trust_us

    def _look(self) -> bool:
        """Read the file anew, and say whether it lies ahead; one that is gone or torn changes nothing."""
        try:
            said = processes.read_file(f"../../holders/{self.holder}{SUFFIX}", FILE_BYTES, self._folder).split()
            self._trust_us, self._kill_us = int(said[0]), int(said[1])
        except (OSError, ValueError, IndexError):
            pass
        return not self._is_past()


def _now_us() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000
