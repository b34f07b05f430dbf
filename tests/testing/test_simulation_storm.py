"""The storm, seed by seed: whatever goes wrong between any two calls of the store, every promise is kept."""

import os
import subprocess
import sys

import pytest

from duly.testing.many import places_of
from duly.testing.shelves import file_shelf
from duly.testing.storm import play

SEEDS = 300
GROUPS = 12


@pytest.mark.parametrize("group", range(GROUPS))
def test_whatever_goes_wrong_between_two_calls_of_the_store_every_promise_is_kept(group: int) -> None:
    with file_shelf() as shelf:
        for seed in range(group, SEEDS, GROUPS):
            history = play(seed, places=places_of(seed), opening=shelf)
            assert history.steps > 0


def test_one_seed_is_one_history_in_whichever_process_it_is_played() -> None:
    told = []
    for hashing in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", "from duly.testing.storm import play; print(play(5), play(7, places=2))"],
            env={**os.environ, "PYTHONHASHSEED": hashing},
            capture_output=True,
            text=True,
            check=True,
        )
        told.append(done.stdout)
    assert told[0] == told[1]
    assert "seed=5" in told[0]
