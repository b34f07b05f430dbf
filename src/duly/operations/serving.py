"""Whether anybody serves a store: a holder that lives holds the lock on a file of its own in the run folder."""

import fcntl
import os
from pathlib import Path

HOLDERS = "holders"
SUFFIX = ".lock"


def holders_alive(run_folder: Path) -> set[str]:
    """Give the ids of the holders whose lock is taken; looking takes nothing from them."""
    return {holder for holder in lock_files(run_folder) if _is_held(run_folder / HOLDERS / f"{holder}{SUFFIX}")}


def lock_files(run_folder: Path) -> set[str]:
    """Give the ids of the holders that have a lock file, taken or left behind."""
    try:
        names = os.listdir(run_folder / HOLDERS)  # noqa: PTH208 - a name each, no more
    except OSError:
        return set()
    return {name.removesuffix(SUFFIX) for name in names if name.endswith(SUFFIX)}


def anybody_serves(run_folder: Path) -> bool:
    """Say whether any holder of this store lives."""
    return bool(holders_alive(run_folder))


def _is_held(path: Path) -> bool:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return False
