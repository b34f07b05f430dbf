"""Stores that one world after another is given are as new ones, whatever the world before left in them."""

from pathlib import Path

import pytest

from duly.clock import Clock
from duly.errors import StoreAway
from duly.store import Store
from duly.testing.shelves import file_shelf
from duly.testing.storm import play


@pytest.mark.parametrize(("seed", "places"), [(5, 1), (7, 2)])
def test_a_history_in_a_store_that_others_have_had_is_the_history_in_one_of_its_own(seed: int, places: int) -> None:
    alone = play(seed, places=places)
    with file_shelf() as shelf:
        play(seed + 1, opening=shelf)
        assert play(seed, places=places, opening=shelf) == alone


def test_what_a_world_left_is_gone_in_the_next_committed_or_not(tmp_path: Path) -> None:
    with file_shelf() as shelf:
        store = shelf(tmp_path)(Clock())
        other = store.another()
        with store.write() as session:
            session.meta.say("left", "behind")
        with pytest.raises(StoreAway, match="ended a transaction"):
            _write_half(other)
        store.close()
        store = shelf(tmp_path)(Clock())
        with store.read() as session:
            assert (session.meta.said("left"), session.meta.said("half")) == (None, None)
            assert session.meta.said("lowest_version")
        store.close()


def test_a_world_that_is_not_over_keeps_the_next_from_its_store(tmp_path: Path) -> None:
    with file_shelf() as shelf:
        store = shelf(tmp_path)(Clock())
        with pytest.raises(AssertionError, match="not over"):
            shelf(tmp_path)
        store.close()


def _write_half(store: Store) -> None:
    with store.write() as session:
        session.meta.say("half", "written")
        store.close()
