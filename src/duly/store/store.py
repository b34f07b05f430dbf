"""The store: one file, one held connection a thread, reads that see one moment, writes that begin with the lock."""

import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from duly import clock as machine
from duly.clock import Clock
from duly.core.own_events import may_tell
from duly.errors import StoreAway, StoreUnknown
from duly.store import copies, engine, making
from duly.store.address import Address, check_path, check_place, remember
from duly.store.crowd import Crowd
from duly.store.defaults import Defaults
from duly.store.engine import PATIENCE_S, Company, Line
from duly.store.events import Events
from duly.store.holders import Holders
from duly.store.ledger import Ledger
from duly.store.missed import MissedOnes
from duly.store.pauses import Pauses
from duly.store.projects import Projects
from duly.store.runs import Runs
from duly.store.skips import Skips
from duly.store.tasks import Tasks
from duly.store.versions import Versions
from duly.store.waiting import Waiting

ASK_ANYWAY_S = 1.0


@dataclass(frozen=True, slots=True)
class Session:
    """One transaction: the moment it saw, and the nouns as they stand in it."""

    now: datetime
    lease_us: int
    line: Line
    defaults: Defaults
    tasks: Tasks
    versions: Versions
    runs: Runs
    waiting: Waiting
    crowd: Crowd
    missed: MissedOnes
    ledger: Ledger
    holders: Holders
    pauses: Pauses
    events: Events
    projects: Projects
    skips: Skips


