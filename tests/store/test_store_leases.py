"""Beats and sweeps: who holds, each condition shown to be what holds."""

from dataclasses import replace
from pathlib import Path

import pytest
from store_claims import A, B, move
from store_scene import (
    LEASE_US,
    NINE,
    Scene,
    scene,
    without,
)

from duly.core import interrupting, lifecycle
from duly.store import Store, runs, steps


def beat(s: Scene, store: Store, pairs: list[tuple[str, int]], *, holder: str, end_us: int) -> set[tuple[str, int]]:
    with store.write() as session:
        return session.runs.beat(pairs, holder=holder, boot="boot-one", end_us=end_us)


def test_a_beat_extends_only_what_is_held_by_this_holder_with_this_fence(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        won = s.held()
        run = won.run
        assert run.lease_end_us is not None
        later = run.lease_end_us + 50
        assert beat(s, s.store, [(run.id, run.fence)], holder=B, end_us=later) == set()
        assert beat(s, s.store, [(run.id, run.fence + 1)], holder=A, end_us=later) == set()
        assert s.run(run.id) == run
        assert beat(s, s.store, [(run.id, run.fence)], holder=A, end_us=later) == {(run.id, run.fence)}
        assert s.run(run.id) == replace(run, lease_end_us=later), "the version stays"


@pytest.mark.parametrize(
    ("guard", "holder", "fence"),
    [("runs.holder = v.holder", B, 1), ("runs.fence = v.fence", A, 2)],
)
def test_holder_and_fence_are_what_keeps_a_beat_from_anothers_lease(
    tmp_path: Path, guard: str, holder: str, fence: int
) -> None:
    with scene(tmp_path) as s:
        run = s.held().run
        assert run.fence == 1
        assert beat(s, s.store, [(run.id, fence)], holder=holder, end_us=9 * LEASE_US) == set()
        with without(runs.BEAT, guard):
            beat(s, s.store, [(run.id, fence)], holder=holder, end_us=10**12)
        assert s.run(run.id).lease_end_us == 10**12


def test_a_late_beat_never_lowers_a_lease(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        run = s.held().run
        assert run.lease_end_us is not None
        pair = [(run.id, run.fence)]
        assert beat(s, s.store, pair, holder=A, end_us=run.lease_end_us - 10) == set(pair)
        assert s.run(run.id).lease_end_us == run.lease_end_us
        greatest = "CASE WHEN (runs.lease_end_us > v.end_us) THEN runs.lease_end_us ELSE v.end_us END"
        with without(runs.BEAT, greatest, "v.end_us"):
            beat(s, s.store, pair, holder=A, end_us=run.lease_end_us - 10)
        assert s.run(run.id).lease_end_us == run.lease_end_us - 10, "taking the greater is what keeps it"


def test_a_beat_never_brings_back_what_was_swept(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        run = s.held(on_interrupt="retry").run
        swept = interrupting.interrupted(
            run, s.task(run.task).definition.rules, why="lease_lost", now=s.clock.now(), ended_at=NINE,
            following=None, by=B,
        )  # fmt: skip
        assert move(s.connect(), swept, naming_lease=True)
        before = s.run(run.id)
        assert beat(s, s.store, [(run.id, run.fence)], holder=A, end_us=10**12) == set()
        assert s.run(run.id) == before
        with (
            without(runs.BEAT, "runs.state = 'held'"),
            without(runs.BEAT, "runs.holder = v.holder"),
            without(runs.BEAT, "runs.lease_boot = v.boot"),
        ):
            assert beat(s, s.store, [(run.id, run.fence)], holder=A, end_us=10**12)
        assert s.run(run.id).lease_end_us == 10**12, "state and holder are what keeps it"


def test_a_beat_of_another_boot_extends_nothing(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        run = s.held().run
        with s.store.write() as session:
            assert session.runs.beat([(run.id, run.fence)], holder=A, boot="boot-two", end_us=10**12) == set()


def test_a_sweep_loses_to_a_beat_that_came_between(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        run = s.held().run
        assert run.lease_end_us is not None
        other = s.connect()
        with other.read() as session:
            (read,) = session.runs.held_by_others(B, 10)
        beat(s, s.store, [(run.id, run.fence)], holder=A, end_us=run.lease_end_us + 1)
        over = lifecycle.take_over(read, holder=B, token="t", lease_end_us=9, boot="b", now=NINE, why="lease_over")
        assert move(other, over, naming_lease=True) == set()
        assert s.run(run.id).holder == A
        with without(steps.STEP_NAMING_LEASE, "runs.lease_end_us IS v.was_lease_end_us"):
            assert move(other, over, naming_lease=True), "naming the end that was read is what lets the beat win"
        assert s.run(run.id).holder == B


def test_of_two_sweeps_one_takes_the_run(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        run = s.held().run
        one, two = s.connect(), s.connect()
        took = [
            move(store, lifecycle.take_over(
                run, holder=holder, token=holder, lease_end_us=9, boot="b", now=NINE, why="holder_died"
            ), naming_lease=True)
            for store, holder in ((one, "hld_b"), (two, "hld_c"))
        ]  # fmt: skip
        assert took == [{run.id}, set()]
        assert s.run(run.id).holder == "hld_b"
        assert s.run(run.id).fence == run.fence
