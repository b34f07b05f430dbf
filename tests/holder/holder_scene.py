"""A stage for holders: a real store, a clock that stands still until it is moved, work that ends when told to."""

import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import databases
from duly.clock import Clock
from duly.core.reasons import Refusal
from duly.core.run import Run
from duly.core.task import Definition, Rules, Task
from duly.core.when import read
from duly.holder.figures import figures
from duly.holder.holder import Holder
from duly.holder.wish import Wish
from duly.operations import tasks
from duly.ports import Assignment, Detached, How, Outcome, Runner
from duly.runners.registry import Registry
from duly.store import Session, Store
from duly.store.address import Address
from duly.zones import zone

START = datetime(2026, 12, 1, 8, 0, tzinfo=UTC)
WITHIN_S = 20.0


class SetClock(Clock):
    """Civil time and lease time that move only by hand; both by `pass_`, each alone by its own verb."""

    def __init__(self) -> None:
        self.civil = START
        self.lease = 10_000_000_000
        self.slept = 0
        self.boot = "boot-1"

    def now(self) -> datetime:
        return self.civil

    def lease_us(self) -> int:
        return self.lease

    def slept_us(self) -> int:
        return self.slept

    def boot_id(self) -> str:
        return self.boot

    def sleep(self, span: timedelta) -> None:
        """The machine sleeps: civil time goes on, the lease clock stands."""
        self.civil += span
        self.slept += span // timedelta(microseconds=1)

    def pass_(self, span: timedelta) -> None:
        self.civil += span
        self.lease += span // timedelta(microseconds=1)


class Scripted:
    """Work in this process that lasts until the test ends it; all attempts of a stage share one script."""

    def __init__(self, script: "Script", *, kept: bool, at_once: bool) -> None:
        self._script = script
        self.kept = kept
        self.at_once = at_once
        self._stopped = threading.Event()
        self.stops: list[How] = []

    def check(self, action: Mapping[str, object]) -> Refusal | None:
        return None

    def perform(self, assignment: Assignment, checkpoint: Mapping[str, object] | None) -> Outcome | Detached:
        self._script.began(assignment, self)
        while not self._stopped.is_set() and not self._script.over.is_set():
            self._script.over.wait(0.01)
        if self._stopped.is_set():
            if self.stops[-1] == "detach":
                return Detached()
            return Outcome(word="cancelled", reason="cancelled_by_hand")
        return Outcome(word="succeeded")

    def stop(self, how: How) -> None:
        self.stops.append(how)
        self._stopped.set()


class Script:
    """What the work of one stage did, and the word that ends it."""

    def __init__(self) -> None:
        self.over = threading.Event()
        self.starts: list[Assignment] = []
        self.runners: list[Scripted] = []
        self._changed = threading.Condition()

    def began(self, assignment: Assignment, runner: Scripted) -> None:
        with self._changed:
            self.starts.append(assignment)
            self.runners.append(runner)
            self._changed.notify_all()

    def wait_for_starts(self, number: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.starts) >= number, WITHIN_S), self.starts


class Stage:
    """One store on one clock, and the holders that a test puts on it; loops turn only when told to."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = SetClock()
        self.environ = {"HOME": str(folder)}
        self.address = databases.fresh(folder) if databases.ON_SERVER else Address(path=folder / "duly.db")
        self.script = Script()
        self.kept = False
        """Whether the scripted work counts as processes under keepers, which others at the place can find."""
        self.at_once = True
        """Whether the scripted work says that it needs nothing but this machine."""
        self.stores: list[Store] = []
        self.holders: list[Holder] = []
        self.told: list[tuple[str, Mapping[str, object]]] = []
        self.store = self.open()

    def open(self) -> Store:
        store = Store.open(self.address, self.environ, create=True, clock=self.clock)
        self.stores.append(store)
        return store

    def holder(
        self,
        *,
        slots: int = 4,
        beat: timedelta | None = None,
        lease: timedelta | None = None,
        runner: Callable[[], Runner] | None = None,
    ) -> Holder:
        given = {name: span for name, span in (("beat", beat), ("lease", lease)) if span is not None}
        wish = Wish(slots=slots, figures=figures(**given), drain=timedelta(0))
        scripted = runner or (lambda: Scripted(self.script, kept=self.kept, at_once=self.at_once))
        registry = Registry({"command": scripted, "agent": scripted})
        made = Holder(self.open(), wish, registry, tell=lambda event, told: self.told.append((event, told)))
        made.register()
        self.holders.append(made)
        return made

    def beat_for_a_lease(self) -> None:
        """Let all holders beat until each may judge who is silent: on a server nobody does who has just begun."""
        for _ in range(7):
            self.clock.pass_(timedelta(seconds=20))
            for holder in self.holders:
                holder.heart.step()

    def add(
        self,
        name: str,
        *when: str,
        action: Mapping[str, object] | None = None,
        project: str = "default",
        **rules: object,
    ) -> Task:
        triggers = tuple(
            read(text, now=self.clock.now(), zone=zone("UTC")).trigger for text in when if text != "manual"
        )
        definition = Definition(
            name=name,
            project=project,
            triggers=triggers,
            action=action or {"kind": "command", "argv": ["scripted"]},
            rules=Rules(**rules),  # type: ignore[arg-type]
        )
        return tasks.add(self.store, definition, by="test", source={"kind": "cli"})

    def read(self) -> "Seen":
        with self.store.read() as session:
            return Seen(session)

    def close(self) -> None:
        self.script.over.set()
        for holder in self.holders:
            holder.die()
        for store in self.stores:
            store.close()


class Seen:
    """What stands in the store at one moment."""

    def __init__(self, session: Session) -> None:
        self.runs: list[Run] = list(reversed(session.runs.listed(most=1000)))
        self.missed = session.missed.listed(most=1000)
        self.entries = [one.entry for one in session.ledger.after(0, most=10_000)]

    def kinds(self, run: str | None = None) -> list[str]:
        return [entry.kind for entry in self.entries if run is None or entry.run == run]


def until_idle(holder: Holder) -> None:
    """Turn a holder's loop until a round finds nothing more to do."""
    for _ in range(100):
        if not holder.step():
            return
    raise AssertionError("the loop never came to rest")