class Store:
    """A store that is open in one thread; `another()` opens it again for another thread."""

    def __init__(
        self, address: Address, line: Line, *, clock: Clock, environ: Mapping[str, str], readonly: bool
    ) -> None:
        self.address = address
        self.clock = clock
        self.company = Company()
        self.readonly = readonly
        self._environ = environ
        self._line = line
        self._file = _identity(address.path)
        real = address.path.resolve()
        self._log = str(real.with_name(real.name + "-wal"))
        self._log_seen: tuple[int, int] | None = None
        self._asked_s = self._restless_until_s = float("-inf")
        self.echoes = 0
        """Runs that Duly's own events have opened in what this connection wrote."""

    @classmethod
    def find(
        cls, address: Address, environ: Mapping[str, str] | None = None, *, clock: Clock | None = None
    ) -> "Store | None":
        """Open an existing store for reading only; None where there is none yet. Makes and changes nothing."""
        environ = os.environ if environ is None else environ
        check_path(address)
        if not address.path.exists():
            if not address.path.parent.is_dir() and address.default:
                return None
            check_place(address)
            making.check_not_vanished(address, environ)
            return None
        return cls._open(address, environ, clock or Clock(), readonly=True, may_migrate=False)

    @classmethod
    def open(
        cls,
        address: Address,
        environ: Mapping[str, str] | None = None,
        *,
        create: bool = False,
        migrate: bool = False,
        noted: bool = True,
        clock: Clock | None = None,
    ) -> "Store":
        """Open a store for writing; `create` makes it where there was none, `migrate` brings an older one up.

        A store that is not `noted` is on its way to its place: its loss is no loss.
        """
        environ = os.environ if environ is None else environ
        check_path(address)
        if create:
            making.make(address, environ)
        elif not address.path.exists():
            check_place(address)
            making.check_not_vanished(address, environ)
            raise StoreAway(f"there is no store at {address.path} yet", hint="duly init, or add a first task")
        store = cls._open(address, environ, clock or Clock(), readonly=False, may_migrate=migrate)
        if noted:
            remember(address, environ)
        return store

    @classmethod
    def _open(
        cls, address: Address, environ: Mapping[str, str], clock: Clock, *, readonly: bool, may_migrate: bool
    ) -> "Store":
        check_place(address)
        making.check_one_name(address.path)
        try:
            # Looked at by a reader first: what is not ours must be left exactly as it is.
            line = engine.connect(address.path, readonly=True)
            try:
                older = making.check_version(making.look(line, address.path), address.path)
                if older and not may_migrate:
                    raise StoreAway(
                        f"the store {address.path} is of an older version of Duly",
                        hint="`duly migrate` (and `duly serve`) makes a backup beside it and brings it up to date",
                    )
                if older:
                    making.migrate(address, line)
            except BaseException:
                line.close()
                raise
            if not readonly:
                line.close()
                line = engine.connect(address.path, readonly=False)
        except sqlite3.Error as error:
            raise engine.told(address.path, error) from error
        return cls(address, line, clock=clock, environ=environ, readonly=readonly)

    def another(self) -> "Store":
        """Open the same store by a connection of its own, for another thread."""
        self.check_here()
        line = engine.connect(self.address.path, readonly=self.readonly)
        return Store(self.address, line, clock=self.clock, environ=self._environ, readonly=self.readonly)

    @contextmanager
    def another_once(self) -> Iterator["Store"]:
        """Open the same store for a moment, and close it again."""
        other = self.another()
        try:
            yield other
        finally:
            other.close()

    @contextmanager
    def read(self) -> Iterator[Session]:
        """See the store as it stands at one moment; changes nothing."""
        try:
            self._line.raw.execute("BEGIN")
            try:
                yield self._session()
            finally:
                if self._line.raw.in_transaction:
                    self._line.raw.execute("ROLLBACK")
        except sqlite3.Error as error:
            raise engine.told(self.address.path, error) from error

    @contextmanager
    def write(self, *, patience_s: float = PATIENCE_S, first: bool = False) -> Iterator[Session]:
        """Take the write lock, then read the clocks; all inside is one transaction, undone when it raises.

        StoreBusy: the lock was not to be had in time. StoreUnknown: the answer of the commit was lost. `first`: no
        pause is owed to others afterwards (beats).
        """
        raw = self._line.raw
        self.check_here()
        began_s = machine.monotonic_s()
        try:
            engine.begin(self._line, patience_s=patience_s, company=self.company)
            held_s = machine.monotonic_s()
            try:
                session = self._session()
                yield session
                if session.ledger.added and raw.in_transaction:
                    self._echo(session)
                if not raw.in_transaction:
                    raise StoreAway(f"the store {self.address.path} ended a transaction by itself; nothing was kept")
            except BaseException:
                if raw.in_transaction:
                    raw.execute("ROLLBACK")
                raise
            self._commit(began_s)
        except sqlite3.Error as error:
            raise engine.told(self.address.path, error) from error
        if not first and self.company.present():
            engine.pause_after(machine.monotonic_s() - held_s)

    @property
    def log_path(self) -> str:
        """The file that every commit to this store writes."""
        return self._log

    def restless(self) -> bool:
        """The log was written a moment ago: a commit may be about to be seen, and is worth asking for."""
        return machine.monotonic_s() <= self._restless_until_s

    def changed(self) -> bool:
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
        try:
            return self.company.look(self._line)
        except sqlite3.Error as error:
            raise engine.told(self.address.path, error) from error

    def check_here(self) -> None:
        """Raise StoreAway when the file that was opened is no longer at its place."""
        if _identity(self.address.path) != self._file:
            raise StoreAway(
                f"the store {self.address.path} is gone: the file this process works with is no longer there",
                hint="bring the file back; nothing is made in its place",
            )

    def check_version(self) -> None:
        """Raise StoreNewer when the store has been taken over by a version that leaves this one behind."""
        making.check_version(making.look(self._line, self.address.path), self.address.path)

    def faults(self) -> list[str]:
        """Read the whole file through and give what is wrong with it; nothing if it is sound."""
        return copies.faults(self._line)

    def quick_check(self) -> str:
        """What SQLite says of the file's soundness: `ok`, or the first fault."""
        return str(self._line.scalar("PRAGMA quick_check(1)"))

    def synchronous(self) -> int:
        """The level of durability in force on this connection; 2 is FULL."""
        return int(self._line.scalar("PRAGMA synchronous"))

    def close(self) -> None:
        """Close the connection; the store stays."""
        self._line.close()

    def _echo(self, session: Session) -> None:
        """Let what was told start the tasks that listen to it, in the same transaction."""
        if any(may_tell(entry) for entry in session.ledger.added) and session.events.our_sources():
            from duly.store import listening

            listening.echo(session)
            self.echoes += session.events.opened

    def _commit(self, began_s: float) -> None:
        try:
            self._line.raw.execute("COMMIT")
        except sqlite3.Error as error:
            if self._line.raw.in_transaction:
                self._line.raw.execute("ROLLBACK")
            told = engine.told(self.address.path, error)
            text = f"the answer to a write was lost, and it may stand: {str(error) or told.message}"
            raise StoreUnknown(text, details={"began_s": began_s}) from error

    def _session(self) -> Session:
        line = self._line
        defaults = Defaults(line)
        return Session(
            now=self.clock.now(),
            lease_us=self.clock.lease_us(),
            line=line,
            defaults=defaults,
            tasks=Tasks(line, defaults.definition),
            versions=Versions(line, defaults.definition),
            runs=Runs(line),
            waiting=Waiting(line),
            crowd=Crowd(line),
            missed=MissedOnes(line),
            ledger=Ledger(line),
            holders=Holders(line),
            pauses=Pauses(line),
            events=Events(line),
            projects=Projects(line),
            skips=Skips(line),
        )


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
