"""A simulated world: several holders over one real store, with time, work and troubles that only the world decides."""

import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Self

from duly import chance, clock
from duly.clock import MICROSECOND
from duly.core.run import Entry, Run
from duly.core.task import Task
from duly.definitions import read_definition
from duly.holder.figures import figures
from duly.holder.wish import Wish
from duly.operations import tasks
from duly.operations.lookup import find_task
from duly.ports import Assignment
from duly.store import Store
from duly.testing.children import Child, Script
from duly.testing.clocks import Face, Machine
from duly.testing.flow import DRAWN, Flow
from duly.testing.lives import Life, Place
from duly.testing.promises import Fault, Promises
from duly.testing.served import ServedStore, Server
from duly.testing.stores import Opening, WatchedStore, file_store, quick_folder
from duly.testing.troubles import QUIET, Troubles

BEAT = timedelta(seconds=2)
LEASE = timedelta(seconds=10)
REST_MOST = timedelta(minutes=10)
"""How long a world that nothing troubles any more may take to bring everything to its end."""
TOLD_LINES = 40
HANDOVER = timedelta(seconds=30)
"""For how long others leave work alone that was handed over at a host, where hosts share a server."""
SILENT = re.compile(r"the store \S+ (does not answer|is busy|is locked|ended a transaction)|the store is busy").match
FAILED = frozenset({"turn failed", "look failed"})
UNANSWERED = frozenset({"store away", "beat unanswered"})


class BrokenPromise(AssertionError):
    """A promise was not kept: which, by what, at which step of which seed, and what happened before."""

    def __init__(self, faults: list[Fault], *, seed: int, step: int, story: list[str]) -> None:
        told = "; ".join(f"{one.promise}: {one.text}" for one in faults[:3])
        last = "\n".join(story[-TOLD_LINES:])
        super().__init__(f"{told}\nseed {seed}, step {step}: make sim SEED={seed} replays it\n{last}")
        self.faults = faults
        self.seed = seed
        self.step = step


