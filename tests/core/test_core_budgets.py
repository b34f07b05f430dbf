"""Budgets: the day or month an instant lies in, and whether one more attempt fits."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duly.core.amounts import Allowance, Amounts, Per, figure, read_usd
from duly.core.budgets import Budget, Standing, is_used_up, key_of_budget, lacking, period, told

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
DAY = timedelta(days=1)
NOTHING = Amounts()


def standing(spent: Amounts = NOTHING, reserved: Amounts = NOTHING, **bounds: int) -> Standing:
    budget = Budget(scope="store", allowed=Allowance(per="day", **bounds), zone="UTC")
    return Standing(budget=budget, since=NOON - DAY, until=NOON + DAY, spent=spent, reserved=reserved)


@pytest.mark.parametrize(
    ("per", "zone", "at", "since", "until"),
    [
        ("day", "UTC", "2026-11-30T12:00Z", "2026-11-30T00:00Z", "2026-12-01T00:00Z"),
        ("day", "UTC", "2026-11-30T00:00Z", "2026-11-30T00:00Z", "2026-12-01T00:00Z"),
        ("day", "Europe/Berlin", "2026-11-30T23:30Z", "2026-11-30T23:00Z", "2026-12-01T23:00Z"),
        ("month", "Europe/Berlin", "2026-11-30T22:59Z", "2026-10-31T23:00Z", "2026-11-30T23:00Z"),
        ("month", "Europe/Berlin", "2026-11-30T23:00Z", "2026-11-30T23:00Z", "2026-12-31T23:00Z"),
        ("month", "Europe/Berlin", "2026-10-25T12:00Z", "2026-09-30T22:00Z", "2026-10-31T23:00Z"),
        # A day of 23 hours, and one of 25.
        ("day", "Europe/Berlin", "2026-03-29T12:00Z", "2026-03-28T23:00Z", "2026-03-29T22:00Z"),
        ("day", "Europe/Berlin", "2026-10-25T12:00Z", "2026-10-24T22:00Z", "2026-10-25T23:00Z"),
        # Midnight is left out in Cairo's spring: the day begins after the gap.
        ("day", "Africa/Cairo", "2026-04-24T12:00Z", "2026-04-23T22:00Z", "2026-04-24T21:00Z"),
        # In Havana's autumn midnight comes twice: the day begins at its first pass.
        ("day", "America/Havana", "2026-11-01T05:30Z", "2026-11-01T04:00Z", "2026-11-02T05:00Z"),
        # Samoa left out the whole 30 December 2011.
        ("day", "Pacific/Apia", "2011-12-30T09:59Z", "2011-12-29T10:00Z", "2011-12-30T10:00Z"),
        ("day", "Pacific/Apia", "2011-12-30T10:00Z", "2011-12-30T10:00Z", "2011-12-31T10:00Z"),
    ],
)
def test_a_day_or_month_is_one_of_the_budgets_own_wall(per: Per, zone: str, at: str, since: str, until: str) -> None:
    found = period(datetime.fromisoformat(at), per, ZoneInfo(zone))
    assert found == (datetime.fromisoformat(since), datetime.fromisoformat(until))


@given(
    at=st.datetimes(min_value=datetime(1990, 1, 1), max_value=datetime(2036, 1, 1)),  # noqa: DTZ001 - made aware below
    zone=st.sampled_from(["UTC", "Europe/Berlin", "America/Havana", "Africa/Cairo", "Asia/Beirut", "America/Asuncion"]),
    per=st.sampled_from(["day", "month"]),
)
def test_every_instant_lies_in_one_period_and_the_next_begins_where_it_ends(at: datetime, zone: str, per: Per) -> None:
    now, place = at.replace(tzinfo=UTC), ZoneInfo(zone)
    since, until = period(now, per, place)
    assert since <= now < until
    assert period(since, per, place) == period(until - timedelta(seconds=1), per, place) == (since, until)
    assert period(until, per, place)[0] == until
    assert period(since - timedelta(seconds=1), per, place)[1] == since
    first = until.astimezone(place).date()
    assert isinstance(first, date)
    assert per == "day" or first.day == 1


def test_a_run_fits_as_long_as_what_is_spent_and_set_aside_leaves_room_for_it() -> None:
    one = Amounts(runs=1)
    assert lacking([standing(Amounts(runs=8), Amounts(runs=1), runs=10)], one, spends=False) is None
    found = lacking([standing(Amounts(runs=8), Amounts(runs=2), runs=10)], one, spends=False)
    assert found is not None
    assert (found.kind, found.wanted) == ("runs", 1)
    assert lacking([standing(runs=0)], one, spends=False) is not None
    assert lacking([standing(Amounts(runs=10), runs=10)], Amounts(runs=0), spends=True) is None, "it counts already"
    assert lacking([], one, spends=True) is None
    assert lacking([standing()], one, spends=True) is None


@pytest.mark.parametrize("kind", ["tokens", "usd_micro"])
def test_what_an_attempt_is_estimated_at_must_fit_and_without_an_estimate_something_must_be_left(kind: str) -> None:
    def of(spent: int, reserved: int, wanted: int, *, spends: bool = True) -> bool:
        stands = standing(Amounts(**{kind: spent}), Amounts(**{kind: reserved}), **{kind: 100})
        return lacking([stands], Amounts(**{"runs": 1, kind: wanted}), spends=spends) is None

    assert of(50, 30, 20)
    assert not of(50, 30, 21)
    assert of(50, 49, 0), "something is left"
    assert not of(50, 50, 0)
    assert not of(150, 0, 0), "what was told late has been charged"
    assert of(150, 0, 0, spends=False), "a command costs none of it"


def test_of_several_budgets_the_first_without_room_is_told() -> None:
    narrow, wide = standing(Amounts(runs=1), runs=1), standing(Amounts(runs=5), runs=5)
    for standings, expected in (([standing(runs=9), narrow, wide], narrow), ([wide, narrow], wide)):
        found = lacking(standings, Amounts(runs=1), spends=False)
        assert found is not None
        assert found.standing is expected


def test_a_budget_is_used_up_when_no_run_at_all_fits() -> None:
    assert is_used_up(standing(Amounts(runs=3), runs=3))
    assert not is_used_up(standing(Amounts(runs=2), runs=3))
    assert not is_used_up(standing(Amounts(tokens=9, usd_micro=9), tokens=9, usd_micro=9)), "commands may run on"


@pytest.mark.parametrize(
    ("text", "micro"),
    [
        ("2.50", 2_500_000),
        ("$3", 3_000_000),
        (" 0.000001 ", 1),
        ("0", 0),
        ("1e3", 1_000_000_000),
        ("0.0000001", None),
        ("-1", None),
        ("nan", None),
        ("inf", None),
        ("two", None),
        ("", None),
        ("1000000001", None),
    ],
)
def test_money_is_read_exactly_or_not_at_all(text: str, micro: int | None) -> None:
    assert read_usd(text) == micro


def test_a_budgets_figures_are_told_of_what_it_bounds_alone() -> None:
    one = standing(Amounts(runs=2, tokens=5), Amounts(runs=1), runs=10, usd_micro=2_500_000)
    assert told(one) == {
        "per": "day",
        "runs": {"spent": 2, "reserved": 1, "limit": 10},
        "usd_micro": {"spent": 0, "reserved": 0, "limit": 2_500_000},
    }
    assert [figure("usd_micro", 2_500_000), figure("usd_micro", None), figure("runs", 7)] == [2.5, None, 7]
    assert key_of_budget(one.budget) == "store"
    assert key_of_budget(Budget(scope="project", target="x", allowed=Allowance(per="day"), zone="UTC")) == "project:x"
