"""What went wrong in other schedulers, B35 to B62: the input of each report, and others of its kind, on holders."""

import os
from datetime import timedelta

import pytest
from holder_scene import START, Stage, until_idle
from test_holder_leases import LEASE, MINUTE, held, settled_by

from by_hand import by_hand
from duly.core.run import Run
from duly.errors import StoreAway, StoreBusy, StoreFull, StoreUnknown
from duly.holder.holder import Holder
from duly.operations.audit import verify
from duly.store import Session

SECOND = timedelta(seconds=1)
TICK = timedelta(microseconds=1)


def gone(stage: Stage, holder: Holder) -> None:
    holder.die()
    stage.holders.remove(holder)


@pytest.mark.parametrize("passes", [2, 3, 7])
@pytest.mark.parametrize("how", ["killed", "rebooted", "never swept while it lived"])
def test_b35_no_orphan_keeps_its_seat_and_what_passes_meanwhile_has_a_row(stage: Stage, passes: int, how: str) -> None:
    first = stage.holder()
    stage.add("one", "every 1m")
    stage.clock.pass_(MINUTE)
    until_idle(first)
    stage.script.wait_for_starts(1)
    other = stage.holder()
    for _ in range(passes):
        stage.clock.pass_(MINUTE)
        first.heart.step()
        until_idle(other)
    skipped = [run.reason for run in stage.read().runs[1:]]
    assert skipped == ["already_running"] * passes, "while the lease is live"
    gone(stage, first)
    if how == "rebooted":
        stage.clock.boot = "boot-2"
        stage.clock.lease = 5
        gone(stage, other)
        other = stage.holder()
    elif how == "never swept while it lived":
        stage.clock.pass_(10 * MINUTE)
        other.heart.step()
    settled_by(stage, other, stage.read().runs[0].id)
    assert stage.read().runs[0].outcome == "abandoned"
    stage.clock.pass_(MINUTE)
    other.heart.step()
    until_idle(other)
    stage.script.wait_for_starts(2)
    assert verify(stage.store) == []


@pytest.mark.parametrize("slots", [2, 4, 8])
def test_b42_one_long_run_keeps_no_other_from_its_time(stage: Stage, slots: int) -> None:
    holder = stage.holder(slots=slots)
    stage.add("long", "once 2026-12-01 08:01")
    for place in range(slots - 1):
        stage.add(f"short-{place}", f"once 2026-12-01 0{8 + (place + 3) // 60}:{(place + 3) % 60:02}")
    stage.clock.pass_(MINUTE)
    until_idle(holder)
    stage.script.wait_for_starts(1)
    for place in range(slots - 1):
        stage.clock.civil = START + (3 + place) * MINUTE
        until_idle(holder)
        stage.script.wait_for_starts(place + 2)
        assert stage.script.starts[-1].task_name == f"short-{place}"
    assert {run.state for run in stage.read().runs} == {"held"}


class Failing:
    """A store of the heart whose writes fail as they are told to."""

    def __init__(self, holder: Holder, error: StoreAway) -> None:
        self._store = holder.heart._store
        self.clock = self._store.clock
        self._error = error

    def write(self, **_given: object) -> Session:
        raise self._error


@pytest.mark.parametrize(
    "error",
    [
        StoreBusy("locked"),
        StoreAway("gone"),
        StoreUnknown("lost", details={"began_s": 0.0}),
        StoreFull("full"),
    ],
    ids=["busy", "away", "unknown", "full"],
)
def test_b45_an_answer_that_did_not_come_is_not_taken_for_a_loss(stage: Stage, error: StoreAway) -> None:
    holder, run = held(stage)
    store = holder.heart._store
    holder.heart._store = Failing(holder, error)  # type: ignore[assignment]
    for _ in range(3):
        stage.clock.pass_(20 * SECOND)
        with pytest.raises(type(error)):
            holder.heart.step()
    assert stage.script.runners[0].stops == [], "three beats in a row without an answer, and the work goes on"
    holder.heart._store = store
    assert holder.heart.step().lost == ()
    stage.script.over.set()
    settled_by(stage, holder, run)
    assert stage.read().runs[0].outcome == "succeeded"


