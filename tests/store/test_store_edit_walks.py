"""A thousand random interleavings of edit, pause, remove and run, with the steps of holders between them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from store_edit_walk import EditWalk, faults_of_definitions, faults_of_eras
from store_scene import Scene, scene

from duly.clock import to_us
from duly.errors import DulyError
from duly.store import changing
from duly.store.versions import Versions

INTERLEAVINGS = 1_000
BATCHES = 40
STEPS = 16


@contextmanager
def walked(folder: Path, seed: int, steps: int = STEPS) -> Iterator[tuple[Scene, EditWalk]]:
    place = folder / str(seed)
    place.mkdir()
    with scene(place) as s:
        walk = EditWalk(s, seed)
        walk.begin()
        walk.take(steps)
        yield s, walk


def faults(s: Scene, walk: EditWalk) -> list[object]:
    return [*s.faults(), *faults_of_definitions(walk), *faults_of_eras(walk)]


@pytest.mark.parametrize("batch", range(BATCHES))
def test_whatever_edits_come_between_pauses_removals_and_runs_every_promise_is_kept(tmp_path: Path, batch: int) -> None:
    each = INTERLEAVINGS // BATCHES
    edited = 0
    for seed in range(batch * each, (batch + 1) * each):
        with walked(tmp_path, seed) as (s, walk):
            assert faults(s, walk) == [], (seed, walk.steps)
            edited += walk.done
    assert edited > each, "people edited what could be edited"


def weaken(guard: str, patched: pytest.MonkeyPatch) -> None:
    """Take one guard of edits away."""
    match guard:
        case "plan up to now first":
            patched.setattr(changing, "_up_to_now", lambda _session, task, _pauses, *, rest: task)
        case "tell of what a task that was off did not owe":
            patched.setattr(changing, "switch_on", lambda _session, task, **_told: task)
        case "owe nothing before the new era":
            patched.setattr(changing, "max", lambda cursor, _now: cursor, raising=False)
        case "end the runs of the old schedule":
            patched.setattr(changing, "_end_old_runs", lambda *_given, **_told: 0)
        case "keep the era through other edits":
            patched.setattr(changing, "_era_of", lambda session, _task: to_us(session.now))
        case "write the version beside the definition":
            patched.setattr(Versions, "insert", lambda *_given, **_told: None)
        case "know each schedule that is another":
            patched.setattr(changing, "NEW_ERA", frozenset[str]())
        case _:
            raise AssertionError(guard)


GUARDS = (
    "plan up to now first",
    "tell of what a task that was off did not owe",
    "owe nothing before the new era",
    "end the runs of the old schedule",
    "keep the era through other edits",
    "write the version beside the definition",
    "know each schedule that is another",
)


@pytest.mark.parametrize("guard", GUARDS)
def test_the_same_walks_find_each_guard_of_edits_that_is_taken_away(
    tmp_path: Path, guard: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in range(200):
        with monkeypatch.context() as patched:
            weaken(guard, patched)
            try:
                with walked(tmp_path, seed, 40) as (s, walk):
                    if faults(s, walk):
                        return
            except (DulyError, AssertionError):
                return
    raise AssertionError(f"no walk noticed that this was missing: {guard}")
