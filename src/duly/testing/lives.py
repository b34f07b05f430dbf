"""Lives of a simulated world: processes that hold, each with the real loops of a holder, stepped one at a time."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol

from duly import clock
from duly.holder.carrier import Carrier
from duly.holder.figures import Figures
from duly.holder.holder import Holder
from duly.holder.setting import Setting
from duly.holder.wish import Wish
from duly.ports import Assignment
from duly.store.engines import Watched
from duly.testing.children import FOREVER_US, Nest, Script
from duly.testing.clocks import Face
from duly.testing.keepers import Keepers
from duly.testing.served import Ear, ServedStore
from duly.testing.stores import Door, Opening, Point, WatchedStore
from duly.testing.work import TurnedAbroad, TurnedCarrier, TurnedCarriers, TurnedInbox, WorkRegistry

IDLE_S = 1.0
AT_ONCE_S = 0.01


class Killed(BaseException):
    """This process was killed in the middle of a call; no code of its own sees another instant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where processes see each other's locks and attempts: a machine and a run folder."""

    keepers: Keepers
    run_folder: Path | None = None


class Around(Protocol):
    """What a life asks of its world."""

    opening: Opening
    door: Door

    def wait(self, life: "Life", seconds: float) -> None:
        """Let so long pass, in which everybody else goes on."""

    def at(self, life: "Life", point: Point) -> None:
        """Let anything come between at this call of the store."""

    def committed(self, life: "Life") -> None:
        """Look at what this life has committed."""

    def script(self, assignment: Assignment) -> Script:
        """Say how the work of this attempt goes."""

    def told(self, life: "Life", event: str, figures: Mapping[str, object]) -> None:
        """Hear what the life says for people."""

    def delay_us(self) -> int:
        """Draw how late a thread gets its turn."""

    def listen(self, life: "Life", ear: Ear) -> None:
        """Let a life hear of writes."""


class Turn:
    """One of the threads of a life, which gets its turn when it is due."""

    def __init__(self, life: "Life", name: str, act: Callable[[], float | None], due_us: int) -> None:
        self.life = life
        self.name = name
        self.act = act
        self.due_us = due_us
        self.busy = False


