"""Limits and ranks as pure decisions."""

from datetime import UTC, datetime, timedelta

import pytest
from core_values import MINUTE, NINE, SECOND, every, task_of, waiting
from hypothesis import given
from hypothesis import strategies as st

from duly.core.admission import Admitted, Waits, admit, rank_of
from duly.core.limits import AGENTS_MOST, UNSET_MOST, Limit, next_start, short_of, unset, weights_of
from duly.core.task import Definition, Rules

TICK = timedelta(microseconds=1)


def agent(project: str = "Ops", **rules: object) -> Definition:
    return Definition(name="a", project=project, action={"kind": "agent"}, rules=Rules(**rules))  # type: ignore[arg-type]


def test_an_agent_takes_one_of_its_projects_agents_and_a_command_does_not() -> None:
    assert weights_of(agent()) == {"agents:ops": 1}
    assert weights_of(agent(limits={"gpu": 2})) == {"agents:ops": 1, "gpu": 2}
    assert weights_of(agent(limits={"agents:ops": 2})) == {"agents:ops": 2}
    command = Definition(name="a", action={"kind": "command", "argv": ("true",)}, rules=Rules(limits={"gpu": 2}))
    assert weights_of(command) == {"gpu": 2}


def test_what_nobody_set_is_one_at_a_time_and_two_for_a_projects_agents() -> None:
    assert (unset("gpu").most, unset("agents:ops").most) == (UNSET_MOST, AGENTS_MOST) == (1, 2)


@pytest.mark.parametrize(("used", "weight", "fits"), [(0, 3, True), (1, 3, False), (2, 1, True), (3, 1, False)])
def test_a_limit_is_filled_to_its_brim_and_no_further(used: int, weight: int, fits: bool) -> None:
    limits = {"gpu": Limit(key="gpu", most=3, used=used)}
    assert (short_of({"gpu": weight}, limits, NINE) is None) == fits


def test_the_limit_that_is_named_is_the_one_without_room() -> None:
    limits = {"a": Limit(key="a", most=9), "b": Limit(key="b", most=1, used=1), "c": Limit(key="c", most=1, used=1)}
    short = short_of({"c": 1, "b": 1, "a": 1}, limits, NINE)
    assert short is not None
    assert (short.what, short.limit.key) == ("limit", "b")


def test_a_rate_has_room_again_exactly_when_it_says() -> None:
    limits = {"api": Limit(key="api", most=9, rate=1, rate_for=MINUTE, free_at=NINE + MINUTE)}
    short = short_of({"api": 1}, limits, NINE + MINUTE - TICK)
    assert short is not None
    assert (short.what, short.limit.free_at) == ("rate", NINE + MINUTE)
    assert short_of({"api": 1}, limits, NINE + MINUTE) is None


@given(
    st.lists(st.integers(0, 300), max_size=30),
    st.integers(1, 6),
    st.integers(1, 60),
)
def test_a_rate_followed_start_by_start_never_has_more_in_any_span_and_waits_no_longer_than_it_must(
    asks: list[int], rate: int, span_s: int
) -> None:
    span = span_s * SECOND
    starts: list[datetime] = []
    now = datetime(2026, 11, 1, tzinfo=UTC)
    for step in asks:
        now += step * SECOND / 10
        free = next_start(starts, rate, span)
        inside = sum(now - span < at for at in starts)
        assert (free is None or free <= now) == (inside < rate)
        if free is None or free <= now:
            starts.append(now)
    for at in starts:
        assert sum(at <= other < at + span for other in starts) <= rate


def test_a_run_waits_for_the_label_the_limit_and_the_rate_that_it_lacks_and_says_which() -> None:
    task = task_of(every(MINUTE), needs=("big", "gpu"), limits={"api": 1})
    rules = task.definition.rules
    api = {"api": Limit(key="api", most=1, used=1)}

    def judged(labels: set[str], limits: dict[str, Limit]) -> object:
        return admit(
            waiting(),
            task,
            rules,
            paused=False,
            kinds={"command"},
            now=NINE,
            labels=labels,
            weights={"api": 1},
            limits=limits,
        )

    assert judged({"gpu"}, api) == Waits(what="label", key="big")
    assert judged({"gpu", "big", "other"}, api) == Waits(what="limit", key="api")
    rated = {"api": Limit(key="api", most=1, rate=1, rate_for=MINUTE, free_at=NINE + SECOND)}
    assert judged({"gpu", "big"}, rated) == Waits(what="rate", key="api", until=NINE + SECOND)
    assert judged({"gpu", "big"}, {}) == Admitted()


def test_what_a_person_asked_for_goes_first_then_the_higher_priority_and_fills_of_the_past_last() -> None:
    low, high = Rules(priority=-5), Rules(priority=1000)
    ranks = [
        rank_of("manual", low),
        rank_of("schedule", high),
        rank_of("schedule", Rules()),
        rank_of("event", low),
        rank_of("backfill", high),
        rank_of("backfill", low),
    ]
    assert ranks == sorted(ranks)
    assert len(set(ranks)) == len(ranks)
    assert rank_of("offer", low) == rank_of("manual", high)
