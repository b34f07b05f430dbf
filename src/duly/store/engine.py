"""Connections to a SQLite file: how they are opened, how a write begins, how a busy database is waited for."""

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy.dialects import sqlite as sqlite_dialect

from duly import chance, clock
from duly.errors import StoreAway, StoreBusy, StoreFull, StoreUnknown, Taken
from duly.store.sql import Batch, Statement, compile_hot, cut

DIALECT = sqlite_dialect.dialect()
APPLICATION_ID = 0x44756C79  # "Duly", in the header of the file
OLDEST_SQLITE = (3, 35, 0)  # RETURNING
BUSY_SLEEP_S = (0.0001, 0.001)
"""Between two tries at the write lock; SQLite's own busy wait can sleep whole seconds and starves writers."""
BUSY_LONG_S = 1.0
BUSY_LONG_SLEEP_S = (0.010, 0.020)
"""After a second of waiting it is not about a fair turn any more: tries cost less than they would bring."""
PATIENCE_S = 10.0
"""How long a write waits for the lock by default before it gives up with StoreBusy."""
PAUSE_S = (0.002, 0.010)
"""After a commit, while another process writes too, the lock is left alone as long as it was held, within these."""
COMPANY_S = 1.0
"""Another process counts as writing for so long after it was last noticed."""


