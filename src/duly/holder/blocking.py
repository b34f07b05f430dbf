"""A process that stopped inside a write blocks all: it is named, and killed where it is a holder past its lease.

Asked after a beat was refused the lock. A frozen holder past its lease may be taken over in every other respect, but
nobody could write that down while it holds the lock.
"""

import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from duly.clock import MICROSECOND
from duly.runners import processes
from duly.store import Store
from duly.store.address import Address

LOCKS = Path("/proc/locks")
WRITE_BYTE = 120
"""The byte of a file `-shm` whose lock is the right to write (SQLite's file format for the WAL index)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocker:
    """The process that holds the write lock of a store."""

    pid: int
    ticks: int
    name: str
    stopped: bool


def who_writes(store_path: Path) -> Blocker | None:
    """Name the process that holds the write lock now; None where it cannot be seen, or is ourselves."""
    try:
        shm = store_path.with_name(store_path.name + "-shm").resolve().stat()
        lines = LOCKS.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return None
    # Asked of the kernel's table: opening and closing the file itself would drop locks of our own on it.
    wanted = f"{os.major(shm.st_dev):02x}:{os.minor(shm.st_dev):02x}:{shm.st_ino}"
    for line in lines:
        words = line.split()
        if len(words) == 8 and words[1] == "POSIX" and words[3] == "WRITE" and words[5] == wanted:
            found = processes.read(int(words[4])) if int(words[6]) <= WRITE_BYTE else None
            if found is not None and found.pid != os.getpid():
                stopped = found.state in processes.STOPPED
                return Blocker(pid=found.pid, ticks=found.ticks, name=found.name, stopped=stopped)
    return None


class Unblocker:
    """Frees a store whose lock is held by a holder that was stopped in the middle of a write."""

    def __init__(self, store: Store, boot: str, tell: Callable[[str, dict[str, object]], None]) -> None:
        self._store = store
        self._boot = boot
        self._tell = tell
        self.look: Callable[[Path], Blocker | None] = who_writes
        self.killed: set[str] = set()
        """Holders that were killed here, for the ledger to tell."""

    def step(self) -> str | None:
        """Name who blocks the store; kill it if it is a holder, stopped, and past its lease. Gives its id if killed."""
        where = self._store.address
        # A server ends by itself the transactions of who stands still.
        blocker = self.look(where.path) if isinstance(where, Address) else None
        if blocker is None:
            return None
        self._tell("store blocked", {"pid": blocker.pid, "name": blocker.name, "stopped": blocker.stopped})
        if not blocker.stopped:
            return None
        with self._store.read() as session:
            rows = [row for row in session.holders.living() if (row.pid, row.ticks) == (blocker.pid, blocker.ticks)]
        for row in rows:
            over = self._store.clock.lease_us() - row.beat_lease_us > row.lease_for // MICROSECOND
            if row.boot == self._boot and over and processes.send((blocker.pid, blocker.ticks), signal.SIGKILL):
                self.killed.add(row.id)
                return row.id
        return None
