"""The flow of a simulated world: who gets a turn when, and what comes between two calls of the store.

One thread plays all parts. A process that is suspended in a call, for a moment or frozen past its lease, waits on the
stack while the others take their turns; what must never be late (keepers, guards) is looked at whenever time passes.
"""

from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path

from duly import clock
from duly.chance import Source
from duly.errors import StoreAway, StoreFull, StoreSilent, StoreUnknown
from duly.holder.wish import Wish
from duly.ports import Assignment
from duly.testing.children import FOREVER_US, Child, Script
from duly.testing.clocks import BOOTED_US, Machine, Time
from duly.testing.keepers import Keepers
from duly.testing.lives import Killed, Life, Place, Turn
from duly.testing.served import Ear, Server
from duly.testing.stores import Door, Opening, Point
from duly.testing.troubles import QUIET

DEPTH_MOST = 3
"""Calls suspended one within another."""
SECOND_US = 1_000_000
STORY_MOST = 400
"""Lines of the story that are kept."""
TURNS_BETWEEN = 3
WAKES = 0.5
"""Of the times when others come between, so often what was stopped goes on just then."""
AWAY = "the store cannot be reached"
FULL = "the disk of the store is full; nothing was changed"
LOST = "the answer to a write was lost, and it may stand"
LOST_AND_STANDS = "the answer to a write was lost, and it stands"
STATEMENTS = 0.1
"""Of the statements of a write, so many are points at which anything may come between."""
DRAWN = (AWAY, FULL, LOST, "the store is locked by another process")
"""How the errors of the store begin that a world draws; any other is nobody's wish."""
PUNCTUAL_US = (0, 20_000)
LATE_S = (0.5, 12.0)


