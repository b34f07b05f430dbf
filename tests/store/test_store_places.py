"""Taking over at the same place, at another place, and after a restart of the machine."""

import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from store_scene import LEASE_US, NINE, SECOND, Scene, SetClock, scene

from duly import clock as machine
from duly.clock import Clock
from duly.core.run import Run
from duly.holder.carrier import Carrier
from duly.holder.figures import figures
from duly.holder.holdings import Holdings
from duly.holder.presence import Presence, place_of
from duly.holder.recovery import Recovery
from duly.holder.settling import Delivery, Interrupted, Returned, Settler
from duly.holder.sweeper import Sweeper
from duly.holder.tidying import Tidier
from duly.ports import Assignment, Detached, How, Outcome
from duly.runners.registry import Registry
from duly.store import Store
from duly.store.address import Address
from duly.store.rows import HolderRow


class Kept:
    """Work under a keeper, which these tests never start."""

    kept = True

    def check(self, action: object) -> None:
        return None

    def perform(self, assignment: Assignment, checkpoint: object) -> Outcome | Detached:
        raise AssertionError("nothing lives that could be adopted")

    def stop(self, how: How) -> None:
        return None


def register(store: Store, holder: str, boot: str) -> Presence:
    """Stand as a holder: its lock in the run folder, its row in the store."""
    folder = store.run_folder
    presence = Presence(folder, holder)
    with store.write() as session:
        session.holders.insert(
            HolderRow(
                id=holder,
                place=place_of(folder, boot),
                boot=boot,
                host="here",
                pid=os.getpid(),
                ticks=None,
                started_at=NINE,
                last_beat_at=session.now,
                beat_lease_us=session.lease_us,
                lease_for=timedelta(microseconds=LEASE_US),
                state="alive",
                slots=1,
                labels=[],
                version="0.1.0",
                zone_data="",
                claims=0,
                claims_lost=0,
            )
        )
    return presence


def look(store: Store, clock: Clock, holder: str = "hld_b") -> list[Delivery]:
    """One sweep by a new holder, and its look at what it took over."""
    registry = Registry({"command": Kept})
    figures_ = figures()
    place = place_of(store.run_folder, clock.boot_id())
    sweeper = Sweeper(store, holder, place, figures_, Holdings(), registry)
    delivered: list[Delivery] = []
    recovery = Recovery(clock, Carrier(clock, figures_.beat_us, delivered.append), delivered.append, store, holder)
    for taken in sweeper.step():
        recovery.step(taken)
    registry.close()
    return delivered


def held_by_one(s: Scene, **rules: str) -> tuple[Run, Presence]:
    presence = register(s.store, "hld_a", s.clock.boot)
    won = s.held("one", **rules)
    return won.run, presence


def over(clock: SetClock) -> None:
    """Let the lease run out."""
    clock.lease += LEASE_US + 1
    clock.moment += 2 * 100 * SECOND


def settle(store: Store, deliveries: list[Delivery]) -> None:
    with store.write() as session:
        Settler("hld_b", "here", 1).step(session, deliveries)