@pytest.mark.parametrize("lost", ["to another holder", "to nobody it knows", "to its own successor of the same host"])
def test_b46_who_lost_its_lease_acts_no_more_whatever_its_name(stage: Stage, lost: str) -> None:
    holder, run = held(stage)
    other = stage.holder()
    holders = {"to another holder": other.id, "to nobody it knows": "hld_nobody"}
    taken = holders.get(lost, f"{holder.id}x")
    with stage.store.write() as session:
        by_hand(session.line, "UPDATE runs SET holder = ?, claim_token = 'other', fence = fence + 1", taken)
    before = stage.read().runs
    beaten = holder.heart.step()
    assert [one.run.id for one in beaten.lost] == [run]
    assert stage.read().runs == before, "a beat extends by holder and fence, and never by a name"
    stage.script.over.set()
    until_idle(holder)
    assert [one.holder for one in stage.read().runs] == [taken]


@pytest.mark.parametrize("slept", [3 * LEASE, timedelta(hours=9), timedelta(days=3)])
@pytest.mark.parametrize("row", ["gone", "deleted"])
def test_b50_who_wakes_up_forgotten_claims_nothing_and_says_so(stage: Stage, slept: timedelta, row: str) -> None:
    holder = stage.holder()
    stage.add("one", "every 1m")
    stage.clock.pass_(slept)
    with stage.store.write() as session:
        if row == "gone":
            session.holders.set_state(holder.id, "gone")
        else:
            by_hand(session.line, "DELETE FROM holders WHERE id = ?", holder.id)
    holder.on_beat(holder.heart.step())
    assert holder.forgotten
    assert any(event == "forgotten" for event, _ in stage.told)
    successor = stage.holder()
    until_idle(successor)
    [caught] = stage.read().runs
    assert caught.due_at == START + slept
    assert verify(stage.store) == []


@pytest.mark.parametrize("row", ["deleted", "of the same host and pid", "still alive by its row"])
@pytest.mark.parametrize("sweepers", [1, 2])
def test_b51_an_orphan_is_found_by_its_run_whatever_became_of_the_row_of_its_holder(
    stage: Stage, row: str, sweepers: int
) -> None:
    holder, run = held(stage)
    gone(stage, holder)
    with stage.store.write() as session:
        if row == "deleted":
            by_hand(session.line, "DELETE FROM holders WHERE id = ?", holder.id)
        elif row == "of the same host and pid":
            by_hand(session.line, "UPDATE holders SET pid = ?", os.getpid())
    others = [stage.holder() for _ in range(sweepers)]
    found: list[str] = []
    for one in others:
        for taken in one.sweeper.step():
            found.append(taken.holding.run.id)
            one.look_at(taken)
            one.sweeper.step()
        until_idle(one)
    assert found == [run], "by one of them"
    settled(stage, others)
    assert stage.read().runs[0].outcome == "abandoned"


def settled(stage: Stage, holders: list[Holder]) -> None:
    for _ in range(200):
        if stage.read().runs[0].state == "ended":
            return
        for holder in holders:
            holder.step()
    raise AssertionError("it was never settled")


@pytest.mark.parametrize("pid", [1, os.getpid(), os.getppid()], ids=["of init", "of this one", "of its parent"])
def test_b62_a_number_of_another_program_proves_nothing(stage: Stage, pid: int) -> None:
    holder, run = held(stage)
    gone(stage, holder)
    with stage.store.write() as session:
        by_hand(session.line, "UPDATE holders SET pid = ?, ticks = 1 WHERE id = ?", pid, holder.id)
    other = stage.holder()
    settled_by(stage, other, run)
    [now] = stage.read().runs
    assert ended(now) == ("abandoned", "holder_died")
    os.kill(pid, 0)  # it lives, and nobody has signalled it


def ended(run: Run) -> tuple[str | None, str | None]:
    return run.outcome, run.reason
