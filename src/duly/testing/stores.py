"""Stores of a simulated world: real ones, seen through a window at which anything may come between two calls."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from duly.clock import Clock
from duly.errors import StoreBusy
from duly.store import Session, Store, making
from duly.store.address import Address
from duly.store.engine import PATIENCE_S

Point = Literal["read", "begin", "commit", "committed", "statement"]
"""Where something may come between: before a read, before the lock, before the commit, before its answer.

Where a server is asked, before any statement of a transaction too.
"""
Opening = Callable[[Clock], Store]
"""Opens the world's store for one process, whose clock is given."""
At = Callable[[Point], None]


class Door:
    """Who writes now: one at a time, and a writer that was frozen keeps all others out."""

    def __init__(self) -> None:
        self.writer: object | None = None
        """The process that has the lock, until its commit was looked at."""
        self.commits = 0


class WatchedStore(Store):
    """A store as one process of the world has it; before and after each of its calls `at` is asked."""

    def __init__(
        self,
        inner: Store,
        door: Door,
        owner: object,
        *,
        at: At,
        committed: Callable[[], None],
        pause: Callable[[float], None],
        run_folder: Path | None = None,
    ) -> None:
        self._inner = inner
        self._door = door
        self._owner = owner
        self._at = at
        self._told_commit = committed
        self._pause = pause
        self._own = 0
        self._seen = door.commits
        self._folder = run_folder

    @property
    def run_folder(self) -> Path:
        """The folder of this place: another than the store's own where a file has two names."""
        return self._folder or self._inner.run_folder

    def __getattr__(self, name: str) -> Any:
        """Give whatever is not watched as the store itself has it."""
        return getattr(self._inner, name)

    def another(self) -> "WatchedStore":
        """Open the same store for another thread of the same process."""
        return type(self)(
            self._inner.another(),
            self._door,
            self._owner,
            at=self._at,
            committed=self._told_commit,
            pause=self._pause,
            run_folder=self._folder,
        )

    @contextmanager
    def read(self) -> Iterator[Session]:
        """See the store at one moment."""
        self._at("read")
        with self._inner.read() as session:
            yield session

    @contextmanager
    def write(self, *, patience_s: float = PATIENCE_S, first: bool = False, ring: bool = True) -> Iterator[Session]:
        """Write in one transaction; what `at` raises before the commit undoes it, and what it raises later does not."""
        self._at("begin")
        if self._door.writer is not None:
            self._pause(patience_s)  # whoever has the lock is frozen in the middle of a write
            raise StoreBusy(f"the store is locked by another process (waited {patience_s:g} s)")
        self._door.writer = self._owner
        try:
            with self._inner.write(patience_s=patience_s, first=first, ring=ring) as session:
                yield session
                self._at("commit")
            self._door.commits += 1
            self._own += 1
            self._told_commit()
        finally:
            self._door.writer = None
        self._at("committed")

    def changed(self) -> bool:
        """Whether any other connection has committed since this was last asked."""
        seen, self._seen = self._seen, self._door.commits - self._own
        return seen != self._seen

    def close(self) -> None:
        """Close the connection."""
        self._inner.close()


def file_store(folder: Path) -> Opening:
    """Make a store in a folder, and give what opens it for each process of a world."""
    address = Address(path=folder / "duly.db")
    if not address.path.exists():
        address.path.write_bytes(blank())
        address.path.chmod(0o600)
    environ = {"HOME": str(folder)}
    return lambda clock: Store.open(address, environ, clock=clock, noted=False)


def quick_folder() -> Path | None:
    """Where a world that nobody keeps is quickest: in memory, where the machine has such a folder."""
    memory = Path("/dev/shm")
    return memory if memory.is_dir() else None


@lru_cache(maxsize=1)
def blank() -> bytes:
    """Give the bytes of a store as the house makes it, made once a process."""
    with tempfile.TemporaryDirectory() as name:
        address = Address(path=Path(name) / "duly.db")
        made = making.make(address, {"HOME": name})
        assert made
        return address.path.read_bytes()
