"""The end of the work and the sweep of its holder, released at one instant: a run ends once, whoever comes first."""

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest
from store_scene import HOUR, LEASE_US, NINE, SECOND, Scene, scene
from test_store_places import Kept, register

import databases
from by_hand import file_line
from duly.core.run import Run
from duly.core.triggers import Every
from duly.holder.carrier import Carrier
from duly.holder.figures import figures
from duly.holder.holdings import Holdings
from duly.holder.presence import place_of
from duly.holder.recovery import Recovery
from duly.holder.settling import Delivery, Settler
from duly.holder.sweeper import Sweeper
from duly.runners.registry import Registry
from duly.store import Store

ROUNDS = 1_000
LEAST = 50
"""How often each side has to come first, for the race to be one."""


class Successor:
    """A holder of another place, which has read that the lease is over and is about to take the run."""

    def __init__(self, s: Scene, store: Store) -> None:
        self.store = store
        self._registry = Registry({"command": Kept})
        place = place_of(store.run_folder, s.clock.boot)
        self._sweeper = Sweeper(store, "hld_b", place, figures(), Holdings(), self._registry)
        self._delivered: list[Delivery] = []
        carrier = Carrier(s.clock, LEASE_US, self._delivered.append)
        self._recovery = Recovery(s.clock, carrier, self._delivered.append, store, "hld_b")

    def read(self) -> list[Run]:
        with self.store.read() as session:
            return session.runs.held_by_others("hld_b", 10)

    def sweep(self, read: list[Run]) -> bool:
        """Take it over, look at what is left of it, and settle; says whether it was taken."""
        taken = self._sweeper.take([(run, "lease_over") for run in read])
        for one in taken:
            self._recovery.step(one)
        if self._delivered:
            with self.store.write() as session:
                Settler("hld_b", "there", 1).step(session, self._delivered)
            self._delivered.clear()
        return bool(taken)

    def close(self) -> None:
        self._registry.close()


def released_together(one: Callable[[], bool], other: Callable[[], bool]) -> tuple[bool, bool]:
    """Do both at once, the second in the thread of the caller, and give what each answered."""
    gate = threading.Barrier(2)

    def first() -> bool:
        gate.wait()
        return one()

    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(first)
        gate.wait()
        second = other()
        return answer.result(), second


@pytest.mark.parametrize("interrupted", ["fail", "retry"])
def test_a_completion_and_a_sweep_released_at_a_barrier_end_the_run_once_whoever_comes_first(
    tmp_path: Path, interrupted: str
) -> None:
    with scene(tmp_path) as s:
        abroad = tmp_path / "abroad"
        abroad.mkdir()
        register(s.store, "hld_a", s.clock.boot).leave()
        s.sql("UPDATE holders SET place = ? WHERE id = 'hld_a'", place_of(abroad, s.clock.boot))
        stores = [s.store, s.connect()]
        if not databases.ON_SERVER:
            for store in stores:
                file_line(store).raw.execute("PRAGMA synchronous=OFF")
        s.add("one", Every(span=SECOND, anchor=NINE), on_interrupt=interrupted, grace=HOUR, max_age=timedelta(days=9))
        successor = Successor(s, stores[1])
        first: Counter[str] = Counter()
        for number in range(ROUNDS):
            s.at(s.clock.moment + SECOND)
            s.plan()
            [won] = s.claim()
            s.clock.lease += LEASE_US + 1
            read, delivery = successor.read(), s.delivery(won)

            def complete(delivery: Delivery = delivery) -> bool:
                with stores[0].write() as session:
                    return Settler("hld_a", "here", 1).step(session, [delivery])[0].run is not None

            def sweep(read: list[Run] = read) -> bool:
                return successor.sweep(read)

            # Whose thread comes to the barrier last goes on without being woken: each side has that in turn.
            if number % 2:
                completed, taken = released_together(complete, sweep)
            else:
                taken, completed = released_together(sweep, complete)
            after = s.run(won.run.id)
            assert completed is not taken, "one of the two has it"
            first["sweep" if taken else "completion"] += 1
            with s.store.read() as session:
                told = Counter(
                    one.entry.kind
                    for one in session.ledger.of_run(won.run.id)
                    if one.entry.attempt in (None, won.run.attempt)
                )
            if completed:
                assert (after.state, after.outcome, told["ended"], told["fence_lost"]) == ("ended", "succeeded", 1, 0)
            else:
                assert after.outcome != "succeeded"
                assert told["fence_lost"] == 1
        successor.close()
        assert min(first["sweep"], first["completion"]) >= LEAST, first
        assert s.faults() == []
