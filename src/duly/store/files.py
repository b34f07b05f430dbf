"""The files of a store: put in place whole, moved aside with all that belongs to them, never one over another."""

import contextlib
import errno
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from duly.errors import StoreAway

SHARED = "-shm"
BESIDE = ("-wal", SHARED, "-journal")
"""What SQLite keeps beside a file; all of it but the file itself."""
SUFFIXES = ("", *BESIDE)
NAMES_TRIED = 10_000
NO_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL, errno.EMLINK})
"""What a file system answers that knows no hard links."""


def give_name(path: Path, target: Path) -> bool:
    """Give a whole copy its name, never over another file; False where there is one of that name."""
    try:
        os.link(path, target)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        # The name is taken first, by nobody but us, and then filled with what is whole.
        try:
            os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            return False
        path.replace(target)
    sync(target.parent)
    return True


def set_aside(path: Path, why: str) -> Path | None:
    """Move a store that cannot be used, and logs that belong to no store any more, out of the way.

    A log that is left at the place would be taken for the log of the store that is put there next. Gives the new name
    of the store itself, None where there was none.
    """
    with contextlib.suppress(FileNotFoundError):
        _with(path, SHARED).unlink()  # made anew from the log by whoever opens it
    there = [suffix for suffix in SUFFIXES if _size(_with(path, suffix)) or (not suffix and path.exists())]
    for empty in (suffix for suffix in BESIDE if suffix not in there):
        _with(path, empty).unlink(missing_ok=True)
    if not there:
        return None
    for number in range(1, NAMES_TRIED):
        base = f"{path.name}.{why}.{number}"
        if not any(path.with_name(base + suffix).exists() for suffix in SUFFIXES):
            for suffix in there:
                _with(path, suffix).rename(path.with_name(base + suffix))
            return path.with_name(base) if "" in there else None
    raise StoreAway(f"no name is free beside {path} for what stands there")


@contextlib.contextmanager
def folder_lock(folder: Path) -> Iterator[None]:
    """Be the only one, while inside, that puts a store into a folder."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def sync(path: Path) -> None:
    """Have the disk keep what a file or a folder holds."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _with(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
