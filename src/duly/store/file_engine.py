"""A store in a SQLite file: how it is found, made, opened and watched."""

import os
import sqlite3
from collections.abc import Mapping
from pathlib import Path

from duly import clock as machine
from duly.clock import Clock
from duly.errors import StoreAway
from duly.store import copies, engine, making
from duly.store.address import Address, check_path, check_place, remember
from duly.store.engine import Company, FileLine
from duly.store.watch import Watch

ASK_ANYWAY_S = 1.0


class FileEngine:
    """One process's way to one file; every connection has an engine of its own."""

    one_place = True
    """All who use it share this machine: what has no lease is proven dead by its lock."""

    def __init__(self, address: Address, environ: Mapping[str, str]) -> None:
        self.address = address
        self._environ = environ
        self._file: tuple[int, int] | None = None
        self.company = Company()
        real = address.path.resolve()
        self._log = str(real.parent / f"{real.name}-wal")
        self._log_seen: tuple[int, int] | None = None
        self._asked_s = self._restless_until_s = float("-inf")

    def exists(self) -> bool:
        """A file stands there; StoreAway where none can, or where one stood that is gone."""
        check_path(self.address)
        if self.address.path.exists():
            return True
        if not self.address.path.parent.is_dir() and self.address.default:
            return False
        check_place(self.address)
        making.check_not_vanished(self.address, self._environ)
        return False

    def make(self) -> None:
        """Make the store where there is none yet."""
        check_path(self.address)
        making.make(self.address, self._environ)

    def leave(self) -> None:
        """Nothing to let go of: looking opened nothing."""

    def note(self) -> None:
        """Remember that a store stood here."""
        remember(self.address, self._environ)

    def open(self, *, readonly: bool, may_migrate: bool) -> FileLine:
        """Open the file if it is a store that this version may use; an older one is brought up where that is wished."""
        check_place(self.address)
        path = self.address.path
        making.check_one_name(path)
        try:
            # Looked at by a reader first: what is not ours must be left exactly as it is.
            line = engine.connect(path, readonly=True)
            try:
                older = making.check_version(making.look(line, path), path)
                if older and not may_migrate:
                    raise StoreAway(
                        f"the store {path} is of an older version of Duly",
                        hint="`duly migrate` (and `duly serve`) makes a backup beside it and brings it up to date",
                    )
                if older:
                    making.migrate(self.address, line)
            except BaseException:
                line.close()
                raise
            if not readonly:
                line.close()
                line = engine.connect(path, readonly=False)
        except sqlite3.Error as error:
            raise engine.told(path, error) from error
        return self._ours(line)

    def connect(self, *, readonly: bool) -> FileLine:
        """Open one more connection to a file that was opened before."""
        return self._ours(engine.connect(self.address.path, readonly=readonly))

    def clock(self, line: FileLine) -> Clock:  # noqa: ARG002 - another database's clock is its own
        """The clocks that decide: the machine's."""
        return Clock()

    @property
    def run_folder(self) -> Path:
        """Where holders' locks and attempts lie: beside the file."""
        return self.address.run_folder

    def check_here(self) -> None:
        """Raise StoreAway when the file that was opened is no longer at its place."""
        if _identity(self.address.path) != self._file:
            raise StoreAway(
                f"the store {self.address.path} is gone: the file this process works with is no longer there",
                hint="bring the file back; nothing is made in its place",
            )

    def check_version(self, line: FileLine) -> None:
        """Raise StoreNewer when the store has been taken over by a version that leaves this one behind."""
        making.check_version(making.look(line, self.address.path), self.address.path)

    def watch(self) -> Watch:
        """Be told of every commit, which writes the log beside the file."""
        return Watch(self._log)

    def restless(self) -> bool:
        """The log was written a moment ago: a commit may be about to be seen, and is worth asking for."""
        return machine.monotonic_s() <= self._restless_until_s

    def changed(self, line: FileLine) -> bool:
        """Somebody else has committed to this file since this was last asked; costs microseconds.

        The log is looked at first, which every commit touches; SQLite itself is asked only for a second after that has
        changed (a commit is seen only once its log is on disk), and once a second in any case.
        """
        log, now_s = _touched(self._log), machine.monotonic_s()
        if log != self._log_seen:
            self._log_seen, self._restless_until_s = log, now_s + ASK_ANYWAY_S
        if now_s > self._restless_until_s and now_s - self._asked_s < ASK_ANYWAY_S:
            return False
        self._asked_s = now_s
        return self.company.look(line)

    def quick_check(self, line: FileLine) -> str:
        """What SQLite says of the file's soundness: `ok`, or the first fault."""
        return str(line.scalar("PRAGMA quick_check(1)"))

    def faults(self, line: FileLine) -> list[str]:
        """Read the whole file through and give what is wrong with it; nothing if it is sound."""
        return copies.faults(line)

    def _ours(self, line: FileLine) -> FileLine:
        self._file = _identity(self.address.path)
        line.company = self.company
        return line


def _touched(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)  # noqa: PTH116 - asked five times a second
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
