"""Doubt of a store's clock: who has just begun, or saw it part from the machine's, judges no other host by it."""

import pytest

from duly.holder.heart import Distrust

SECOND_US = 1_000_000
LEASE_US = 100 * SECOND_US
BEAT_US = 20 * SECOND_US


def steady(distrust: Distrust, beats: int, *, first_us: int = 0, ahead_us: int = 7) -> int:
    """Beat so often with both clocks in step; gives the moment of the last beat."""
    for number in range(beats):
        distrust.note(ahead_us, now_us=first_us + number * BEAT_US, round_trip_us=1000)
    return first_us + (beats - 1) * BEAT_US


def test_a_clock_is_believed_only_after_it_kept_step_for_longer_than_one_lease() -> None:
    distrust = Distrust(LEASE_US)
    assert not distrust.believes(10**15, 7), "who never beat knows nothing"
    last_us = steady(distrust, 6)
    assert last_us == LEASE_US
    assert not distrust.believes(LEASE_US, 7)
    assert distrust.believes(LEASE_US + 1, 7)


@pytest.mark.parametrize("jump_us", [SECOND_US + 1001, -SECOND_US - 1001, 3600 * SECOND_US, -(10**15)])
def test_a_clock_that_parted_from_ours_is_doubted_for_another_lease(jump_us: int) -> None:
    distrust = Distrust(LEASE_US)
    last_us = steady(distrust, 8) + BEAT_US
    assert distrust.believes(last_us, 7)
    distrust.note(7 + jump_us, now_us=last_us, round_trip_us=1000)
    assert not distrust.believes(last_us + LEASE_US, 7 + jump_us)
    steady(distrust, 7, first_us=last_us + BEAT_US, ahead_us=7 + jump_us)
    assert distrust.believes(last_us + LEASE_US + 1, 7 + jump_us), "it has kept step since"


@pytest.mark.parametrize(("jump_us", "round_trip_us"), [(SECOND_US, 0), (SECOND_US + 1000, 1000), (-SECOND_US, 0)])
def test_a_second_and_the_time_of_an_answer_are_no_parting(jump_us: int, round_trip_us: int) -> None:
    distrust = Distrust(LEASE_US)
    last_us = steady(distrust, 8) + BEAT_US
    distrust.note(7 + jump_us, now_us=last_us, round_trip_us=round_trip_us)
    assert distrust.believes(last_us, 7 + jump_us)


@pytest.mark.parametrize("jump_us", [SECOND_US + 1001, -SECOND_US - 1001, 3600 * SECOND_US])
def test_a_server_that_took_over_since_the_last_beat_is_not_believed_before_the_next(jump_us: int) -> None:
    distrust = Distrust(LEASE_US)
    last_us = steady(distrust, 8)
    assert distrust.believes(last_us + 1, 7)
    assert not distrust.believes(last_us + 1, 7 + jump_us), "no beat has compared it yet"
    distrust.note(7 + jump_us, now_us=last_us + BEAT_US, round_trip_us=1000)
    assert not distrust.believes(last_us + BEAT_US + LEASE_US, 7 + jump_us)
