"""Spread: the share of an occurrence is drawn from the task and the instant, and from nothing else."""

import subprocess
import sys
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from core_values import DAY, HOUR, MINUTE, NINE, SECOND, TICK, every, task_of
from hypothesis import given
from hypothesis import strategies as st

from duly.core.planning import plan
from duly.core.spreading import share_of, start_of
from duly.core.triggers import Once

UTC_ZONE = ZoneInfo("UTC")
SHARE_MS = 2_421_291
"""3,600,000 times the first 64 bits of BLAKE2b of `tsk_one at:2026-03-02T09:00:00Z`, over 2**64."""
spans = st.integers(0, 10 * 365 * 86_400).map(lambda n: timedelta(seconds=n))
ids = st.text(min_size=1, max_size=30)
instants = st.datetimes(datetime(1990, 1, 1), datetime(2100, 1, 1)).map(lambda at: at.replace(tzinfo=NINE.tzinfo))  # noqa: DTZ001


@given(task=ids, due=instants, spread=spans, distance=st.none() | spans)
def test_a_share_is_less_than_the_spread_and_less_than_the_distance_to_the_next(
    task: str, due: datetime, spread: timedelta, distance: timedelta | None
) -> None:
    following = None if distance is None else due + distance + TICK
    share = share_of(task, due, spread=spread, following=following)
    assert timedelta(0) <= share
    assert share < spread or spread == share == timedelta(0)
    assert following is None or due + share < following
    assert share == share_of(task, due, spread=spread, following=following)


def test_a_share_is_known_forever() -> None:
    """Written out: another share for the same task and instant would start it twice as far apart after an upgrade."""
    assert share_of("tsk_one", NINE, spread=HOUR, following=None) == timedelta(milliseconds=SHARE_MS)


def test_a_share_is_the_same_in_a_process_with_another_hash_seed() -> None:
    text = (
        "from datetime import UTC, datetime, timedelta\n"
        "from duly.core.spreading import share_of\n"
        "print(share_of('tsk_one', datetime(2026, 3, 2, 9, tzinfo=UTC), spread=timedelta(hours=1), following=None))"
    )
    seen = {
        subprocess.run(
            [sys.executable, "-c", text], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2", "random")
    }
    assert seen == {f"{timedelta(milliseconds=SHARE_MS)}\n"}


def test_the_shares_of_many_tasks_fill_the_span_evenly() -> None:
    shares = [share_of(f"tsk_{n}", NINE, spread=HOUR, following=None) for n in range(6000)]
    by_ten_minutes = [sum(n * 10 * MINUTE <= share < (n + 1) * 10 * MINUTE for share in shares) for n in range(6)]
    assert sum(by_ten_minutes) == 6000
    assert all(850 < count < 1150 for count in by_ten_minutes), by_ten_minutes


@pytest.mark.parametrize("spread", [SECOND, MINUTE, HOUR, 30 * DAY])
def test_starts_keep_the_order_of_their_due_instants(spread: timedelta) -> None:
    definition = task_of(every(MINUTE), spread=spread).definition
    starts = [start_of("tsk_one", definition, UTC_ZONE, NINE + n * MINUTE) for n in range(200)]
    assert starts == sorted(starts)
    assert len(set(starts)) == 200


def test_without_a_next_occurrence_the_spread_is_whole() -> None:
    shares = set()
    for number in range(400):
        definition = task_of(Once(at=NINE), spread=DAY).definition
        shares.add(start_of(f"tsk_{number}", definition, UTC_ZONE, NINE) - NINE)
    assert max(shares) > 23 * HOUR


def test_lateness_counts_from_the_share_on() -> None:
    task = task_of(Once(at=NINE + HOUR), spread=HOUR, on_missed="skip")
    start = start_of(task.id, task.definition, UTC_ZONE, NINE + HOUR)
    assert start > NINE + HOUR + 2 * MINUTE, "else this test says nothing"
    punctual = plan(task, UTC_ZONE, start + MINUTE)
    assert [(one.start_at, one.late_by) for one in punctual.openings] == [(start, MINUTE)]
    assert plan(task, UTC_ZONE, start + MINUTE + TICK).openings == ()
    early = plan(task, UTC_ZONE, NINE + HOUR)
    assert [one.late_by for one in early.openings] == [timedelta(0)]
