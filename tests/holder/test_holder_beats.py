"""What a beat grants, and what it takes for a stray, where something happens between its sending and its answer."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from holder_scene import Stage, until_idle
from test_holder_leases import MINUTE, held

from by_hand import by_hand
from duly.holder.settling import Delivery, Returned, Verdict
from duly.operations import runs as asks
from duly.ports import Detached, Outcome


@pytest.mark.parametrize("waited", [timedelta(seconds=1), timedelta(seconds=19), timedelta(seconds=60)])
def test_trust_counts_from_before_the_beat_was_sent_waiting_for_the_lock_included(
    stage: Stage, waited: timedelta
) -> None:
    holder, _ = held(stage)
    stage.clock.pass_(timedelta(seconds=20))
    sent_us, write = stage.clock.lease, holder.heart._store.write

    @contextmanager
    def slow(**given: Any) -> Iterator[Any]:
        stage.clock.pass_(waited)
        with write(**given) as session:
            yield session

    holder.heart._store.write = slow  # type: ignore[method-assign]
    holder.heart.step()
    figures = holder._wish.figures
    [holding] = holder.holdings.all()
    assert holding.trust_end_us == sent_us + figures.trust_us
    [run] = stage.read().runs
    assert run.lease_end_us == stage.clock.lease + figures.lease_us, "the lease counts from the write"


@pytest.mark.parametrize("runs", [1, 3])
def test_a_claim_under_way_while_a_beat_is_answered_is_no_stray(stage: Stage, runs: int) -> None:
    """Committed, and not yet handed to its carrier: the beat between finds the rows in our name."""
    holder = stage.holder()
    for place in range(runs):
        stage.add(f"t{place}", "manual")
        asks.run_now(stage.store, f"t{place}", by="test")
    with stage.store.write() as session:
        won = holder.dispatcher.step(session, runs).won
    ids = [one.run.id for one in won]
    holder.holdings.claiming(ids)
    assert holder.heart.step().strays == ()
    holder.holdings.claimed([], ids)
    assert sorted(holder.heart.step().strays) == sorted(ids), "forgotten, they are"


@pytest.mark.parametrize(
    "verdict",
    [Outcome(word="failed", reason="exit_status"), Outcome(word="succeeded"), Returned(why="x"), Detached()],
    ids=["failed", "succeeded", "returned", "detached"],
)
def test_what_an_earlier_claim_of_ours_brings_late_changes_nothing_of_the_present_one(
    stage: Stage, verdict: Verdict
) -> None:
    """Lost and taken back: holder and fence are the same again, and only the token tells the claims apart."""
    holder, run = held(stage)
    [old] = holder.holdings.all()
    with stage.store.write() as session:
        by_hand(session.line, "UPDATE runs SET claim_token = 'taken back', version = version + 2")
    before = stage.read().runs
    with stage.store.write() as session:
        [done] = holder.writer.settler.step(session, [Delivery(holding=old, verdict=verdict)])
    assert done.run is None
    assert stage.read().runs == before
    assert stage.read().kinds(run)[-1] == "fence_lost"


def test_a_beat_of_a_holder_without_work_grants_nothing_and_finds_nothing(stage: Stage) -> None:
    holder = stage.holder()
    stage.clock.pass_(MINUTE)
    until_idle(holder)
    beaten = holder.heart.step()
    assert (beaten.ours, beaten.lost, beaten.strays, beaten.registered) == (0, (), (), True)
