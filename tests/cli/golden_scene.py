"""A world that is the same to the letter each time: its clock, its ids and its people are given."""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path

import pytest
from cli_scene import Called, Scene

import databases
from duly import chance, clock
from duly.clock import Clock
from duly.holder.assignments import hold
from duly.holder.dispatcher import Dispatcher, Won
from duly.holder.holdings import Holding
from duly.holder.planner import Planner
from duly.holder.settling import Delivery, Settler
from duly.operations import lookup
from duly.ports import Assignment, Detached, How, Outcome, Parked
from duly.store import Store
from duly.store.queueing import trim
from duly.store.rows import HolderRow

BEGINS = datetime(2026, 11, 26, 7, 30, tzinfo=UTC)
LEASE_US = 100_000_000
BOOT = "boot-one"
HOLDER = "hld_01m8golden0000000000000001"
DAY, HOUR, MINUTE, SECOND = timedelta(days=1), timedelta(hours=1), timedelta(minutes=1), timedelta(seconds=1)


class Given(Clock):
    """Clocks that stand where the world sets them."""

    def __init__(self) -> None:
        self.moment = BEGINS

    def now(self) -> datetime:
        return self.moment

    def lease_us(self) -> int:
        return int((self.moment - BEGINS) / timedelta(microseconds=1)) + 1_000_000

    def boot_id(self) -> str:
        return BOOT


class Idle:
    """A runner that is never asked to do anything."""

    def check(self, action: object) -> None:
        return None

    def perform(self, assignment: Assignment, checkpoint: object) -> Outcome | Detached:
        raise AssertionError("these tests start no work")

    def stop(self, how: How) -> None:
        return None


class World:
    """A scene whose moments a test sets, and the holder that lives in it."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.clock = Given()
        self.live: dict[str, Won] = {}

    def at(self, moment: datetime) -> None:
        self.clock.moment = moment

    def add(self, name: str, when: str, *options: str, command: tuple[str, ...] = ("true",)) -> None:
        words = ["add", name, "--when", when, "--cwd", "/srv", *options]
        self.scene.ok(*words, "--", *command)

    @contextmanager
    def store(self) -> Iterator[Store]:
        with self.scene.opened(self.clock) as store:
            yield store

    def serve(self, *, slots: int = 4) -> None:
        """Let a holder be registered, as alive as a process can be that is none."""
        row = HolderRow(
            id=HOLDER,
            place=f"{BOOT}:0:0",
            boot=BOOT,
            host="edith",
            pid=4711,
            ticks=1,
            started_at=self.clock.moment,
            last_beat_at=self.clock.moment,
            beat_lease_us=self.clock.lease_us(),
            lease_for=timedelta(seconds=100),
            state="alive",
            slots=slots,
            labels=("big", "gpu"),
            version="0.2.0",
            zone_data="2026c",
            claims=0,
            claims_lost=0,
        )
        with self.store() as store, store.write() as session:
            session.holders.insert(row)
            session.crowd.set_labels(HOLDER, row.labels)

    def turn(self, *, free: int = 8) -> None:
        """Open what is due and claim what may start, as a holder's turn does."""
        with self.store() as store, store.write() as session:
            due = session.tasks.due(session.now, 100)
            Planner(HOLDER).step(session)
            done = Dispatcher(HOLDER, BOOT, LEASE_US, lambda: ["command"], ["gpu"]).step(session, free)
            for task in due:
                trim(session, task)
        self.live |= {won.definition.name: won for won in done.won}

    def end(self, name: str, outcome: Outcome | Parked) -> None:
        """Settle the live run of a task."""
        won = self.live.pop(name)
        with self.store() as store, store.write() as session:
            Settler(HOLDER, "here", LEASE_US).step(session, [Delivery(holding=self._holding(won), verdict=outcome)])

    def screen(self, columns: int | None, *args: str, colour: bool = False) -> str:
        """What one command shows: on a terminal so wide, or piped; both streams, with the home as ~."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("COLUMNS", str(columns)) if columns else patch.delenv("COLUMNS", raising=False)
            patch.setenv("FORCE_COLOR", "1") if colour else patch.setenv("NO_COLOR", "1")
            called: Called = self.scene.call(*args)
        told = called.out + (f"--- standard error\n{called.err}" if called.err else "")
        code = f"--- exit {called.code}\n" if called.code else ""
        shown = (
            (told + code)
            .replace(self.scene.address, "~/duly.db")
            .replace(str(self.scene.home), "~")
            .replace("\x1b", "␛")
        )
        return "\n".join(line.rstrip() for line in shown.splitlines()) + "\n"

    def _holding(self, won: Won) -> Holding:
        folder = Path(self.scene.home) / "run"
        return hold(won.run, won.definition, runner=Idle(), run_folder=folder, trust_end_us=0)


@contextmanager
def world(scene: Scene) -> Iterator[World]:
    """Give a world whose clock, chance and caller are set for all that is called in this process."""
    # Before anything is drawn: how much chance it takes to make a store is of the database.
    scene.ok("init")
    made = World(scene)
    drawn = (byte for number in range(1_000_000) for byte in hashlib.sha256(str(number).encode()).digest())

    def bytes_(count: int) -> bytes:
        return bytes(islice(drawn, count))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clock, "now", made.clock.now)
        databases.by_this_clock(patch)
        patch.setattr(chance, "token_bytes", bytes_)
        patch.setattr(lookup, "caller", lambda: "ann")
        yield made


def compare(path: Path, shown: str) -> None:
    """Hold a screen against the file that says how it shall be; DULY_GOLDEN=write writes the files anew."""
    if os.environ.get("DULY_GOLDEN") == "write":
        path.parent.mkdir(exist_ok=True)
        path.write_text(shown)
    assert shown == path.read_text(), f"{path.name}: DULY_GOLDEN=write writes it anew, to be read before it is kept"
