"""The storm: a world with everything in it, one seed a history; `python -m duly.testing` plays many of them."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from duly.clock import MICROSECOND
from duly.testing.children import Child
from duly.testing.clocks import Machine
from duly.testing.lives import Place
from duly.testing.people import People
from duly.testing.stores import Opening, file_store
from duly.testing.troubles import STORM, Troubles
from duly.testing.world import LEASE, World

STEPS = 220
"""Turns of one history, before it comes to rest."""
LIVES_MOST = 4
SKEW_S = 300.0
RATES = (1.0, 1 + 2e-4, 1 - 2e-4)
"""How fast the clocks of hosts go."""


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """What one seed came to, with no promise broken."""

    seed: int
    steps: int
    faults: int
    runs: int
    children: int
    passed: timedelta


def play(
    seed: int,
    *,
    steps: int = STEPS,
    troubles: Troubles = STORM,
    opening: Callable[[Path], Opening] = file_store,
    places: int = 1,
) -> History:
    """Play one history to its end; BrokenPromise names the step at which a promise was not kept."""
    with World(seed=seed, troubles=troubles, opening=opening) as world:
        storm = Storm(world, places)
        storm.run(steps)
        world.come_to_rest()
        return History(
            seed=seed,
            steps=world.flow.steps,
            faults=world.flow.faults,
            runs=len(world.runs()),
            children=len(world.children()),
            passed=timedelta(microseconds=world.flow.time.us),
        )


class Storm:
    """Tasks, people, processes and calamities of one history."""

    def __init__(self, world: World, places: int = 1) -> None:
        self.world = world
        self.draw = world.draw
        self.people = People(world)
        self._settle(places)
        self._calamities = self._that_befall(places)

    def _settle(self, places: int) -> None:
        """Make so many places: hosts that share a server, or folders of one machine."""
        flow = self.world.flow
        for number in range(1, places):
            if flow.served:
                self.world.host(rate=RATES[number % len(RATES)])
            else:
                folder = self.world.folder / f"place-{number}.run"
                flow.places.append(Place(keepers=flow.keepers(deadlines=True), run_folder=folder))
        flow.places[0].keepers.deadlines = places > 1

    def _that_befall(self, places: int) -> tuple[Callable[[], None], ...]:
        of_processes = (self.kill, self.freeze, self.freeze, self.leave, self.join, self.move_clock)
        if self.world.flow.served:
            return (*of_processes, self.join, self.move_store_clock, self.cut_off, self.restart)
        if places > 1:  # what a place cannot promise to others: work whose keeper is gone, machines that restart apart
            return of_processes
        of_keepers = (self.kill_keeper, self.stop_keeper, self.kill_keeper_and_nursery)
        return (self.kill, *of_processes[:5], *of_keepers, self.move_clock, self.restart)

    def run(self, steps: int) -> None:
        """Let so many turns be taken."""
        with self.world.playing():
            self._run(steps)

    def _run(self, steps: int) -> None:
        self.people.settle_in()
        for _ in range(self.draw.randint(1, 3)):
            self.join()
        while self.world.flow.steps < steps:
            if not self.world.lives:
                self.join()
                if not self.world.lives:  # where nobody can enter, a host that is cut off, only time helps
                    self.world.let_pass(timedelta(seconds=1))
            drawn = self.draw.random()
            if drawn < self.world.troubles.people:
                self.people.ask()
            elif drawn < self.world.troubles.people + self.world.troubles.calamity:
                self.draw.choice(self._calamities)()
            self.world.turns(1)

    def join(self) -> None:
        """Let one more process serve."""
        if len(self.world.lives) < LIVES_MOST:
            off = timedelta(seconds=self.draw.choice([0, 0, 1, self.draw.uniform(-SKEW_S, SKEW_S)]))
            self.world.serve(place=self.draw.choice(self.world.flow.places), off=off, drift=self.draw.choice([0, 1e-4]))

    def kill(self) -> None:
        """Kill a process."""
        if self.world.lives:
            self.world.kill(self.draw.choice(self.world.lives))

    def freeze(self) -> None:
        """Stop a process between two turns, past its lease or not."""
        if self.world.lives:
            span = (LEASE // MICROSECOND) * self.draw.choice([0.3, 1.1, 3.0])
            self.world.freeze(self.draw.choice(self.world.lives), timedelta(microseconds=span))

    def leave(self) -> None:
        """Ask a process to stop."""
        if self.world.lives:
            self.world.stop(self.draw.choice(self.world.lives))

    def kill_keeper(self) -> None:
        """Kill the keeper of something that lives."""
        child = self._child()
        if child is not None:
            self.world.flow.say(f"the keeper of {child.name[-8:]} is killed")
            child.kill_keeper(self.world.flow.time.us)
            self.world.flow.wake_carriers()

    def stop_keeper(self) -> None:
        """Stop the keeper of something that lives."""
        child = self._child()
        if child is not None:
            self.world.flow.say(f"the keeper of {child.name[-8:]} is stopped")
            child.stop_keeper()

    def kill_keeper_and_nursery(self) -> None:
        """Kill a keeper and the nursery that would end what it leaves."""
        child = self._child()
        if child is not None:
            self.world.flow.say(f"keeper and nursery of {child.name[-8:]} are killed")
            child.nest.alive = False
            child.kill_keeper(self.world.flow.time.us)
            self.world.flow.wake_carriers()

    def move_clock(self) -> None:
        """Move the civil clock of the machine, as sleep or a correction does."""
        span = timedelta(seconds=self.draw.choice([-30, -1, 1, 40, 3600]))
        self.world.move_civil_clock(span, self._machine())

    def move_store_clock(self) -> None:
        """Move the clock of the server, as a fail-over to another does."""
        self.world.move_store_clock(timedelta(seconds=self.draw.choice([-20, -2, 0.5, 3, 15, 15, 600])))

    def cut_off(self) -> None:
        """Cut a host off from the store, past its leases or not."""
        span = self.draw.choice([0.3, 1.1, 3.0]) * LEASE
        self.world.cut_off(self.draw.choice(self.world.flow.places), span)

    def restart(self) -> None:
        """Restart a machine."""
        self.world.restart_machine(self._machine())

    def _machine(self) -> Machine | None:
        """Choose a machine, where there are several."""
        return self.draw.choice(self.world.flow.places).keepers.machine if self.world.flow.served else None

    def _child(self) -> Child | None:
        living = [child for place in self.world.flow.places for child in place.keepers.living()]
        return self.draw.choice(living) if living else None
