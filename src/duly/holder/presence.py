"""Being alive, and proof of death: every holder locks a file of its own in the run folder.

Children do not inherit the lock. At the same place a free lock proves the holder dead; a pid proves nothing.
"""

import contextlib
import fcntl
import os
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from duly import clock
from duly.clock import MICROSECOND
from duly.errors import StoreAway
from duly.runners import deadlines
from duly.store import Session, Store
from duly.store.locks import SUFFIX, lock_files, lock_path
from duly.store.rows import HolderRow

Life = Literal["alive", "dead", "unknown"]


class Presence:
    """This holder's lock, from its start to its end or its death."""

    def __init__(self, run_folder: Path, holder: str) -> None:
        self._holder = holder
        self.released = False
        """This life is over, or is to look so."""
        self.path = lock_path(run_folder, holder)
        try:
            run_folder.mkdir(mode=0o700, exist_ok=True)
            self.path.parent.mkdir(mode=0o700, exist_ok=True)
            self._descriptor = _locked(self.path)
        except OSError as error:
            raise StoreAway(f"the run folder {run_folder} cannot be used: {error.strerror}") from error
        _clear_past(self.path.parent)

    def believed_until(self, trust_us: int, kill_us: int) -> None:
        """Move the deadline of this holder's keepers: instants of the boot clock."""
        deadlines.write(self.path.parent, self._holder, trust_us, kill_us)

    def leave(self) -> None:
        """End this life: the file goes, and with it the lock."""
        with contextlib.suppress(OSError):
            self.path.unlink()
        self.release()

    def release(self) -> None:
        """Let go of the lock and leave its file, as a death does."""
        self.released = True
        os.close(self._descriptor)


def life_of(run_folder: Path, holder: str) -> Life:
    """Whether a holder of this place lives, by its lock alone; `unknown` where its file is missing."""
    try:
        descriptor = os.open(lock_path(run_folder, holder), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return "unknown"
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return "alive"
    finally:
        os.close(descriptor)
    return "dead"


def left_behind(run_folder: Path) -> list[str]:
    """Give the ids of holders of this place whose lock files are there and free."""
    return [holder for holder in lock_files(run_folder) if life_of(run_folder, holder) == "dead"]


def looking(store: Store) -> Callable[[Session, HolderRow], bool]:
    """Give the look at another holder that says whether it lives: not dead, and not silent past its lease."""
    # Those of another boot of this machine are dead; where holders are on other machines too, that says nothing.
    boot, run_folder = store.clock.boot_id() if store.engine.one_place else None, store.run_folder

    def lives(session: Session, row: HolderRow) -> bool:
        if boot not in (None, row.boot) or session.lease_us - row.beat_lease_us > row.lease_for // MICROSECOND:
            return False
        return life_of(run_folder, row.id) != "dead"

    return lives


def drop_lock(run_folder: Path, holder: str) -> None:
    """Remove the lock file of a holder that no store knows as living."""
    with contextlib.suppress(OSError):
        lock_path(run_folder, holder).unlink()


def forget(run_folder: Path, holder: str) -> None:
    """Remove the lock file of a holder proven dead."""
    drop_lock(run_folder, holder)
    with contextlib.suppress(OSError):
        lock_path(run_folder, holder).with_suffix(deadlines.SUFFIX).unlink()


def _locked(path: Path) -> int:
    """Make the file and lock it; made again where somebody cleared it away before it was locked."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if path.exists():
            return descriptor
        os.close(descriptor)


def _clear_past(folder: Path) -> None:
    """Remove the deadlines of lives that are over: they were kept for work that was handed over, and are past."""
    for path in folder.glob(f"[!.]*{deadlines.SUFFIX}"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            last_us = int(path.read_text(encoding="ascii").split()[1])
            if last_us < clock.boottime_us() and not path.with_suffix(SUFFIX).exists():
                path.unlink()


def place_of(run_folder: Path, boot: str) -> str:
    """Name the place: processes of one place see each other's locks, over containers too."""
    found = run_folder.stat()
    return f"{boot}:{found.st_dev}:{found.st_ino}"


def folder_of(place: str) -> str:
    """The part of a place that names its run folder; the rest is the boot."""
    return place.partition(":")[2]
