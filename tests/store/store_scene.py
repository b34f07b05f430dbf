"""What the tests of the store share: a real file of the production schema, several connections, a clock to set."""

import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg

import databases
from by_hand import rows_on_server
from duly.clock import Clock
from duly.core.run import Entry, Run
from duly.core.task import Definition, Rules, Task
from duly.core.triggers import Every, Trigger
from duly.holder.assignments import hold
from duly.holder.dispatcher import Dispatcher, Won
from duly.holder.planner import Planner
from duly.holder.settling import Delivery, Settled, Settler, Verdict
from duly.operations import tasks as task_operations
from duly.operations.audit import verify
from duly.ports import Assignment, Detached, How, Outcome
from duly.store import Store, postgres
from duly.store.address import Address, Place
from duly.store.engine import DIALECT
from duly.store.sql import SIZES, Batch, Statement

NINE = datetime(2026, 3, 2, 9, tzinfo=UTC)
TICK = timedelta(microseconds=1)
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
LEASE_US = 100_000_000
KINDS = frozenset({"command"})
SUCCEEDED = Outcome(word="succeeded", exit_code=0)


class SetClock(Clock):
    """Clocks that stand until a test sets them."""

    def __init__(self, moment: datetime = NINE) -> None:
        self.moment = moment
        self.lease = 1_000_000_000
        self.boot = "boot-one"

    def now(self) -> datetime:
        return self.moment

    def lease_us(self) -> int:
        return self.lease

    def boot_id(self) -> str:
        return self.boot


class Idle:
    """A runner that is never asked to do anything."""

    def check(self, action: object) -> None:
        return None

    def perform(self, assignment: Assignment, checkpoint: object) -> Outcome | Detached:
        raise AssertionError("these tests start no work")

    def stop(self, how: How) -> None:
        return None


class Scene:
    """A store in a folder of its own, and as many connections to it as a test opens."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = SetClock()
        self.environ = {"HOME": str(folder / "home")}
        self.address = made(folder)
        self._open: list[Store] = []
        self.store = self.connect()

    @property
    def file(self) -> Address:
        """The address of the store's file, in tests of what a file has of its own."""
        assert isinstance(self.address, Address)
        return self.address

    @property
    def path(self) -> Path:
        """The file of the store."""
        return self.file.path

    def connect(self) -> Store:
        """Open one more connection to the file, as another process would."""
        store = Store.open(self.address, self.environ, clock=self.clock)
        self._open.append(store)
        return store

    def close(self) -> None:
        for store in self._open:
            store.close()

    def sql(self, text: str, *values: object) -> list[tuple[Any, ...]]:
        """Do by hand what no statement of ours does; committed when it returns."""
        return sql(self.address, text, *values)

    def at(self, moment: datetime) -> None:
        """Set the civil clock."""
        self.clock.moment = moment

    # What people do

    def add(self, name: str = "one", *triggers: Trigger, project: str = "default", **rules: Any) -> Task:
        return task_operations.add(
            self.store, definition(name, *triggers, project=project, **rules), by="ann", source={"kind": "cli"}
        )

    def task(self, id_: str) -> Task:
        with self.store.read() as session:
            found = session.tasks.by_id(id_)
        assert found is not None
        return found

    def run(self, id_: str) -> Run:
        with self.store.read() as session:
            found = session.runs.by_id(id_)
        assert found is not None
        return found

    def runs(self, task: str | None = None) -> list[Run]:
        """All runs, in the order of their opening."""
        with self.store.read() as session:
            return session.runs.listed(task=task, most=10_000)[::-1]

    def entries(self, task: str | None = None) -> list[Entry]:
        with self.store.read() as session:
            return [one.entry for one in session.ledger.after(0, task=task, most=100_000)]

    def kinds(self, task: str | None = None) -> list[str]:
        return [one.kind for one in self.entries(task)]

    def faults(self) -> list[tuple[str, str]]:
        return [(one.promise, one.text) for one in verify(self.store)]

    # What holders do

    def plan(self, store: Store | None = None, holder: str = "hld_a") -> list[Run]:
        with (store or self.store).write() as session:
            return Planner(holder).step(session)

    def claim(self, store: Store | None = None, holder: str = "hld_a", free: int = 8) -> list[Won]:
        with (store or self.store).write() as session:
            return list(self.dispatcher(holder).step(session, free).won)

    def dispatcher(self, holder: str = "hld_a") -> Dispatcher:
        return Dispatcher(holder, self.clock.boot, LEASE_US, lambda: KINDS)

    def delivery(self, won: Won, verdict: Verdict = SUCCEEDED) -> Delivery:
        holding = hold(
            won.run, won.definition, runner=Idle(), run_folder=self.store.run_folder, trust_end_us=self.clock.lease
        )
        return Delivery(holding=holding, verdict=verdict)

    def settle(
        self, won: Won, verdict: Verdict = SUCCEEDED, store: Store | None = None, holder: str = "hld_a"
    ) -> Settled:
        with (store or self.store).write() as session:
            return self.settler(holder).step(session, [self.delivery(won, verdict)])[0]

    def settler(self, holder: str = "hld_a") -> Settler:
        return Settler(holder, "here", 600_000_000)

    def held(self, name: str = "one", holder: str = "hld_a", **rules: Any) -> Won:
        """A task of its own with one run that this holder has claimed just now."""
        self.add(name, Every(span=HOUR, anchor=self.clock.moment), **rules)
        self.at(self.clock.moment + HOUR)
        self.plan(holder=holder)
        won = [one for one in self.claim(holder=holder) if one.definition.name == name]
        assert len(won) == 1
        return won[0]


