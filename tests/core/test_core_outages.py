"""Outages told from clocks: what is a sleep, a step, a standstill, and what is ordinary."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duly.core.outages import LEAST, LastSeen, Outage, Reading, before_start, between, entry, is_same

NOW = datetime(2026, 12, 1, 8, 0, tzinfo=UTC)
MINUTE, SECOND = timedelta(minutes=1), timedelta(seconds=1)
LEASE = timedelta(seconds=100)
US = timedelta(microseconds=1)
BEFORE = Reading(civil=NOW, awake_us=5_000_000, slept_us=70)


def later(*, awake: timedelta, slept: timedelta = timedelta(0), stepped: timedelta = timedelta(0)) -> Reading:
    """The clocks after so much time awake and asleep, and a step of the civil clock."""
    return Reading(
        civil=NOW + awake + slept + stepped,
        awake_us=BEFORE.awake_us + awake // US,
        slept_us=BEFORE.slept_us + slept // US,
    )


def found(now: Reading) -> list[tuple[str, datetime, datetime]]:
    return [(one.cause, one.since, one.until) for one in between(BEFORE, now, frozen_after=LEASE)]


def test_time_that_goes_on_as_it_does_is_no_outage() -> None:
    assert found(later(awake=2 * SECOND)) == []
    assert found(later(awake=LEASE - US)) == []


@pytest.mark.parametrize("sign", [1, -1])
def test_exactly_a_second_is_told_and_a_moment_less_is_not(sign: int) -> None:
    assert [one[0] for one in found(later(awake=SECOND, slept=LEAST))] == ["suspend"]
    assert found(later(awake=SECOND, slept=LEAST - US)) == []
    assert [one[0] for one in found(later(awake=SECOND, stepped=sign * LEAST))] == ["clock_step"]
    assert found(later(awake=SECOND, stepped=sign * (LEAST - US))) == []
    last = LastSeen(holder="hld_1", boot="one", seen_at=NOW - LEAST, left=True)
    assert before_start(last, boot="one", now=NOW) is not None


def test_what_the_machine_slept_is_a_suspend_with_its_bounds_however_the_wait_around_it_lay() -> None:
    hours = timedelta(hours=8)
    assert found(later(awake=SECOND, slept=hours)) == [("suspend", NOW + SECOND, NOW + SECOND + hours)]


def test_a_clock_set_ahead_or_back_is_a_step_between_both_readings_and_says_which_way() -> None:
    hour = timedelta(hours=1)
    assert found(later(awake=SECOND, stepped=hour)) == [("clock_step", NOW + SECOND, NOW + SECOND + hour)]
    assert found(later(awake=SECOND, stepped=-hour)) == [("clock_step", NOW + SECOND - hour, NOW + SECOND)]
    (ahead,) = between(BEFORE, later(awake=SECOND, stepped=hour), frozen_after=LEASE)
    (back,) = between(BEFORE, later(awake=SECOND, stepped=-hour), frozen_after=LEASE)
    assert (ahead.details["way"], ahead.details["step_s"]) == ("ahead", 3600.0)
    assert (back.details["way"], back.details["step_s"]) == ("back", -3600.0)


def test_a_process_that_looked_not_once_within_its_lease_stood_still() -> None:
    assert found(later(awake=LEASE)) == [("frozen", NOW, NOW + LEASE)]


@given(
    awake=st.timedeltas(timedelta(0), timedelta(days=3)),
    slept=st.timedeltas(timedelta(0), timedelta(days=3)),
    stepped=st.timedeltas(timedelta(days=-3), timedelta(days=3)),
)
def test_whatever_the_clocks_did_each_cause_is_told_once_with_its_own_length(
    awake: timedelta, slept: timedelta, stepped: timedelta
) -> None:
    lengths = {cause: until - since for cause, since, until in found(later(awake=awake, slept=slept, stepped=stepped))}
    wanted = {"frozen": awake} if awake >= LEASE else {}
    wanted |= {"suspend": slept} if slept >= LEAST else {}
    wanted |= {"clock_step": abs(stepped)} if abs(stepped) >= LEAST else {}
    assert lengths == wanted


@pytest.mark.parametrize(
    ("boot", "left", "cause"),
    [("one", True, "stopped"), ("one", False, "died"), ("two", True, "boot"), ("two", False, "boot")],
)
def test_before_a_start_nobody_served_since_the_last_was_seen(boot: str, left: bool, cause: str) -> None:
    last = LastSeen(holder="hld_1", boot=boot, seen_at=NOW - MINUTE, left=left)
    outage = before_start(last, boot="one", now=NOW)
    assert outage is not None
    assert (outage.cause, outage.since, outage.until) == (cause, NOW - MINUTE, NOW)


def test_a_first_start_and_a_quick_restart_tell_of_nothing() -> None:
    assert before_start(None, boot="one", now=NOW) is None
    quick = LastSeen(holder="hld_1", boot="one", seen_at=NOW - LEAST + US, left=True)
    assert before_start(quick, boot="one", now=NOW) is None
    assert (
        before_start(LastSeen(holder="hld_1", boot="one", seen_at=NOW + MINUTE, left=True), boot="one", now=NOW) is None
    )


def test_what_two_processes_of_one_machine_noticed_is_one_outage_and_another_ones_is_not() -> None:
    outage = Outage(cause="suspend", since=NOW - 30 * MINUTE, until=NOW)
    told = entry(outage, now=NOW, holder="hld_1", host="edith", others=1)
    other = Outage(cause="suspend", since=NOW - 30 * MINUTE + SECOND, until=NOW + SECOND)
    assert is_same(told, other, "edith")
    assert not is_same(told, other, "frank")
    assert not is_same(told, Outage(cause="clock_step", since=other.since, until=other.until), "edith")
    assert not is_same(told, Outage(cause="suspend", since=NOW + MINUTE, until=NOW + 31 * MINUTE), "edith")
    assert not is_same(told, Outage(cause="suspend", since=NOW - SECOND, until=NOW + SECOND), "edith")
