"""Connections to a PostgreSQL server: how they are opened, how a write waits for its turn, what their errors mean.

All differences between PostgreSQL and SQLite stand here and in `server_engine`, which finds and makes the store.
"""

import contextlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import errors as pg
from psycopg.pq import TransactionStatus
from sqlalchemy.dialects.postgresql.psycopg import dialect as psycopg_dialect
from sqlalchemy.engine import Dialect

from duly import clock
from duly.clock import Clock, from_us
from duly.errors import Invalid, StoreAway, StoreBusy, StoreFull, StoreSilent, StoreUnknown, Taken
from duly.store.sql import Batch, Statement, compile_hot

if TYPE_CHECKING:
    from duly.store.address import ServerAddress

DIALECT: Dialect = psycopg_dialect()  # type: ignore[no-untyped-call]
OLDEST_SERVER = 140_000
LOCK = 0x44756C79  # "Duly"
CHANNEL = "duly"
CONNECT_WITHIN_S = 10
TURN_S = 10.0
"""How long a statement, the wait for a lock and an idle transaction may last at most: half a beat."""
SILENT_MS = 20_000
"""A connection whose bytes nobody takes is given up after one beat."""
STAMP = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
ROWS_AT_ONCE = 1000
PREPARED_AFTER = 3
BUSY = (pg.LockNotAvailable, pg.QueryCanceled, pg.DeadlockDetected, pg.SerializationFailure)
GONE = (pg.AdminShutdown, pg.CrashShutdown, pg.CannotConnectNow, pg.IdleInTransactionSessionTimeout)