class Flow:
    """Lets time pass and gives turns, drawn from one source; `looked` is asked after every commit and every begin."""

    def __init__(self, opening: Opening, draw: Source, wish: Wish) -> None:
        self.opening = opening
        self.draw = draw
        self.wish = wish
        self.served = False
        """The store is on a server: hosts see nothing of each other but that."""
        self.troubles_of_all = QUIET
        """How often things go wrong in this world when they do."""
        self.time = Time()
        self.machine = Machine(self.time)
        self.door = Door()
        self.troubles = QUIET
        self.lives: list[Life] = []
        self.born = 0
        self.placed: dict[str, Place] = {}
        """Where each that ever lived was, by its id."""
        self.steps = 0
        self.faults = 0
        self.story: list[str] = []
        self.scripts: Callable[[Assignment], Script] = lambda _work: Script(lasts_us=SECOND_US)
        self.looked: Callable[[Life | None], None] = lambda _life: None
        self.begun: Callable[[Child], None] = lambda _child: None
        self.heard: Callable[[Life, str, Mapping[str, object]], None] = lambda _life, _event, _figures: None
        self._depth = 0
        self._running: list[Turn] = []
        self.places = [Place(keepers=self.keepers())]

    def keepers(self, *, deadlines: bool = False) -> Keepers:
        """Make the keepers of one more place."""
        return Keepers(self.machine, begun=self._begin_child, deadlines=deadlines)

    def host(self, folder: Path, name: str, *, rate: float = 1.0) -> Place:
        """Make one more host of those that share a server: with a boot, clocks and a run folder of its own."""
        machine = Machine(self.time, name=name, rate=rate, up_us=self.draw.randint(BOOTED_US // 4, BOOTED_US))
        run_folder = folder / f"{name}.run"
        return Place(
            keepers=Keepers(machine, begun=self._begin_child, holders=run_folder / "holders"), run_folder=run_folder
        )

    def _begin_child(self, child: Child) -> None:
        self.begun(child)

    # Time

    def advance(self, until_us: int) -> None:
        """Let time pass; keepers and guards do what is theirs at its instant, and nobody else gets a turn."""
        while self._reflex(until_us):
            pass
        self.time.us = max(self.time.us, until_us)

    def turn(self, until_us: int = FOREVER_US - 1) -> bool:
        """Give the next turn that is due up to an instant; False: there was none, and that instant is now."""
        while True:
            first, due_us = self._next()
            if not self._reflex(min(due_us, until_us)):
                break
        if first is None or due_us > until_us:
            if until_us < FOREVER_US - 1:
                self.time.us = max(self.time.us, until_us)
            return False
        self.time.us = max(self.time.us, due_us)
        self._give(first)
        return True

    def _next(self) -> tuple[Turn | None, int]:
        """Find who gets the next turn, and when; what is frozen gets its own when it wakes."""
        first, soonest_us = None, FOREVER_US
        for life in self.lives:
            if life.alive and not life.asleep:
                for turn in life.turns:
                    if not turn.busy and (due_us := max(turn.due_us, life.frozen_until_us)) < soonest_us:
                        first, soonest_us = turn, due_us
        return first, soonest_us

    def _reflex(self, until_us: int) -> bool:
        """Let the next thing happen, up to an instant, that is never late where its process is not frozen."""
        due_us, first, guarded = FOREVER_US, None, None
        for child in self._children():
            if (us := child.next_us()) < due_us:
                due_us, first = us, child
        for life in self.lives:
            if life.alive and not life.asleep and (us := max(life.guard_us, life.frozen_until_us)) < due_us:
                due_us, guarded = us, life
        if due_us > until_us:
            return False
        self.time.us = max(self.time.us, due_us)
        if guarded is not None:
            guarded.guard()
        elif first is not None:
            self._pass(first)
        return True

    def run_until(self, until_us: int) -> None:
        """Give all turns that are due up to an instant."""
        while self.turn(until_us):
            pass

    def _give(self, turn: Turn) -> None:
        self.steps += 1
        turn.busy = True
        turn.due_us = FOREVER_US  # what calls for it from now on is for its next turn
        self._running.append(turn)
        try:
            with clock.telling(turn.life.face):
                wait_s = turn.act()
        except Killed:
            self.bury(turn.life, "was killed in a call")
        except StoreAway as error:
            self.bury(turn.life, f"gave up: {error}")
        else:
            if wait_s is not None:
                turn.due_us = min(turn.due_us, self.time.us + int(wait_s * 1e6) + self.delay_us())
        finally:
            self._running.pop()
            turn.busy = False
            if not turn.life.alive:
                self._clear_up(turn.life)

    def _pass(self, child: Child) -> None:
        told = child.pass_(self.time.us)
        if told is not None:
            self.say(f"child {child.name[-8:]} {told}")
            if not child.alive:
                self.wake_carriers()

    def wake_carriers(self) -> None:
        """Let carriers look at their work: something has become of some."""
        for life in self.lives:
            if life.alive:
                life.call(life.carrying)

    def _children(self) -> list[Child]:
        return [child for place in self.places for child in place.keepers.living()]

    def delay_us(self) -> int:
        """Draw how late a thread gets its turn."""
        if self.draw.random() < self.troubles.late:
            return int(self.draw.uniform(*LATE_S) * 1e6)
        return self.draw.randint(*PUNCTUAL_US)

    # What lives ask

    def wait(self, life: Life, seconds: float) -> None:
        """Let so long pass in the middle of a turn of this life."""
        until_us = self.time.us + max(1, int(seconds * 1e6))
        if self.door.writer is life:
            self.advance(until_us)  # its commit has still to be looked at, before anybody else writes
        else:
            self._within(life, until_us)

    def at(self, life: Life, point: Point) -> None:
        """Let anything come between at this call: others' turns, a freeze, a fault, the end of the process."""
        trouble, draw = self.troubles, self.draw
        self._cut_off(life, point)
        if point == "statement" and draw.random() > STATEMENTS:
            return
        drawn = draw.random()
        deep = self._depth >= DEPTH_MOST
        if drawn < trouble.between and not deep:
            self._others()
        elif trouble.between <= drawn < trouble.between + trouble.freeze and not deep:
            self.freeze_in_call(life, point)
        elif drawn > 1 - trouble.crash and not life.is_busy_but(self._running[-1]):
            self.faults += 1
            self.say(f"{life.name} is killed at {point}")
            raise Killed
        else:
            self._fault(life, point)
        self._check_alive(life)

    def _cut_off(self, life: Life, point: Point) -> None:
        """Keep who is cut off from the store: it cannot even begin, and hears nothing of what it had begun."""
        if life.place.keepers.machine.cut_off_until_us <= self.time.us:
            return
        if point in {"read", "begin"}:
            raise StoreAway(AWAY)
        if point == "commit":
            raise StoreUnknown(LOST)

    def listen(self, life: Life, ear: Ear) -> None:
        """Let a life hear of writes; of some the word never comes, and some hear nothing from the begin on."""
        deaf = self.draw.random() < self.troubles_of_all.unheard

        def call() -> None:
            if life.alive and not deaf and self.draw.random() >= self.troubles.unheard:
                ear.ring()
                life.call(life.writer)

        assert isinstance(self.door, Server)
        self.door.calls.append(call)

    def committed(self, life: Life) -> None:
        """Look at what this life has committed."""
        self.looked(life)

    def script(self, assignment: Assignment) -> Script:
        """Say how the work of this attempt goes."""
        return self.scripts(assignment)

    def told(self, life: Life, event: str, figures: Mapping[str, object]) -> None:
        """Hear what a life says for people."""
        self.say(f"{life.name} tells: {event} {dict(figures)}")
        self.heard(life, event, figures)

    def freeze_in_call(self, life: Life, point: Point) -> None:
        """Freeze a process in the middle of a call, and let it go on later as if nothing had been."""
        self.faults += 1
        span_us = int(self.wish.figures.lease_us * self.draw.choice([0.1, 0.5, 1.0, 1.2, 2.0]))
        self.say(f"{life.name} is frozen at {point} for {span_us / 1e6:g} s")
        before, life.asleep = life.asleep, True
        try:
            self._within(life, self.time.us + span_us)
        finally:
            life.asleep = before
        self.say(f"{life.name} wakes at {point}")

    def _fault(self, life: Life, point: Point) -> None:
        """Draw an error of the store."""
        trouble, draw = self.troubles, self.draw
        if point in {"read", "begin"} and draw.random() < trouble.away:
            self._tell_fault(life, "the store is away")
            raise StoreAway(AWAY)
        if point == "commit" and draw.random() < trouble.full:
            self._tell_fault(life, "the disk is full at its commit")
            raise StoreFull(FULL)
        if point in {"commit", "committed"} and draw.random() < trouble.lost / 2:
            stands = point == "committed" or (self.served and draw.random() < 0.5)
            self._tell_fault(life, f"the answer is lost, and its write {'stands' if stands else 'fails'}")
            raise StoreUnknown(LOST if point == "committed" or not stands else LOST_AND_STANDS)
        if point == "statement" and draw.random() < trouble.cut / STATEMENTS:
            self._tell_fault(life, "the connection is cut")
            raise StoreSilent(AWAY)

    def _tell_fault(self, life: Life, what: str) -> None:
        self.faults += 1
        self.say(f"{life.name}: {what}")

    def _others(self) -> None:
        """Let others take some turns; no longer than a thread may be kept from its own."""
        until_us = self.time.us + self.draw.choice([50_000, 500_000, 2_000_000])
        if self.draw.random() < WAKES:
            for life in self.lives:
                life.frozen_until_us = min(life.frozen_until_us, self.time.us)
        self._depth += 1
        try:
            for _ in range(self.draw.randint(1, TURNS_BETWEEN)):
                if not self.turn(until_us):
                    break
        finally:
            self._depth -= 1

    def _within(self, life: Life, until_us: int) -> None:
        """Let the world go on until an instant, while one of this life's threads stands still."""
        if self._depth >= DEPTH_MOST:
            self.advance(until_us)
        else:
            self._depth += 1
            try:
                self.run_until(until_us)
            finally:
                self._depth -= 1
        self._check_alive(life)

    def _check_alive(self, life: Life) -> None:
        if not life.alive:
            raise Killed

    # Births and deaths

    def birth(self, place: Place | None = None, *, off: timedelta = timedelta(0), drift: float = 0.0) -> Life | None:
        """Let one more process begin to serve; None where it could not begin."""
        self.born += 1
        name = f"holder {self.born}"
        try:
            life = self._begin(name, place or self.places[0], off, drift)
        except StoreAway as error:
            self.say(f"{name} cannot begin: {error}")
            return None
        self.lives.append(life)
        self.placed[life.id] = life.place
        self.say(f"{name} begins as {life.id[-6:]}")
        return life

    def _begin(self, name: str, place: Place, off: timedelta, drift: float) -> Life:
        troubles, self.troubles = self.troubles, QUIET  # its own beginning is whole: it is no life before
        try:
            return Life(self, name, place, self.wish, off=off, drift=drift)
        finally:
            self.troubles = troubles

    def bury(self, life: Life, why: str) -> None:
        """End a life without a word to the store; its children live on, and others find that it is dead."""
        if life.alive:
            self.faults += 1
            self.say(f"{life.name} {why}")
            life.alive = False
            self._clear_up(life)

    def _clear_up(self, life: Life) -> None:
        life.clear_up()
        if life.cleared:
            self.lives = [one for one in self.lives if one is not life]

    def say(self, what: str) -> None:
        """Keep a line of the story, with its step and its moment."""
        self.story.append(f"{self.steps:>5} {self.time.us / 1e6:10.3f} {what}")
        if len(self.story) > 2 * STORY_MOST:
            del self.story[:STORY_MOST]