class _Stopped(BaseException):
    """The world ends here, whatever it is in the middle of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ways:
    """How work of one task goes."""

    lasts: timedelta
    code: int = 0
    deaf: bool = False


class World:
    """A world of its own; use it in a `with`. Nothing happens but in its methods, and one seed is one history.

    `opening` gives a store for each process; without it a SQLite file is made in `folder`, or where none is given in
    memory.
    """

    def __init__(
        self,
        folder: Path | None = None,
        *,
        seed: int = 0,
        troubles: Troubles = QUIET,
        opening: Callable[[Path], Opening] = file_store,
        slots: int = 4,
        beat: timedelta = BEAT,
        lease: timedelta = LEASE,
    ) -> None:
        self.seed = seed
        self.folder = Path(tempfile.mkdtemp(prefix="duly-", dir=quick_folder())) if folder is None else folder
        self._kept = folder is not None
        self._chance = chance.seeded(f"{seed} chance")
        self.draw = chance.seeded(f"{seed} world")
        wish = Wish(slots=slots, figures=figures(beat, lease), drain=timedelta(seconds=3))
        self.flow = Flow(opening(self.folder), self.draw, wish)
        self.troubles = troubles
        self._ways: dict[str, Ways] = {}
        self.flow.scripts = self._script
        self.flow.looked = self._look
        self.flow.begun = self._begun
        self.flow.heard = self._hear
        face = self.face = Face(self.flow.machine, self._let)
        self.flow.troubles_of_all = troubles
        self.flow.time.turn_s = beat / timedelta(seconds=2)
        inner = self.flow.opening(face)
        self._eyes = inner.another()
        if not inner.engine.one_place:
            self._share_a_server(wish)
        watched = ServedStore if self.flow.served else WatchedStore
        self.store: Store = watched(
            inner, self.flow.door, self, at=lambda _point: None, committed=lambda: self._look(None), pause=self._let
        )
        self._promises = Promises(self._eyes, self.flow)
        self._broken: list[Fault] = []

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """End everything, and leave nothing where no folder was given."""
        self.close()

    # What people do

    def add(self, name: str, *when: str, **rules: object) -> Task:
        """Add a task that runs simulated work at these times, by these rules, as `duly add` reads them."""
        given = {
            "name": name,
            "triggers": list(when) or ["manual"],
            "action": {"kind": "command", "argv": ["simulated"]},
            "rules": rules,
        }
        with self.playing():
            read = read_definition(given, now=self.now, default_zone="UTC")
            return tasks.add(self.store, read.definition, by="world", source={"kind": "cli"})

    def work(self, name: str, *, lasts: timedelta, code: int = 0, deaf: bool = False) -> None:
        """Say how the work of a task goes from now on: how long, its exit status, and whether it ignores TERM."""
        self._ways[name] = Ways(lasts=lasts, code=code, deaf=deaf)

    @contextmanager
    def playing(self) -> Iterator[None]:
        """Let the operations of the house be called on `store` inside: time and chance are the world's."""
        with chance.drawing(self._chance), clock.telling(self.face):
            try:
                yield
            except _Stopped:
                raise self._failure() from None

    # What happens

    def serve(self, *, place: Place | None = None, off: timedelta = timedelta(0), drift: float = 0.0) -> Life | None:
        """Let one more process serve; its civil clock may be off, and drift by so much a second."""
        with self.playing():
            return self.flow.birth(place, off=off, drift=drift)

    def let_pass(self, span: timedelta) -> None:
        """Let time pass: everybody gets the turns that are due, and what goes wrong is drawn by `troubles`."""
        with self.playing(), self._troubled():
            self.flow.run_until(self.flow.time.us + span // MICROSECOND)

    def turns(self, count: int) -> None:
        """Give so many turns, however much time that takes."""
        with self.playing(), self._troubled():
            for _ in range(count):
                if not self.flow.turn():
                    break

    def host(self, *, rate: float = 1.0) -> Place:
        """Give one more host that shares the server: a boot, clocks and a run folder of its own; see `serve`."""
        assert self.flow.served, "beside a file there is one machine"
        made = self.flow.host(self.folder, f"host-{len(self.flow.places)}", rate=rate)
        self.flow.places.append(made)
        return made

    def kill(self, life: Life) -> None:
        """End a process as kill -9 does; its work lives on under its keepers."""
        with self.playing():
            self.flow.bury(life, "is killed")

    def freeze(self, life: Life, span: timedelta) -> None:
        """Stop a process for so long; its keepers go on."""
        self.flow.say(f"{life.name} is stopped for {span.total_seconds():g} s")
        life.frozen_until_us = self.flow.time.us + span // MICROSECOND

    def stop(self, life: Life) -> None:
        """Ask a process to end in good order; it does so in the time that passes next."""
        with self.playing():
            self.flow.say(f"{life.name} is asked to stop")
            life.leave()

    def restart_machine(self, machine: Machine | None = None) -> None:
        """Switch a machine off and on: all its processes are gone, holders and work alike."""
        machine = machine or self.flow.machine
        with self.playing():
            self.flow.say(f"the machine of {machine.boot} is restarted")
            for life in [one for one in self.flow.lives if one.keepers.machine is machine]:
                life.nest.alive = False
                self.flow.bury(life, "ends with its machine")
            for place in self.flow.places:
                if place.keepers.machine is machine:
                    place.keepers.restart()
            machine.reboot()

    def move_civil_clock(self, span: timedelta, machine: Machine | None = None) -> None:
        """Move a machine's civil clock: forward as sleep does, or back as a correction may."""
        self.flow.say(f"the civil clock moves by {span.total_seconds():g} s")
        (machine or self.flow.machine).off_us += span // MICROSECOND

    def move_store_clock(self, span: timedelta) -> None:
        """Move the clock of the server that the store is on, as a fail-over to another server does."""
        self.flow.say(f"the clock of the store moves by {span.total_seconds():g} s")
        self.flow.time.store_off_us += span // MICROSECOND

    def cut_off(self, place: Place, span: timedelta) -> None:
        """Keep everybody at a place from the store for so long; who is there goes on."""
        self.flow.say(f"{place.keepers.machine.name} is cut off from the store for {span.total_seconds():g} s")
        place.keepers.machine.cut_off_until_us = self.flow.time.us + span // MICROSECOND

    def come_to_rest(self) -> None:
        """Let nothing go wrong any more, open nothing new, and give what is open the time to end; then look at all."""
        self.troubles = QUIET
        for place in self.flow.places:
            place.keepers.machine.cut_off_until_us = 0
        for life in self.flow.lives:
            life.frozen_until_us = 0
        for child in self.children():
            child.continue_keeper(self.flow.time.us)
        self.flow.wake_carriers()
        if not self.flow.lives:
            self.serve()
        with self.playing():
            self._switch_off()
            until_us = self.flow.time.us + REST_MOST // MICROSECOND
            while not self._is_at_rest() and self.flow.time.us < until_us:
                self.flow.run_until(self.flow.time.us + LEASE // MICROSECOND)
                if not self.flow.lives:
                    self.flow.birth()
        self.check()

    def check(self) -> None:
        """Look at everything now; BrokenPromise says what was not kept."""
        with self.playing():
            self._stop_at(self._promises.at_the_end())

    # What there is

    @property
    def now(self) -> datetime:
        """The civil time of the world's people."""
        return self.face.now()

    @property
    def lives(self) -> tuple[Life, ...]:
        """The processes that serve now."""
        return tuple(self.flow.lives)

    def runs(self, name: str | None = None) -> list[Run]:
        """Give the runs of a task, or of all, in the order of their opening."""
        with self.playing(), self._eyes.read() as session:
            task = None if name is None else find_task(session, name).id
            return session.runs.listed(task=task, most=100_000)[::-1]

    def entries(self) -> list[Entry]:
        """Give the ledger."""
        with self._eyes.read() as session:
            return [one.entry for one in session.ledger.after(0, most=1_000_000)]

    def children(self) -> list[Child]:
        """Give all work that ever began, in the order of its begin."""
        every = [child for place in self.flow.places for child in place.keepers.children.values()]
        return sorted(every, key=lambda child: child.begun_us)

    def close(self) -> None:
        """End everything."""
        for life in list(self.flow.lives):
            life.alive = False
            for turn in life.turns:
                turn.busy = False
            life.clear_up()
        self._eyes.close()
        self.store.close()
        if not self._kept:
            shutil.rmtree(self.folder, ignore_errors=True)

    # How it is watched

    def _share_a_server(self, wish: Wish) -> None:
        """Let there be several hosts, one to begin with, that see nothing of each other but what the server tells."""
        server = self.flow.door = Server()
        server.turn_s = self.flow.time.turn_s
        server.stuck = lambda text: self._stop_at([Fault(promise="P6", text=text)])
        self.flow.served = True
        self.flow.wish = replace(wish, figures=replace(wish.figures, handover_us=HANDOVER // MICROSECOND))
        self.flow.places = [self.flow.host(self.folder, "host-0")]
        self.flow.machine = self.face.machine = self.flow.places[0].keepers.machine

    def _look(self, life: Life | None) -> None:
        self._promises.holding = {one.id: one for one in self.flow.lives if not one.cleared and one.holder}
        self._stop_at(self._promises.committed(life))

    def _begun(self, child: Child) -> None:
        self.flow.say(f"child {child.name[-8:]} begins for {child.script.lasts_us / 1e6:g} s")
        self._stop_at(self._promises.begun(child))

    def _hear(self, life: Life, event: str, figures: Mapping[str, object]) -> None:
        told = str(figures.get("error", ""))
        unexpected = event in UNANSWERED and not told.startswith(DRAWN) and not (self.flow.served and SILENT(told))
        within = self.flow.time.us - life.beaten_us < self.flow.wish.figures.lease_us
        told_first = life.holder is not None and not life.holder.forgotten
        if event == "forgotten" and within and told_first and not life.leaving:
            self._stop_at([Fault(promise="P5", text=f"{life.name} was taken for over within its lease")])
        if event in FAILED or unexpected:
            self._stop_at([Fault(promise="P9", text=f"{life.name}: {event}: {dict(figures)}")])

    def _stop_at(self, faults: list[Fault]) -> None:
        if faults:
            self._broken = faults
            raise _Stopped

    def _failure(self) -> BrokenPromise:
        return BrokenPromise(self._broken, seed=self.seed, step=self.flow.steps, story=self.flow.story)

    @contextmanager
    def _troubled(self) -> Iterator[None]:
        self.flow.troubles = self.troubles
        try:
            yield
        finally:
            self.flow.troubles = QUIET

    def _switch_off(self) -> None:
        """Let nothing new be opened, and let go of every hold, so that what was asked by hand can start."""
        with self._eyes.read() as session:
            held = [(one.scope, one.target) for one in session.pauses.all()]
            on = [task.id for task in session.tasks.page() if task.definition.enabled]
        for task in on:
            tasks.disable(self.store, task, by="world")
        for scope, target in held:
            tasks.unpause(self.store, scope, target, by="world")

    def _is_at_rest(self) -> bool:
        with self._eyes.read() as session:
            return not session.runs.counts()

    def _script(self, work: Assignment) -> Script:
        ways = self._ways.get(work.task_name) or Ways(lasts=timedelta(seconds=self.draw.uniform(0.2, 8.0)))
        gone_us = self.flow.wish.figures.gone_us
        return Script(
            lasts_us=ways.lasts // MICROSECOND,
            code=ways.code,
            deaf=ways.deaf,
            term_us=self.draw.randint(10_000, 800_000),
            kill_us=self.draw.randint(10_000, gone_us * 9 // 10),
            swept_us=self.draw.randint(50_000, 900_000),
        )

    def _let(self, seconds: float) -> None:
        until_us = self.flow.time.us + int(seconds * 1e6)
        if self.flow.door.writer is self:
            self.flow.advance(until_us)
        else:
            self.flow.run_until(until_us)