@contextmanager
def scene(folder: Path) -> Iterator[Scene]:
    made = Scene(folder)
    try:
        yield made
    finally:
        made.close()


def definition(
    name: str, *triggers: Trigger, project: str = "default", enabled: bool = True, **rules: Any
) -> Definition:
    return Definition(
        name=name,
        project=project,
        enabled=enabled,
        triggers=triggers,
        action={"kind": "command", "argv": ("true",)},
        rules=Rules(**rules),
        own_rules=frozenset(rules),
    )


def hourly(anchor: datetime = NINE) -> Every:
    return Every(span=HOUR, anchor=anchor)


def minutely(anchor: datetime = NINE) -> Every:
    return Every(span=MINUTE, anchor=anchor)


def made(folder: Path) -> Place:
    """Give a store in this folder, of the production schema and empty; the one that stands there, if one does."""
    if databases.ON_SERVER:
        return databases.fresh(folder)
    address = Address(path=folder / "duly.db")
    if not address.path.exists():
        address.path.write_bytes(databases.blank())
        address.path.chmod(0o600)
    return address


def sql(address: Place, text: str, *values: object) -> list[tuple[Any, ...]]:
    """Run one statement on a store, past all of ours; committed when it returns."""
    if isinstance(address, Address):
        with closing(sqlite3.connect(address.path, isolation_level=None)) as raw:
            return raw.execute(text, values).fetchall()
    return rows_on_server(address, text, *values)


@contextmanager
def without(written: Batch | Statement, guard: str, instead: str = "1 = 1") -> Iterator[None]:
    """Take a guard out of the statement as it is sent, for a while: what the tests would see if it were not there."""
    dialect = postgres.DIALECT if databases.ON_SERVER else DIALECT
    if isinstance(written, Statement):
        compiled = [written.on(dialect)]
    elif databases.ON_SERVER:
        compiled = [written.in_arrays(dialect)]
    else:
        compiled = [written.on(dialect, size) for size in SIZES]
    texts = [one.text for one in compiled]
    wanted = re.compile(_on_server(guard) if databases.ON_SERVER else re.escape(guard))
    for one in compiled:
        found = wanted.search(one.text)
        assert found, (guard, one.text)
        if databases.ON_SERVER:
            given = re.search(r"%s(?:::[A-Z]+)?", found[0])
            instead = instead.replace("?", given[0] if given else "%s").replace('v."by"', "v.by")
        one.text = wanted.sub(lambda _, instead=instead: instead, one.text)  # type: ignore[misc]
    try:
        yield
    finally:
        for one, text in zip(compiled, texts, strict=True):
            one.text = text


def _on_server(guard: str) -> str:
    """Write a guard as a pattern of what PostgreSQL is sent."""
    guard = guard.replace('v."by"', "v.by")
    return re.escape(guard).replace(r"\?", r"%s(?:::[A-Z]+)?").replace(r"\ IS\ v", r"\ IS\ NOT\ DISTINCT\ FROM\ v")


class Lossy:
    """A connection whose COMMITs are done, and whose answers are lost; or, `before`, that breaks before it is done."""

    def __init__(self, raw: Any, *, losses: int, before: bool = False) -> None:
        self._raw = raw
        self.losses = losses
        self._before = before

    def execute(self, text: str, values: Sequence[Any] = ()) -> Any:
        lose = str(text).endswith("COMMIT") and self.losses > 0
        if lose and self._before:
            self._break()
        cursor = self._raw.execute(text, values) if values else self._raw.execute(text)
        if lose:
            self._break()
        return cursor

    def _break(self) -> None:
        self.losses -= 1
        if databases.ON_SERVER:
            raise psycopg.OperationalError("server closed the connection unexpectedly")
        raise sqlite3.OperationalError("disk I/O error")

    def carry_on(self, raw: Any) -> "Lossy":
        """The same over a new connection."""
        self._raw = raw
        return self

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw, name)


@contextmanager
def losing(store: Store, *, losses: int = 1, before: bool = False) -> Iterator[Lossy]:
    """Let this store lose the answers of its next commits."""
    line: Any = store._line
    lossy = Lossy(line.raw, losses=losses, before=before)
    line.raw = lossy
    connect = getattr(line, "_connect", None)
    if connect is not None:
        line._connect = lambda: lossy.carry_on(connect())
    try:
        yield lossy
    finally:
        line.raw = lossy._raw
        if connect is not None:
            line._connect = connect