class Life:
    """One life of one process that may hold leases; StoreAway when it cannot even begin."""

    def __init__(self, world: Around, name: str, place: Place, wish: Wish, *, off: timedelta, drift: float) -> None:
        self.name = name
        self.place = place
        self.keepers = place.keepers
        self.alive = True
        self.frozen_until_us = 0
        self.asleep = False
        """Frozen in the middle of a call."""
        self.beaten_us = place.keepers.machine.time.us
        """When the last beat that was answered was sent, in true time."""
        self.leaving = False
        self.left = False
        self.cleared = False
        self.nest = Nest()
        self.grace_us = wish.figures.grace_us
        self._world = world
        self._again = True
        self.guard_us = 0
        wait = lambda seconds: world.wait(self, seconds)  # noqa: E731
        self.face = Face(place.keepers.machine, wait, off_us=off // clock.MICROSECOND, drift=drift)
        self.figures: Figures = wish.figures
        now_us = place.keepers.machine.time.us
        self.writer = Turn(self, "writer", self._write, now_us)
        self.heart = Turn(self, "heart", self._beat, now_us + wish.figures.beat_us)
        self.carrying = Turn(self, "carriers", self._carry, FOREVER_US)
        self.turns = (self.writer, self.heart, self.carrying)
        opened = world.opening(self.face)
        watched = WatchedStore if opened.engine.one_place else ServedStore
        self.store = watched(
            opened,
            world.door,
            self,
            at=lambda point: world.at(self, point),
            committed=lambda: world.committed(self),
            pause=wait,
            run_folder=place.run_folder,
        )
        setting = Setting(
            inbox=self._inbox,
            carrier=TurnedCarrier,
            carriers=self._carriers,
            traces=self.keepers,
            abroad=TurnedAbroad,
        )
        self.holder: Holder | None = None
        try:
            with clock.telling(self.face):
                self.holder = Holder(self.store, wish, WorkRegistry(self), tell=self._tell, setting=setting)
                self.holder.unblocker.look = lambda _path: None  # no process of the machine is in this world
                self.holder.register()
        except BaseException:
            self.die()
            raise

    @property
    def id(self) -> str:
        """The id of its holder."""
        assert self.holder is not None
        return self.holder.id

    @property
    def awake(self) -> bool:
        """Its threads get their turns."""
        return self.alive and not self.asleep and self.frozen_until_us <= self.keepers.machine.time.us

    def is_busy_but(self, turn: Turn | None) -> bool:
        """Another of its threads is in the middle of a call."""
        return any(one.busy for one in self.turns if one is not turn)

    def call(self, turn: Turn) -> None:
        """Let a thread have its turn soon."""
        turn.due_us = min(turn.due_us, self.keepers.machine.time.us + self._world.delay_us())

    def guard(self) -> None:
        """Let the guard look; it does no input or output, and is never late but where the whole process is."""
        assert self.holder is not None
        with clock.telling(self.face):
            wait_s = self.holder.guard.step()
        self.guard_us = self.keepers.machine.time.us + max(1, int(wait_s * 1e6))

    def script(self, assignment: Assignment) -> Script:
        """Say how the work of this attempt goes."""
        return self._world.script(assignment)

    def between(self) -> None:
        """Let anything come between the last look at the trust and the mark of the begin."""
        self._world.at(self, "begin")

    def wake(self) -> None:
        """Let the carriers look at their work soon."""
        self.call(self.carrying)

    def leave(self) -> None:
        """Ask it to stop in good order."""
        assert self.holder is not None
        self.leaving = True
        with clock.telling(self.face):
            self.holder.stop()

    def die(self) -> None:
        """End without a word: its locks are free, its connections closed; its children live on."""
        self.alive = False
        self.clear_up()

    def clear_up(self) -> None:
        """Give back what a life that is over still has, once none of its threads is in the middle of a call."""
        if self.alive or self.cleared or self.is_busy_but(None):
            return
        self.cleared = True
        if self.holder is not None and not self.left:
            self.holder.die()
        self.store.close()

    def _write(self) -> float | None:
        holder = self.holder
        assert holder is not None
        if self.leaving or holder.stopping:
            holder.run()
            holder.quit()
            self.left = True
            self.alive = False
            return None
        self._again = holder.step(again=self._again)
        if self._again:
            return AT_ONCE_S
        soonest = holder.writer.soonest
        if soonest is None:
            return IDLE_S
        return min(IDLE_S, max(AT_ONCE_S * 5, (soonest - self.face.now()).total_seconds()))

    def _beat(self) -> float:
        holder = self.holder
        assert holder is not None
        sent_us, began_us = self.face.lease_us(), self.keepers.machine.time.us
        wait_s = holder.beating.step()
        if wait_s * 1e6 >= self.figures.beat_us:  # it was answered: what it granted counts from before it was sent
            self.beaten_us = began_us
            self.keepers.extend(holder.id, sent_us + self.figures.trust_us)
        return wait_s

    def _carry(self) -> float | None:
        carriers = self.carriers
        if carriers.queue:
            carriers.queue.pop(0)()
        carriers.turned.look()
        return AT_ONCE_S if carriers.queue else None

    def _inbox(self, watch: Callable[[], Watched]) -> TurnedInbox:
        if not self.store.engine.one_place:
            ear: Any = watch()
            self._world.listen(self, ear)
        return TurnedInbox(lambda seconds: self._world.wait(self, seconds), lambda: self.call(self.writer))

    def _carriers(self, carrier: Carrier, slots: int) -> TurnedCarriers:
        self.carriers = TurnedCarriers(carrier, slots, lambda: self.call(self.carrying))
        return self.carriers

    def _tell(self, event: str, figures: Mapping[str, object]) -> None:
        self._world.told(self, event, figures)
