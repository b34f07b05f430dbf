"""The simulation proves itself: each guard of the protocol, taken away, is found by histories drawn from seeds."""

import pytest
from planted_bugs import BUGS, Bug, controlled, planted

from duly.testing import BrokenPromise
from duly.testing.shelves import Shelf, file_shelf
from duly.testing.storm import play

WITHIN = 200
CONTROLLED = 3


@pytest.mark.parametrize("name", list(BUGS))
def test_a_guard_that_is_taken_away_is_found_within_two_hundred_seeds(name: str) -> None:
    bug = BUGS[name]
    with planted(bug), file_shelf() as shelf:
        assert any(is_found(bug, seed, shelf) for seed in range(bug.first, bug.first + WITHIN))


def is_found(bug: Bug, seed: int, shelf: Shelf) -> bool:
    try:
        play(seed, places=bug.places, opening=bug.opening or shelf, troubles=bug.troubles)
    except BrokenPromise as broken:
        return bool(broken.faults)
    return False


@pytest.mark.parametrize("name", [name for name, bug in BUGS.items() if bug.control is not None])
def test_what_would_hide_a_guard_may_be_gone_as_long_as_the_guard_is_there(name: str) -> None:
    bug = BUGS[name]
    with controlled(bug):
        for seed in range(bug.first, bug.first + CONTROLLED):
            assert play(seed, places=bug.places, troubles=bug.troubles).steps > 0