class ServerLine:
    """One held connection to a PostgreSQL server, opened anew where it was lost; used by one thread at a time."""

    errors: tuple[type[Exception], ...] = (psycopg.Error,)

    def __init__(self, address: "ServerAddress") -> None:
        self.address = address
        self.pooled = False
        """A pooler stands between: it keeps no session, so that nothing is prepared and nothing listened to."""
        self.stamp_us = 0
        """What the server's clock said when the transaction began."""
        self.ahead_us = 0
        """By how much the server's clock is ahead of this machine's boot clock, as it was measured last."""
        self._began_s = 0.0
        self._wrote = False
        """A statement of the transaction under way has changed a row."""
        self.raw = self._connect()

    def rows(self, statement: Statement, **given: Any) -> list[tuple[Any, ...]]:
        """All rows that a statement returns."""
        compiled = statement.on(DIALECT)
        return self._execute(compiled.text, compiled.bind(given)).fetchall()

    def row(self, statement: Statement, **given: Any) -> tuple[Any, ...] | None:
        """The first row that a statement returns, or None."""
        compiled = statement.on(DIALECT)
        return self._execute(compiled.text, compiled.bind(given)).fetchone()

    def run(self, statement: Statement, **given: Any) -> int:
        """Run a statement and say how many rows it changed."""
        compiled = statement.on(DIALECT)
        return self._execute(compiled.text, compiled.bind(given)).rowcount

    def many(self, batch: Batch, rows: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
        """Run a batch over all rows, an array a column, and give back what its RETURNING returned."""
        out: list[tuple[Any, ...]] = []
        for at in range(0, len(rows), ROWS_AT_ONCE):
            compiled = batch.in_arrays(DIALECT)
            columns = [_array(column) for column in zip(*rows[at : at + ROWS_AT_ONCE], strict=True)]
            cursor = self._execute(compiled.text, columns)
            if cursor.description is not None:
                out += cursor.fetchall()
        return out

    def prepare(self) -> None:
        """Compile beforehand what every run goes through."""
        compile_hot(DIALECT, in_arrays=True)

    def scalar(self, text: str) -> Any:
        """The one value of a query that no statement of ours asks."""
        found = self.raw.execute(text.encode()).fetchone()
        return None if found is None else found[0]

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """Undo what happens inside, and only that, when it raises."""
        self.raw.execute("SAVEPOINT one")
        try:
            yield
        except BaseException:
            if not self.raw.closed:
                self.raw.execute("ROLLBACK TO one; RELEASE one")
            raise
        self.raw.execute("RELEASE one")

    @property
    def stands(self) -> bool:
        """A transaction is under way and can still be committed."""
        return self.raw.info.transaction_status in (TransactionStatus.INTRANS, TransactionStatus.ACTIVE)

    def begin_read(self) -> None:
        """Begin a transaction that sees one moment."""
        self._begin("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", TURN_S)

    def begin_write(self, *, patience_s: float, first: bool) -> None:
        """Wait for the turn to write, which claims and edits take one after another; beats take none."""
        taken = "pg_advisory_xact_lock" if patience_s > 0 else "pg_try_advisory_xact_lock"
        lock = "" if first else f"; SELECT {taken}({LOCK})"
        head = "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL synchronous_commit = on"
        if not self._begin(head, min(patience_s, TURN_S) or TURN_S, lock):
            self.rollback()
            raise StoreBusy(f"another process writes to the store {self.address} now")

    def commit(self, *, ring: bool) -> None:
        """Commit, and wake who listens if there is anything to see; StoreUnknown when the answer was lost."""
        assert self.stands
        try:
            self.raw.execute(f"NOTIFY {CHANNEL}; COMMIT" if ring and self._wrote else "COMMIT")
        except psycopg.Error as error:
            if not self.raw.closed and self.raw.info.transaction_status == TransactionStatus.INERROR:
                self.rollback()
                raise
            self._drop()
            text = f"the answer to a write was lost, and it may stand: {str(error).strip()}"
            raise StoreUnknown(text, details={"began_s": self._began_s}) from error

    def rollback(self) -> None:
        """Undo the transaction, if one is under way."""
        if self.raw.closed or self.raw.info.transaction_status == TransactionStatus.IDLE:
            return
        try:
            self.raw.execute("ROLLBACK")
        except psycopg.Error:
            self._drop()  # the server undoes what nobody commits

    def yield_turn(self, held_s: float) -> None:
        """Nothing to do: the server gives turns in the order of asking."""

    def told(self, error: Exception) -> StoreAway:
        """What a person is told of an error of the server's or of the connection's."""
        text = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        if isinstance(error, pg.LockNotAvailable):
            return StoreBusy(f"the store {self.address} is locked by another process")
        if isinstance(error, BUSY):
            return StoreBusy(f"the store {self.address} is busy: {text}")
        if isinstance(error, pg.DiskFull):
            return StoreFull(f"the disk of the store {self.address} is full; nothing was changed")
        if isinstance(error, pg.ReadOnlySqlTransaction):
            return StoreAway(f"the store {self.address} cannot be written: {text}")
        if self.raw.closed or isinstance(error, (*GONE, psycopg.OperationalError)):
            return StoreSilent(f"the store {self.address} does not answer: {text}")
        return StoreAway(f"the store {self.address} cannot be used: {text}")

    def take_time(self) -> None:
        """Let the transaction under way last as long as it needs to."""
        self.raw.execute("SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0")

    def number_on(self) -> None:
        """Let the ledger's numbers go on above the highest, after entries came with numbers of their own."""
        self.raw.execute(
            "SELECT setval(pg_get_serial_sequence('ledger', 'seq'), coalesce(max(seq), 0) + 1, false) FROM ledger"
        )

    def close(self) -> None:
        """Close the connection."""
        self.raw.close()

    def _execute(self, text: str, given: Sequence[Any]) -> "psycopg.Cursor[tuple[Any, ...]]":
        try:
            cursor = self.raw.execute(text.encode(), given)
            self._wrote = self._wrote or (cursor.rowcount > 0 and not (cursor.statusmessage or "").startswith("SELECT"))
            return cursor
        except pg.UniqueViolation as error:
            raise Taken(str(error)) from error
        except psycopg.DataError as error:
            raise Invalid(f"the store cannot keep this: {str(error).splitlines()[0]}") from error

    def _begin(self, head: str, patience_s: float, lock: str = "") -> bool:
        """Begin in one round trip: the figures of this transaction, its turn, and then the server's clock.

        False where its turn was not waited for and is another's.
        """
        self._wrote = False
        patience_ms, turn_ms = max(1, int(patience_s * 1000)), int(TURN_S * 1000)
        figures = f"SET LOCAL lock_timeout = {patience_ms}; SET LOCAL statement_timeout = {turn_ms}"
        figures += f"; SET LOCAL idle_in_transaction_session_timeout = {turn_ms}"
        asked = f"{head}; {figures}{lock}; SELECT {STAMP}".encode()
        new = self.raw.closed
        if new:
            self.raw = self._connect()
        try:
            before_us, told = self._ask(asked)
        except psycopg.OperationalError:
            if new or not self.raw.closed:
                raise
            # The connection had ended while nobody used it, and nothing had begun: that is no fault of who asks now.
            self.raw = self._connect()
            before_us, told = self._ask(asked)
        self.stamp_us = told[-1]
        if not lock:
            self.ahead_us = self.stamp_us - (before_us + clock.boottime_us()) // 2
        else:
            self.ahead_us = self.stamp_us - clock.boottime_us()
        return told[0] is not False

    def _ask(self, asked: bytes) -> tuple[int, list[Any]]:
        """Ask several things at once; gives the boot clock of before, and each answer's one value."""
        self._began_s, before_us = clock.monotonic_s(), clock.boottime_us()
        try:
            cursor = self.raw.execute(asked)
        except BaseException:
            self.rollback()  # a turn that did not come leaves the transaction begun, and broken
            raise
        told = []
        while True:
            if cursor.description:
                told += [row[0] for row in cursor.fetchall()]
            if not cursor.nextset():
                return before_us, told

    def _connect(self) -> "psycopg.Connection[tuple[Any, ...]]":
        try:
            raw = psycopg.connect(
                self.address.url,
                autocommit=True,
                connect_timeout=CONNECT_WITHIN_S,
                application_name="duly",
                client_encoding="utf8",
                tcp_user_timeout=SILENT_MS,
            )
            try:
                before_us = clock.boottime_us()
                [(backend, stamp_us)] = raw.execute(f"SELECT pg_backend_pid(), {STAMP}".encode()).fetchall()
                after_us = clock.boottime_us()
            except BaseException:
                raw.close()
                raise
        except psycopg.Error as error:
            text = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            kind = StoreAway if _is_for_good(error) else StoreSilent
            raise kind(f"the store {self.address} cannot be reached: {self.address.masked(text)}") from error
        if raw.info.server_version < OLDEST_SERVER:
            raw.close()
            raise StoreAway(f"PostgreSQL {raw.info.server_version // 10_000} is too old: Duly needs 14 or newer")
        # Who asks what time it is before its first transaction is answered by the server's clock too.
        self.ahead_us = stamp_us - (before_us + after_us) // 2
        self.pooled = backend != raw.info.backend_pid
        raw.prepare_threshold = None if self.pooled else PREPARED_AFTER
        return raw

    def _drop(self) -> None:
        with contextlib.suppress(psycopg.Error):
            self.raw.close()


class ServerClock(Clock):
    """The database's clock decides what is due and who holds; between its answers it is reckoned by the boot clock."""

    def __init__(self, line: ServerLine) -> None:
        self._line = line

    def now(self) -> datetime:
        """Civil time by the database's clock, aware, in UTC."""
        return from_us(self.lease_us())

    def lease_us(self) -> int:
        """Microseconds of the database's clock since 1970."""
        return clock.boottime_us() + self._line.ahead_us

    def trust_us(self) -> int:
        """Microseconds on the boot clock, which counts sleep."""
        return clock.boottime_us()

    def awake_us(self) -> int:
        """Microseconds on this machine's monotonic clock: the database's goes on while the machine sleeps."""
        return clock.lease_us()

    def ahead_us(self) -> int:
        """By how much the database's clock was ahead of the boot clock, when it answered last."""
        return self._line.ahead_us

    def lease_boot(self) -> str:
        """Leases are on the database's clock, whatever machine is restarted."""
        return "postgresql"

    def begun(self) -> tuple[datetime, int]:
        """What the database's clock said when the transaction began, its turn included."""
        return from_us(self._line.stamp_us), self._line.stamp_us


def _array(column: Sequence[Any]) -> str | list[Any]:
    """Write an array as the server reads it: the driver looks at each cell several times, which costs more than all."""
    kinds = set(map(type, column))
    if kinds == {int}:
        return "{" + ",".join(map(str, column)) + "}"
    if kinds == {str}:
        joined = '","'.join(column)
        # Most texts hold nothing that must be told apart from the array's own marks.
        if "\\" not in joined and joined.count('"') == 2 * (len(column) - 1):
            return '{"' + joined + '"}'
    if kinds <= {int, str, type(None)} and not kinds >= {int, str}:
        return "{" + ",".join([_cell(cell) for cell in column]) + "}"
    return list(column)


def _cell(cell: int | str | None) -> str:
    if cell is None:
        return "NULL"
    if isinstance(cell, int):
        return str(cell)
    escaped = cell.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _is_for_good(error: psycopg.Error) -> bool:
    """The address itself is wrong: waiting will not help."""
    text = str(error)
    return any(word in text for word in ("authentication failed", "does not exist", "invalid connection option"))
