"""Guards that only a store on a server has, taken away one at a time: bugs that a simulation of hosts must find."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from math import inf
from typing import Any

from planted_bugs import Plant, all_of, put

from duly import clock
from duly.errors import StoreAway
from duly.holder.abroad import Abroad
from duly.holder.heart import Beaten, Beating, Distrust, Guard
from duly.holder.presence import Presence
from duly.holder.sweeper import Sweeper
from duly.store import postgres, server_engine
from duly.store.postgres import ServerClock
from duly.testing import STORM, Troubles, people, storm, world
from duly.testing.children import Script


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerBug:
    """A guard that is gone: its name, how it is taken away, and what happens more often while it is sought."""

    name: str
    plant: Plant
    control: Plant | None = None
    """What is more frequent or longer besides, and alone breaks nothing."""
    troubles: Troubles = STORM
    first: int = 0
    """Where the search begins: a seed near one that found it, so that the test is quick."""


@contextmanager
def planted(bug: ServerBug) -> Iterator[None]:
    with ExitStack() as stack:
        if bug.control is not None:
            bug.control(stack)
        bug.plant(stack)
        yield


@contextmanager
def controlled(bug: ServerBug) -> Iterator[None]:
    with ExitStack() as stack:
        assert bug.control is not None
        bug.control(stack)
        yield


BY_HAND = tuple(rules for rules in people.RULES if not rules.keys() & {"times", "spread", "on_missed"})
"""Rules that say something about a task which runs by hand only."""

# What each guard is replaced by


def hand_over_to_the_very_end(self: Abroad) -> None:
    """The deadline of work that is handed over is the end of its lease, and nothing is kept back."""
    self._until(self._clock.trust_us() + self._figures.handover_us)


def step_believing(self: Beating) -> float:
    """A beat without an answer moves the deadline as one that was answered."""
    try:
        beaten: Beaten | StoreAway = self._heart.step()
    except StoreAway as error:
        now_us = self._heart._store.clock.trust_us()
        self._heart.on_believed(now_us + self._figures.trust_us)
        beaten = error
    self._on_beat(beaten)
    if isinstance(beaten, Beaten):
        for holding in beaten.lost:
            holding.stop("kill", "lease_lost")
        return self._figures.beat_us / 1e6
    return self._figures.poll_us / 1e6


def as_the_host_has_it(self: ServerClock) -> tuple[Any, int]:
    """What is due is judged by the clock of the host, and not by that of the database."""
    return clock.now(), self._line.stamp_us


def deaf_for_very_long(**ways: Any) -> Script:
    """Work that ignores TERM, and takes longer than what is handed over may."""
    return Script(**{**ways, "deaf": True, "lasts_us": 90_000_000})


def often(*calamities: str) -> Plant:
    """Let nothing befall hosts but this."""
    return put(storm.Storm, "_that_befall", lambda self, _places: tuple(getattr(self, name) for name in calamities))


def far_ahead(self: storm.Storm) -> None:
    """The clock of the server is set ahead of every lease."""
    self.world.move_store_clock(timedelta(seconds=15))


def cut_off_for_long(self: storm.Storm) -> None:
    """A host is cut off for longer than its leases and its keepers' deadlines."""
    self.world.cut_off(self.draw.choice(self.world.flow.places), timedelta(seconds=30))


def join_and_stay(self: storm.Storm) -> None:
    """Let there be one process at each of two hosts from the begin on, which nothing but chance ends."""
    while len(self.world.lives) < len(self.world.flow.places):
        self.world.serve(place=self.world.flow.places[len(self.world.lives)])


def believes_until_the_next_beat(self: Distrust, now_us: int, _ahead_us: int) -> bool:
    """The clock of the store is compared at beats alone."""
    return self._since_us is not None and now_us - self._since_us > self._lease_us


AGITATED = replace(STORM, calamity=0.1)

SERVER_BUGS: dict[str, ServerBug] = {
    bug.name: bug
    for bug in (
        ServerBug(
            name="what is kept back of the deadline at a hand-over",
            plant=put(Abroad, "hand_over", hand_over_to_the_very_end),
            control=all_of(put(world, "Script", deaf_for_very_long), often("leave", "join", "join")),
            troubles=AGITATED,
            first=3,
        ),
        ServerBug(
            name="the deadline that keepers hold",
            plant=put(Presence, "believed_until", lambda _self, _trust_us, _kill_us: None),
            control=all_of(put(world, "Script", deaf_for_very_long), often("freeze", "kill", "join", "join")),
            troubles=AGITATED,
            first=2,
        ),
        ServerBug(
            name="a deadline that moves with answers alone",
            plant=put(Beating, "step", step_believing),
            # The guard of a holder that turns ends its work too, and would hide it.
            control=all_of(
                put(Guard, "step", lambda _self: 1.0),
                put(world, "Script", deaf_for_very_long),
                put(storm.Storm, "cut_off", cut_off_for_long),
                often("cut_off", "join"),
            ),
            troubles=replace(STORM, calamity=0.04, crash=0.0, people=0.03),
            first=46,
        ),
        ServerBug(
            name="distrust of the store's clock",
            plant=put(Distrust, "believes", lambda _self, _now_us, _ahead_us: True),
            control=all_of(put(storm.Storm, "move_store_clock", far_ahead), often("move_store_clock", "join")),
            troubles=AGITATED,
        ),
        ServerBug(
            name="distrust before the next beat",
            plant=put(Distrust, "believes", believes_until_the_next_beat),
            control=all_of(
                put(storm.Storm, "move_store_clock", far_ahead),
                put(storm.Storm, "join", join_and_stay),
                often("move_store_clock"),
            ),
            troubles=replace(STORM, calamity=0.015),
            first=14,
        ),
        ServerBug(name="what is due by the clock of the database", plant=put(ServerClock, "begun", as_the_host_has_it)),
        ServerBug(
            name="an end to standing still in a write",
            plant=put(postgres, "TURN_S", 0.0),
            troubles=replace(STORM, freeze=0.05),
            first=1,
        ),
        ServerBug(
            name="a look although nothing was heard",
            plant=put(server_engine, "LOOK_ANYWAY_S", inf),
            control=all_of(put(people, "TIMES", ("manual",) * 6), put(people, "RULES", BY_HAND)),
            troubles=replace(STORM, unheard=1.0),
            first=16,
        ),
        ServerBug(name="work of another host", plant=put(Sweeper, "_is_elsewhere", lambda _self, _former, _run: False)),
    )
}
