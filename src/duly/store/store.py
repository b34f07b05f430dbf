"""The store: one database, one held connection a thread, reads that see one moment, writes that begin with the lock."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from duly import clock as machine
from duly.clock import Clock
from duly.core.own_events import may_tell
from duly.errors import StoreAway, Taken
from duly.store.address import Place
from duly.store.budgets import Budgets
from duly.store.channels import Channels
from duly.store.crowd import Crowd
from duly.store.defaults import Defaults
from duly.store.engine import PATIENCE_S
from duly.store.engines import Engine, engine_of
from duly.store.events import Events
from duly.store.holders import Holders
from duly.store.ledger import Ledger
from duly.store.line import Line
from duly.store.log_pieces import LogPieces
from duly.store.meta import Meta
from duly.store.missed import MissedOnes
from duly.store.notices import Notices
from duly.store.pauses import Pauses
from duly.store.pings import Pings
from duly.store.projects import Projects
from duly.store.questions import Questions
from duly.store.runs import Runs
from duly.store.senders import Senders
from duly.store.skips import Skips
from duly.store.tasks import Tasks
from duly.store.tokens import Tokens
from duly.store.versions import Versions
from duly.store.waiting import Waiting


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
    budgets: Budgets
    missed: MissedOnes
    questions: Questions
    ledger: Ledger
    holders: Holders
    pauses: Pauses
    events: Events
    senders: Senders
    projects: Projects
    skips: Skips
    log_pieces: LogPieces
    channels: Channels
    notices: Notices
    pings: Pings
    tokens: Tokens
    meta: Meta


class Store:
    """A store that is open in one thread; `another()` opens it again for another thread."""

    def __init__(
        self,
        address: Place,
        engine: Engine,
        line: Line,
        *,
        clock: Clock | None,
        environ: Mapping[str, str],
        readonly: bool,
    ) -> None:
        self.address = address
        self.engine = engine
        self.clock = clock or engine.clock(line)
        self.readonly = readonly
        self._given_clock = clock
        self._environ = environ
        self._line = line
        self.echoes = 0
        """Runs that Duly's own events have opened in what this connection wrote."""

    @classmethod
    def find(
        cls, address: Place, environ: Mapping[str, str] | None = None, *, clock: Clock | None = None
    ) -> "Store | None":
        """Open an existing store for reading only; None where there is none yet. Makes and changes nothing."""
        environ = os.environ if environ is None else environ
        engine = engine_of(address, environ)
        if not engine.exists():
            return None
        line = engine.open(readonly=True, may_migrate=False)
        return cls(address, engine, line, clock=clock, environ=environ, readonly=True)

    @classmethod
    def open(
        cls,
        address: Place,
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
        engine = engine_of(address, environ)
        if create:
            engine.make()
        elif not engine.exists():
            raise StoreAway(f"there is no store at {address} yet", hint="duly init, or add a first task")
        line = engine.open(readonly=False, may_migrate=migrate)
        if noted:
            engine.note()
        return cls(address, engine, line, clock=clock, environ=environ, readonly=False)

    def another(self) -> "Store":
        """Open the same store by a connection of its own, for another thread."""
        self.check_here()
        engine = engine_of(self.address, self._environ)
        line = engine.connect(readonly=self.readonly)
        return Store(self.address, engine, line, clock=self._given_clock, environ=self._environ, readonly=self.readonly)

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
        line = self._line
        try:
            line.begin_read()
            try:
                yield self._session()
            finally:
                line.rollback()
        except line.errors as error:
            raise line.told(error) from error

    @contextmanager
    def write(self, *, patience_s: float = PATIENCE_S, first: bool = False, ring: bool = True) -> Iterator[Session]:
        """Take the write lock, then read the clocks; all inside is one transaction, undone when it raises.

        StoreBusy: the lock was not to be had in time. StoreUnknown: the answer of the commit was lost. `first`: ahead
        of all who wait for the lock, and no pause is owed to them afterwards (beats). `ring`: others shall hear of it.
        """
        line = self._line
        self.check_here()
        if self.readonly:
            raise StoreAway(f"the store {self.address} was opened to be read, and is not written")
        try:
            line.begin_write(patience_s=patience_s, first=first)
            held_s = machine.monotonic_s()
            try:
                session = self._session()
                yield session
                if session.ledger.added and line.stands:
                    self._echo(session)
                if not line.stands:
                    raise StoreAway(f"the store {self.address} ended a transaction by itself; nothing was kept")
            except BaseException:
                line.rollback()
                raise
            line.commit(ring=ring and not first)
        except Taken as error:
            raise StoreAway(f"the store {self.address} cannot be used: {error}") from error
        except line.errors as error:
            raise line.told(error) from error
        if not first:
            line.yield_turn(machine.monotonic_s() - held_s)

    def prepare(self) -> None:
        """Get ready for runs by the hundred; called again it costs nothing."""
        self._line.prepare()

    @property
    def run_folder(self) -> Path:
        """Where this host keeps holders' locks and attempts of this store."""
        return self.engine.run_folder

    def changed(self) -> bool:
        """Somebody else may have written since this was last asked; cheap."""
        try:
            return self.engine.changed(self._line)
        except self._line.errors as error:
            raise self._line.told(error) from error

    def check_here(self) -> None:
        """Raise StoreAway when what was opened is no longer at its place."""
        self.engine.check_here()

    def check_version(self) -> None:
        """Raise StoreNewer when the store has been taken over by a version that leaves this one behind."""
        self.engine.check_version(self._line)

    def quick_check(self) -> str:
        """Whether the store is sound, as far as can be told quickly: `ok`, or the first fault."""
        return self.engine.quick_check(self._line)

    def faults(self) -> list[str]:
        """Read the whole store through and give what is wrong with how it is kept; nothing if it is sound."""
        return self.engine.faults(self._line)

    def close(self) -> None:
        """Close the connection; the store stays."""
        self._line.close()

    def _echo(self, session: Session) -> None:
        """Let what was told start the tasks that listen to it, in the same transaction."""
        if any(may_tell(entry) for entry in session.ledger.added) and session.events.our_sources():
            from duly.store import listening

            listening.echo(session)
            self.echoes += session.events.opened

    def _session(self) -> Session:
        line = self._line
        defaults = Defaults(line)
        now, lease_us = self.clock.begun()
        return Session(
            now=now,
            lease_us=lease_us,
            line=line,
            defaults=defaults,
            tasks=Tasks(line, defaults.definition),
            versions=Versions(line, defaults.definition),
            runs=Runs(line),
            waiting=Waiting(line),
            crowd=Crowd(line),
            budgets=Budgets(line),
            missed=MissedOnes(line),
            questions=Questions(line),
            ledger=Ledger(line),
            holders=Holders(line),
            pauses=Pauses(line),
            events=Events(line),
            senders=Senders(line),
            projects=Projects(line),
            skips=Skips(line),
            log_pieces=LogPieces(line),
            channels=Channels(line),
            notices=Notices(line),
            pings=Pings(line),
            tokens=Tokens(line),
            meta=Meta(line),
        )