def test_a_claim_of_the_dead_that_never_began_is_given_back_at_once(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        run, presence = held_by_one(s)
        assert look(s.store, s.clock) == [], "its lock is held: it lives"
        presence.release()
        (delivery,) = look(s.store, s.clock)
        assert isinstance(delivery.verdict, Returned)
        settle(s.store, [delivery])
        assert s.run(run.id).state == "waiting"
        assert s.faults() == []


@pytest.mark.file("one place")
def test_a_store_that_was_moved_away_from_its_run_folder_never_lets_work_start_twice(tmp_path: Path) -> None:
    """What runs by the folder at the old place cannot be seen from the new one, so it is not started again."""
    with scene(tmp_path) as s:
        run, presence = held_by_one(s, on_interrupt="retry")
        s.close()
        (tmp_path / "other").mkdir()
        moved = Address(path=s.path.rename(tmp_path / "other" / "duly.db"))
        store = Store.open(moved, s.environ, clock=s.clock)
        moved.run_folder.mkdir()
        over(s.clock)
        deliveries = look(store, s.clock)
        for delivery in deliveries:
            assert isinstance(delivery.verdict, Outcome), delivery.verdict
            assert not delivery.verdict.confirmed
        settle(store, deliveries)
        with store.read() as session:
            after = session.runs.by_id(run.id)
        assert after is not None
        assert after.state == "held" or after.reason == "end_not_confirmed"
        assert s.claim(store, holder="hld_b") == []
        assert not (moved.run_folder / "attempts").exists(), "nothing was forbidden where nothing was started"
        store.close()
        presence.leave()


@pytest.mark.file("one place")
def test_what_began_at_another_place_is_not_taken_for_never_begun_by_the_second_who_takes_it_over(
    tmp_path: Path,
) -> None:
    """The first took the lease and died before it could say that nothing of the work can be seen from here."""
    with scene(tmp_path) as s:
        run, presence = held_by_one(s, on_interrupt="retry")
        s.close()
        (tmp_path / "other").mkdir()
        moved = Address(path=s.path.rename(tmp_path / "other" / "duly.db"))
        store = Store.open(moved, s.environ, clock=s.clock)
        moved.run_folder.mkdir()
        over(s.clock)
        first = register(store, "hld_b", s.clock.boot)
        assert len(look(store, s.clock)) == 1
        first.release()
        (delivery,) = look(store, s.clock, "hld_c")
        assert isinstance(delivery.verdict, Outcome), delivery.verdict
        assert delivery.verdict.reason == "end_not_confirmed"
        store.close()
        presence.leave()


def write_nothing(folder: Path) -> None:
    """The mark was never synced: the power cut took it."""


def write_folder(folder: Path) -> None:
    folder.mkdir(parents=True)


@pytest.mark.parametrize("left", [write_nothing, write_folder])
@pytest.mark.parametrize("locks", ["its lock file is left", "its lock file is gone"])
@pytest.mark.parametrize("policy", ["fail", "retry"])
def test_after_a_restart_of_the_machine_what_was_held_counts_as_started(
    tmp_path: Path, left: Callable[[Path], None], locks: str, policy: str
) -> None:
    with scene(tmp_path) as s:
        run, presence = held_by_one(s, on_interrupt=policy)
        left(s.store.run_folder / "attempts" / f"{run.id}.{run.fence}")
        presence.release() if "left" in locks else presence.leave()
        s.clock.boot, s.clock.lease = "boot-two", 5_000_000
        s.at(s.clock.moment + 60 * SECOND)
        (delivery,) = look(s.store, s.clock)
        assert isinstance(delivery.verdict, Interrupted), delivery.verdict
        settle(s.store, [delivery])
        after = s.run(run.id)
        if policy == "fail":
            assert (after.state, after.outcome, after.reason) == ("ended", "abandoned", "holder_died")
        else:
            assert (after.state, after.interruptions) == ("waiting", 1)
        assert s.faults() == []


@pytest.mark.parametrize("beats", [True, False])
def test_who_beats_while_another_finds_it_dead_is_not_marked_so(tmp_path: Path, beats: bool) -> None:
    with scene(tmp_path) as s:
        register(s.store, "hld_a", s.clock.boot_id()).release()
        with s.store.read() as session:
            [found] = session.holders.living()
        if beats:
            with s.store.write(first=True) as session:
                later_us = found.beat_lease_us + LEASE_US
                session.holders.beat("hld_a", now=session.now, lease_us=later_us, claims=0, claims_lost=0)
        with s.store.write() as session:
            assert session.holders.mark_dead(found) is not beats
            assert [row.id for row in session.holders.living()] == (["hld_a"] if beats else [])


def test_deadlines_of_lives_that_are_over_go_once_they_are_past_and_those_to_come_and_of_the_living_stay(
    tmp_path: Path,
) -> None:
    now_us = machine.boottime_us()
    lives, left, handed_over = (Presence(tmp_path, f"hld_{name}") for name in ("lives", "left", "handed_over"))
    try:
        for life in (lives, left):
            life.believed_until(now_us - 10, now_us - 5)
        handed_over.believed_until(now_us + 600_000_000, now_us + 610_000_000)
        (tmp_path / "holders" / "hld_torn.deadline").write_text("7")
        left.leave()
        handed_over.leave()
        Presence(tmp_path, "hld_next").leave()
        names = {path.name for path in (tmp_path / "holders").iterdir()}
    finally:
        lives.release()
    assert names == {"hld_lives.lock", "hld_lives.deadline", "hld_handed_over.deadline", "hld_torn.deadline"}


def test_the_lock_of_who_died_before_it_had_entered_is_cleared_by_the_next_and_no_other(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        _, presence = held_by_one(s)
        folder = s.store.run_folder
        begun = Presence(folder, "hld_begun")
        Presence(folder, "hld_early").release()
        presence.release()
        Tidier(s.store).step()
        left = {path.name for path in (folder / "holders").glob("*.lock")}
        assert left == {"hld_a.lock", "hld_begun.lock"}, "who holds a run is swept by the proof of its lock first"
        begun.leave()
