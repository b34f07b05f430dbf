"""Heart, guard, sweeper and settling: who holds, who has lost, who may take over; on a lease clock moved by hand."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from holder_scene import Stage, until_idle
from test_holder_planning import settle_all

from by_hand import by_hand
from duly.clock import monotonic_s, pause
from duly.core import lifecycle
from duly.errors import StoreAway
from duly.holder.holder import Holder
from duly.holder.holdings import Holding
from duly.holder.settling import Delivery
from duly.operations import runs as asks
from duly.operations.audit import verify
from duly.ports import Outcome
from duly.store import Session, Store

MINUTE = timedelta(minutes=1)
LEASE = timedelta(seconds=100)
TICK = timedelta(microseconds=1)


def held(stage: Stage, **rules: Any) -> tuple[Holder, str]:
    """A holder in the middle of a run."""
    holder = stage.holder()
    stage.add("a", "once in 1m", **rules)
    stage.clock.pass_(MINUTE)
    until_idle(holder)
    stage.script.wait_for_starts(1)
    [run] = stage.read().runs
    assert run.state == "held"
    return holder, run.id


def settled(stage: Stage, holder: Holder, run: str) -> None:
    until = monotonic_s() + 20
    while next(one for one in stage.read().runs if one.id == run).state == "held":
        assert monotonic_s() < until
        holder.step()
        pause(0.005)


def test_a_beat_extends_the_leases_it_vouches_for_and_their_trust(stage: Stage) -> None:
    holder, run = held(stage)
    before = holder.holdings.all()[0].trust_end_us
    stage.clock.pass_(timedelta(seconds=20))
    beaten = holder.heart.step()
    assert (beaten.ours, beaten.lost, beaten.strays) == (1, (), ())
    [now] = stage.read().runs
    assert now.lease_end_us == stage.clock.lease + LEASE // TICK
    assert holder.holdings.all()[0].trust_end_us == before + 20_000_000


def test_a_late_beat_never_lowers_a_lease(stage: Stage) -> None:
    holder, run = held(stage)
    [before] = stage.read().runs
    stage.clock.lease -= 50_000_000
    holder.heart.step()
    assert stage.read().runs[0].lease_end_us == before.lease_end_us


def test_a_beat_cannot_bring_back_what_was_taken_away_and_says_lost(stage: Stage) -> None:
    holder, run = held(stage)
    with stage.store.write() as session:
        by_hand(session.line, "UPDATE runs SET fence = fence + 1, holder = 'hld_other', version = version + 1")
    before = stage.read().runs[0]
    beaten = holder.heart.step()
    assert [one.run.id for one in beaten.lost] == [run]
    assert stage.read().runs[0] == before


def test_the_guard_ends_the_work_at_the_end_of_trust_and_kills_it_a_grace_later(stage: Stage) -> None:
    holder, _ = held(stage)
    runner = stage.script.runners[0]
    [holding] = holder.holdings.all()
    stage.clock.lease = holding.trust_end_us - 1
    assert holder.guard.step() == 1e-6
    assert runner.stops == []
    stage.clock.lease = holding.trust_end_us
    holder.guard.step()
    assert runner.stops == ["term"]


def test_a_run_whose_trust_ended_is_settled_as_lease_lost_by_its_own_holder(stage: Stage) -> None:
    holder, run = held(stage)
    stage.clock.pass_(LEASE)
    holder.guard.step()
    settled(stage, holder, run)
    [now] = stage.read().runs
    assert (now.outcome, now.reason) == ("abandoned", "lease_lost")


def test_a_fresh_foreign_lease_is_never_touched_however_often_others_sweep(stage: Stage) -> None:
    _, run = held(stage)
    other = stage.holder()
    before = stage.read().runs
    for _ in range(5):
        assert other.sweeper.step() == []
    assert stage.read().runs == before


def test_exactly_at_the_end_of_a_lease_the_beat_wins_and_a_moment_later_the_sweep_does(stage: Stage) -> None:
    holder, run = held(stage)
    stage.kept = True
    other = stage.holder()
    stage.beat_for_a_lease()
    end = stage.read().runs[0].lease_end_us
    assert end is not None
    stage.clock.lease = end
    assert other.sweeper.step() == []
    stage.clock.lease = end + 1
    [taken] = other.sweeper.step()
    assert taken.silent
    assert stage.read().runs[0].holder == other.id


def test_a_sweep_loses_to_a_beat_that_came_between_its_reading_and_its_write(stage: Stage) -> None:
    holder, run = held(stage)
    with stage.store.read() as session:
        read = session.runs.by_id(run)
    assert read is not None
    stage.clock.pass_(timedelta(seconds=20))
    holder.heart.step()
    step = lifecycle.take_over(
        read, holder="hld_x", token="t", lease_end_us=1, boot="boot-1", now=stage.clock.now(), why="lease_over"
    )
    with stage.store.write() as session:
        assert session.runs.move([step], naming_lease=True) == set()
    assert stage.read().runs[0].holder == holder.id


def test_a_dead_holders_run_is_taken_over_at_once_and_work_that_died_with_it_is_abandoned(stage: Stage) -> None:
    holder, run = held(stage)
    other = stage.holder()
    holder.die()
    stage.holders.remove(holder)
    settled_by(stage, other, run)
    [now] = stage.read().runs
    assert (now.outcome, now.reason, now.attempt) == ("abandoned", "holder_died", 1)
    assert stage.read().kinds(run) == ["opened", "claimed", "taken_over", "swept", "ended"]
    assert verify(stage.store) == []


def settled_by(stage: Stage, holder: Holder, run: str) -> None:
    """Sweep and turn until the attempt that was held when this began is over."""
    until = monotonic_s() + 20
    [before] = [one for one in stage.read().runs if one.id == run]
    while [(before.state, before.attempt)] == [(one.state, one.attempt) for one in stage.read().runs if one.id == run]:
        assert monotonic_s() < until
        for one in holder.sweeper.step():
            holder.look_at(one)
        holder.step()


def test_on_interrupt_retry_tries_once_more_and_a_second_interruption_ends_it(stage: Stage) -> None:
    first, run = held(stage, on_interrupt="retry")
    second = stage.holder()
    first.die()
    stage.holders.remove(first)
    settled_by(stage, second, run)
    until_idle(second)
    stage.script.wait_for_starts(2)
    [again] = stage.read().runs
    assert (again.state, again.attempt, again.interruptions, again.holder) == ("held", 2, 1, second.id)
    third = stage.holder()
    second.die()
    stage.holders.remove(second)
    settled_by(stage, third, run)
    [now] = stage.read().runs
    assert (now.outcome, now.reason, now.attempt) == ("abandoned", "holder_died", 2)
    assert verify(stage.store) == []


def test_an_interrupted_run_is_judged_by_the_time_it_was_idle_not_by_the_time_it_worked(stage: Stage) -> None:
    holder, run = held(stage, on_interrupt="retry", max_age=timedelta(minutes=5))
    stage.clock.pass_(timedelta(hours=7))
    holder.heart.step()
    other = stage.holder()
    stage.clock.pass_(timedelta(minutes=2))
    holder.die()
    stage.holders.remove(holder)
    settled_by(stage, other, run)
    until_idle(other)
    assert stage.read().runs[0].interruptions == 1


def test_an_interrupted_run_found_too_late_keeps_its_outcome_and_says_stale(stage: Stage) -> None:
    holder, run = held(stage, on_interrupt="retry", max_age=timedelta(minutes=5))
    other = stage.holder()
    holder.die()
    stage.holders.remove(holder)
    stage.clock.pass_(timedelta(minutes=6))
    settled_by(stage, other, run)
    [now] = stage.read().runs
    assert (now.outcome, now.reason) == ("abandoned", "stale")


def test_a_run_of_another_boot_is_over_whatever_its_lease_says(stage: Stage) -> None:
    holder, run = held(stage)
    stage.clock.boot = "boot-2"
    stage.clock.lease = 5
    other = stage.holder()
    holder.die()
    stage.holders.remove(holder)
    settled_by(stage, other, run)
    assert stage.read().runs[0].outcome == "abandoned"


def test_starting_a_process_touches_neither_living_processes_runs_nor_its_own(stage: Stage) -> None:
    holder, run = held(stage)
    before = stage.read().runs
    newcomer = stage.holder()
    until_idle(newcomer)
    assert stage.read().runs == before


def test_a_woken_holders_settle_changes_nothing_and_the_ledger_tells_of_it(stage: Stage) -> None:
    holder, run = held(stage)
    with stage.store.write() as session:
        by_hand(session.line, "UPDATE runs SET holder = 'hld_other', claim_token = 'x', version = version + 1")
    before = stage.read().runs
    stage.script.over.set()
    until = monotonic_s() + 20
    while len(holder.holdings):
        assert monotonic_s() < until
        holder.step()
    assert stage.read().runs == before
    assert stage.read().kinds()[-1] == "fence_lost"


def test_a_cancel_wish_that_moved_the_version_does_not_make_finished_work_lose_its_end(stage: Stage) -> None:
    holder, run = held(stage)
    asks.cancel(stage.store, run, by="test")
    stage.script.over.set()
    settle_all(stage, 1)
    [now] = stage.read().runs
    assert now.outcome in {"succeeded", "cancelled"}
    assert now.cancel_asked_by == "test"
    assert verify(stage.store) == []


def test_a_wish_to_cancel_reaches_the_work_and_says_by_whose_hand(stage: Stage) -> None:
    holder, run = held(stage)
    until_idle(holder)
    asks.cancel(stage.store, run, by="test")
    settled(stage, holder, run)
    [now] = stage.read().runs
    assert (now.outcome, now.reason) == ("cancelled", "cancelled_by_hand")


def test_a_claim_whose_answer_was_lost_is_found_by_the_next_beat_and_given_back(stage: Stage) -> None:
    holder = stage.holder()
    stage.add("a", "once in 1m")
    stage.clock.pass_(MINUTE)
    with stage.store.write() as session:
        by_hand(session.line, "UPDATE tasks SET next_start_us = NULL, next_due_us = NULL")
    asks.run_now(stage.store, "a", by="test")
    with stage.store.write() as session:
        won = holder.dispatcher.step(session, 1).won
    assert len(won) == 1
    beaten = holder.heart.step()
    assert beaten.strays == (won[0].run.id,)
    for taken in holder.sweeper.strays(beaten.strays):
        holder.look_at(taken)
    holder.step()
    until_idle(holder)
    stage.script.wait_for_starts(1)
    [run] = stage.read().runs
    assert (run.state, run.attempt) == ("held", 2)
    assert "returned" in stage.read().kinds(run.id)
    assert verify(stage.store) == []


def test_a_take_over_whose_answer_was_lost_is_found_by_the_next_beat_and_looked_at(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = stage.holder()
    stage.add("a", "manual")
    asks.run_now(stage.store, "a", by="test")
    until_idle(first)
    stage.script.wait_for_starts(1)
    stage.holders.remove(first)
    first.die()
    second = stage.holder()
    real = type(second.store).write

    @contextmanager
    def write(store: Store, **how: Any) -> Iterator[Session]:
        with real(store, **how) as session:
            yield session
        raise StoreAway("the answer to a write was lost, and it may stand")

    with monkeypatch.context() as lost:
        lost.setattr(type(second.store), "write", write)
        with pytest.raises(StoreAway):
            second.sweeper.step()
    [run] = stage.read().runs
    assert (run.state, run.holder) == ("held", second.id), "the write stands"
    beaten = second.heart.step()
    assert beaten.strays == (run.id,)
    for taken in second.sweeper.strays(beaten.strays):
        second.look_at(taken)
    until_idle(second)
    [run] = stage.read().runs
    assert (run.state, run.outcome, run.reason) == ("ended", "abandoned", "holder_died")
    assert verify(stage.store) == []


def test_a_claim_with_too_little_trust_left_to_begin_is_given_back(stage: Stage) -> None:
    holder = stage.holder()
    stage.add("a", "manual")
    asks.run_now(stage.store, "a", by="test")
    with stage.store.write() as session:
        won = holder.dispatcher.step(session, 1).won
    held_ = holder.writer.hold(won[0], sent_us=stage.clock.lease)
    holder.holdings.claimed([held_], [])
    stage.clock.pass_(timedelta(seconds=70))
    holder.carrier.step(held_)
    until_idle(holder)
    stage.script.wait_for_starts(1)
    assert [one.attempt for one in stage.script.starts] == [2]
    assert "returned" in stage.read().kinds(won[0].run.id)


def test_a_sweeper_takes_nothing_whose_owner_beat_after_it_was_looked_at(stage: Stage) -> None:
    holder, run = held(stage)
    stage.kept = True
    other = stage.holder()
    stage.beat_for_a_lease()
    end = stage.read().runs[0].lease_end_us
    assert end is not None
    stage.clock.lease = end + 1
    take = other.sweeper.take

    def beat_first(chosen: Any) -> Any:
        assert len(chosen) == 1
        holder.heart.step()
        return take(chosen)

    other.sweeper.take = beat_first  # type: ignore[method-assign]
    assert other.sweeper.step() == []
    assert stage.read().runs[0].holder == holder.id


def test_what_a_sweep_took_over_is_looked_at_though_the_store_is_away_just_afterwards(stage: Stage) -> None:
    stage.kept = True
    holder, run = held(stage)
    other = stage.holder()
    holder.die()
    stage.holders.remove(holder)

    def away() -> bool:
        raise StoreAway("the store cannot be reached")

    other.sweeper.forget_dead = away  # type: ignore[method-assign]
    other.step()
    until = monotonic_s() + 20
    while "returned" not in stage.read().kinds(run):
        assert monotonic_s() < until
        other.step()


def test_a_holder_without_its_lock_file_is_gone_for_others_only_past_its_lease(stage: Stage) -> None:
    silent, other = stage.holder(), stage.holder()
    stage.beat_for_a_lease()
    (stage.store.run_folder / "holders" / f"{silent.id}.lock").unlink()
    stage.clock.pass_(LEASE)
    other.sweeper.forget_dead()
    assert states(stage)[silent.id] == "alive"
    stage.clock.pass_(TICK)
    other.sweeper.forget_dead()
    assert states(stage)[silent.id] == "gone"


def states(stage: Stage) -> dict[str, str]:
    with stage.store.read() as session:
        return {row.id: row.state for row in session.holders.before("~", 10)}


def test_a_holder_that_others_took_for_over_claims_nothing_more_and_says_so(stage: Stage) -> None:
    holder = stage.holder()
    with stage.store.write() as session:
        session.holders.set_state(holder.id, "gone")
    holder.on_beat(holder.heart.step())
    assert holder.forgotten
    stage.add("a", "every 1m")
    stage.clock.pass_(MINUTE)
    holder.run()
    assert stage.read().runs == []
    stage.holders.remove(holder)


def test_of_two_holdings_of_one_run_only_the_present_claims_changes_it(stage: Stage) -> None:
    holder, run = held(stage)
    [old] = holder.holdings.all()
    with stage.store.write() as session:
        by_hand(session.line, "UPDATE runs SET claim_token = 'taken back', version = version + 2")
    [now] = stage.read().runs
    new = Holding(
        now, assignment=old.assignment, rules=old.rules, runner=old.runner, kept=False, trust_end_us=old.trust_end_us
    )
    outcome = Outcome(word="succeeded")
    with stage.store.write() as session:
        stale = Delivery(holding=old, verdict=Outcome(word="failed", reason="exit_status"))
        settled_ = holder.writer.settler.step(session, [stale, Delivery(holding=new, verdict=outcome)])
    became = {one.delivery.holding: one.run.outcome if one.run else None for one in settled_}
    assert became == {old: None, new: "succeeded"}
    assert sorted(stage.read().kinds(run)[2:]) == ["ended", "fence_lost"]
    with stage.store.read() as session:
        [task] = session.tasks.page()
    assert (task.runs, task.failures_in_a_row) == (1, 0)
    assert verify(stage.store) == []


def test_a_holder_does_not_take_back_what_it_lost_while_its_own_work_on_it_is_not_over(stage: Stage) -> None:
    holder, run = held(stage)
    with stage.store.write() as session:
        by_hand(session.line, "UPDATE runs SET holder = 'hld_dead', handed_to = ?", holder.place)
    assert holder.sweeper.step() == []
    assert stage.read().runs[0].holder == "hld_dead"