class FileLine:
    """One held connection to a SQLite file, used by one thread at a time."""

    errors: tuple[type[Exception], ...] = (sqlite3.Error,)
    pooled = False

    def __init__(self, raw: sqlite3.Connection, path: Path, company: "Company | None" = None) -> None:
        self.raw = raw
        self.path = path
        self.company = company or Company()
        self._began_s = 0.0

    def rows(self, statement: Statement, **given: Any) -> list[tuple[Any, ...]]:
        """All rows that a statement returns."""
        compiled = statement.on(DIALECT)
        return self.raw.execute(compiled.text, compiled.bind(given)).fetchall()

    def row(self, statement: Statement, **given: Any) -> tuple[Any, ...] | None:
        """The first row that a statement returns, or None."""
        compiled = statement.on(DIALECT)
        found: tuple[Any, ...] | None = self.raw.execute(compiled.text, compiled.bind(given)).fetchone()
        return found

    def run(self, statement: Statement, **given: Any) -> int:
        """Run a statement and say how many rows it changed."""
        compiled = statement.on(DIALECT)
        try:
            return self.raw.execute(compiled.text, compiled.bind(given)).rowcount
        except sqlite3.IntegrityError as error:
            raise Taken(str(error)) from error

    def many(self, batch: Batch, rows: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
        """Run a batch over all rows, in fixed sizes, and give back what its RETURNING returned."""
        out: list[tuple[Any, ...]] = []
        at = 0
        try:
            for size in cut(len(rows)):
                compiled = batch.on(DIALECT, size)
                flat = [cell for row in rows[at : at + size] for cell in row]
                out += self.raw.execute(compiled.text, flat).fetchall()
                at += size
        except sqlite3.IntegrityError as error:
            raise Taken(str(error)) from error
        return out

    def prepare(self) -> None:
        """Compile beforehand what every run goes through."""
        compile_hot(DIALECT, in_arrays=False)

    def scalar(self, text: str) -> Any:
        """The one value of a pragma or of a query that no table of ours is in."""
        found = self.raw.execute(text).fetchone()
        return None if found is None else found[0]

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """Undo what happens inside, and only that, when it raises."""
        self.raw.execute("SAVEPOINT one")
        try:
            yield
        except BaseException:
            if self.raw.in_transaction:  # a full disk ends the whole transaction, not this savepoint alone
                self.raw.execute("ROLLBACK TO one")
                self.raw.execute("RELEASE one")
            raise
        self.raw.execute("RELEASE one")

    @property
    def stands(self) -> bool:
        """A transaction is under way and can still be committed."""
        return self.raw.in_transaction

    def begin_read(self) -> None:
        """Begin a transaction that sees one moment."""
        self.raw.execute("BEGIN")

    def begin_write(self, *, patience_s: float, first: bool) -> None:  # noqa: ARG002 - a file has one lock
        """Take the write lock; StoreBusy when it is not to be had in time. All writers are behind one another."""
        self._began_s = clock.monotonic_s()
        begin(self, patience_s=patience_s, company=self.company)

    def commit(self, *, ring: bool) -> None:  # noqa: ARG002 - the log tells
        """Commit; others see it by themselves. StoreUnknown when the answer was lost."""
        try:
            self.raw.execute("COMMIT")
        except sqlite3.Error as error:
            self.rollback()
            text = f"the answer to a write was lost, and it may stand: {str(error) or self.told(error).message}"
            raise StoreUnknown(text, details={"began_s": self._began_s}) from error

    def rollback(self) -> None:
        """Undo the transaction, if one is under way."""
        if self.raw.in_transaction:
            self.raw.execute("ROLLBACK")

    def yield_turn(self, held_s: float) -> None:
        """Leave the lock alone for as long as it was held, while others write too."""
        if self.company.present():
            pause_after(held_s)

    def told(self, error: Exception) -> StoreAway:
        """What a person is told of an error of SQLite's."""
        assert isinstance(error, sqlite3.Error)
        return told(self.path, error)

    def take_time(self) -> None:
        """Nothing to do: a file sets no time."""

    def number_on(self) -> None:
        """Nothing to do: a file remembers the highest number by itself."""

    def close(self) -> None:
        """Close the connection."""
        self.raw.close()


class Company:
    """Notices whether another process writes to this file too, from what one connection sees."""

    def __init__(self) -> None:
        self._seen_s = -COMPANY_S
        self._version: int | None = None

    def refused(self) -> None:
        """A BEGIN was refused: somebody else holds the lock."""
        self._seen_s = clock.monotonic_s()

    def look(self, line: FileLine) -> bool:
        """Read data_version, which moves with every commit of another connection, and say whether it moved."""
        version = int(line.scalar("PRAGMA data_version"))
        moved = self._version is not None and version != self._version
        self._version = version
        if moved:
            self._seen_s = clock.monotonic_s()
        return moved

    def present(self) -> bool:
        """Somebody else wrote within the last COMPANY_S seconds."""
        return clock.monotonic_s() - self._seen_s < COMPANY_S


def connect(path: Path, *, readonly: bool) -> FileLine:
    """Open an existing file; never makes one (a store that vanished must not come back empty)."""
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        raise StoreAway(f"SQLite {sqlite3.sqlite_version} is too old: Duly needs 3.35 or newer")
    mode = "rw" if not readonly else "ro&immutable=1" if _nobody_can_write(path) else "ro"
    try:
        raw = sqlite3.connect(
            f"{path.as_uri()}?mode={mode}",
            uri=True,
            # The first statement of a connection may meet the last one's leaving or a recovery of the log: that is
            # waited for. Afterwards only BEGIN IMMEDIATE can be refused, and `begin` has its own way to wait.
            timeout=PATIENCE_S,
            isolation_level=None,
            check_same_thread=False,
        )
    except sqlite3.Error as error:
        raise StoreAway(f"the store {path} cannot be opened: {error}") from error
    line = FileLine(raw, path)
    try:
        if readonly:
            raw.execute("PRAGMA query_only=ON")
        else:
            raw.execute("PRAGMA journal_mode=WAL")
            raw.execute("PRAGMA synchronous=FULL")
            raw.execute("PRAGMA schema_version")
            raw.execute("PRAGMA busy_timeout=0")
    except BaseException:
        raw.close()
        raise
    return line


def _nobody_can_write(path: Path) -> bool:
    """The file lies on a read-only mount, without a log: SQLite cannot lock there, and need not."""
    try:
        mounted = os.statvfs(path)
    except OSError:
        return False
    log = path.with_name(path.name + "-wal")
    return bool(mounted.f_flag & os.ST_RDONLY) and not (log.exists() and log.stat().st_size)


def begin(line: FileLine, *, patience_s: float, company: Company) -> None:
    """Take the write lock, trying again every fraction of a millisecond; StoreBusy when patience is over."""
    began_s = clock.monotonic_s()
    until = began_s + patience_s
    while True:
        try:
            line.raw.execute("BEGIN IMMEDIATE")
            return
        except sqlite3.OperationalError as error:
            if not is_busy(error):
                raise
            company.refused()
            if clock.monotonic_s() >= until:
                raise StoreBusy(
                    f"the store is locked by another process (waited {patience_s:g} s)",
                    details={"waited_s": patience_s},
                ) from error
        long = clock.monotonic_s() - began_s > BUSY_LONG_S
        clock.pause(chance.between(*(BUSY_LONG_SLEEP_S if long else BUSY_SLEEP_S)))


def is_busy(error: sqlite3.Error) -> bool:
    """The database was locked by somebody else; nothing was changed."""
    return (error.sqlite_errorcode & 0xFF) in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


def pause_after(held_s: float) -> None:
    """Leave the lock alone for as long as it was held, so that others get their turn."""
    low, high = PAUSE_S
    clock.pause(min(max(held_s, low), high))


def told(path: Path, error: sqlite3.Error) -> StoreAway:
    """What a person is told of an error of SQLite's."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        return StoreBusy(f"the store {path} is locked by another process")
    if code == sqlite3.SQLITE_NOTADB:
        return StoreAway(f"{path} is not a SQLite database; it was left as it is")
    if code == sqlite3.SQLITE_CORRUPT:
        return StoreAway(
            f"the store {path} is damaged ({error}); it was left as it is",
            hint="put a backup in its place, or move it away and run `duly init`",
        )
    if code == sqlite3.SQLITE_READONLY:
        return StoreAway(f"the store {path} cannot be written: {error}")
    if code == sqlite3.SQLITE_FULL:
        return StoreFull(f"the disk of the store {path} is full; nothing was changed")
    return StoreAway(f"the store {path} cannot be used: {error}")
