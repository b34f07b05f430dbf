"""Limits, rates, seats and labels as claims see them, over real connections."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from store_scene import HOUR, KINDS, LEASE_US, MINUTE, NINE, SECOND, Scene, minutely, scene, without

from duly.core import interrupting, lifecycle
from duly.core.run import Run
from duly.core.task import Task
from duly.errors import Invalid, Refused
from duly.holder.dispatcher import Dispatcher
from duly.operations import limits as limit_operations
from duly.operations.audit import verify
from duly.operations.runs import run_now
from duly.operations.telling import waiting_for
from duly.ports import Outcome
from duly.store import waiting
from duly.store.queueing import trim


def due(s: Scene, names: list[str], **rules: Any) -> list[Task]:
    """So many tasks, each with one run that waits at NINE + a minute."""
    tasks = [s.add(name, minutely(), **rules) for name in names]
    s.at(NINE + MINUTE)
    s.plan()
    return tasks


def set_limit(s: Scene, key: str, most: int, rate: int | None = None, span: timedelta | None = None) -> None:
    limit_operations.set_limit(s.store, key, most, rate=rate, rate_for=span, by="ann")


def used(s: Scene, key: str) -> int:
    with s.store.read() as session:
        return session.crowd.by_keys([key])[key].used


def waits(s: Scene, run: Run) -> tuple[object, object]:
    with s.store.read() as session:
        found = waiting_for(session, run)
    assert found is not None
    return found["what"], found["key"]


def test_a_limit_lets_as_many_runs_live_as_it_says_and_the_rest_wait_for_it(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        set_limit(s, "gpu", 3)
        due(s, [f"t{n}" for n in range(5)], limits={"gpu": 1})
        won = s.claim(free=64)
        assert len(won) == 3
        assert used(s, "gpu") == 3
        assert s.claim(s.connect(), holder="hld_b", free=64) == []
        left = [run for run in s.runs() if run.state == "waiting"]
        assert {waits(s, run) for run in left} == {("limit", "gpu")}
        s.settle(won[0])
        assert used(s, "gpu") == 2
        assert len(s.claim(s.connect(), holder="hld_b", free=64)) == 1
        assert s.faults() == []


def test_without_the_condition_on_limits_the_turn_itself_still_refuses_what_does_not_fit(tmp_path: Path) -> None:
    """Two guards: the search leaves full limits out so that nothing starves, admission counts exactly."""
    with scene(tmp_path) as s:
        set_limit(s, "gpu", 1)
        due(s, ["a", "b", "c"], limits={"gpu": 1})
        condition = "limits.used + task_limits.weight > limits.most OR limits.free_us > ?"
        with without(waiting.CLAIMABLE, condition, "1 = 0 OR limits.free_us > ?"):
            assert len(s.claim(free=8)) == 1
            assert s.claim(free=8) == []


def test_a_weight_takes_that_much_and_a_lighter_run_behind_it_is_not_held_up(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        set_limit(s, "mem", 4)
        heavy = s.add("heavy", minutely(), limits={"mem": 3})
        second = s.add("second", minutely(NINE + SECOND), limits={"mem": 2})
        light = s.add("light", minutely(NINE + 2 * SECOND), limits={"mem": 1})
        s.at(NINE + MINUTE + 2 * SECOND)
        s.plan()
        assert {one.task.id for one in s.claim()} == {heavy.id, light.id}
        assert used(s, "mem") == 4
        (left,) = [run for run in s.runs() if run.state == "waiting"]
        assert left.task == second.id


def test_a_limit_that_nobody_set_is_one_at_a_time(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        due(s, ["a", "b"], limits={"db": 1})
        assert len(s.claim()) == 1
        with s.store.read() as session:
            (found,) = limit_operations.limits(session)
        assert (found.limit.most, found.limit.set_at, found.tasks) == (1, None, 2)


def test_places_in_limits_are_freed_by_every_end_of_a_run(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        set_limit(s, "gpu", 2)
        due(s, ["a", "b"], limits={"gpu": 1}, on_interrupt="retry")
        first, second = s.claim()
        with s.store.write() as session:
            given = lifecycle.give_back(first.run, now=session.now, why="x")
            assert session.runs.move([given])
            swept = interrupting.interrupted(
                second.run,
                second.definition.rules,
                why="holder_died",
                now=session.now,
                ended_at=session.now,
                following=None,
                by="hld_b",
            )
            assert session.runs.move([swept])
            session.ledger.add([*given.entries, *swept.entries])
        assert used(s, "gpu") == 0
        assert s.faults() == []


def test_a_take_over_keeps_the_place_and_takes_no_second_one(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        set_limit(s, "gpu", 1)
        due(s, ["a"], limits={"gpu": 1})
        (won,) = s.claim()
        with s.store.write() as session:
            taken = lifecycle.take_over(
                won.run, holder="hld_b", token="t", lease_end_us=1, boot="boot-one", now=session.now, why="dead"
            )
            assert session.runs.move([taken])
            session.ledger.add(taken.entries)
        assert used(s, "gpu") == 1
        assert s.faults() == []


def test_a_step_that_loses_frees_nothing(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        set_limit(s, "gpu", 1)
        due(s, ["a"], limits={"gpu": 1})
        (won,) = s.claim()
        with s.store.write() as session:
            assert session.runs.move([lifecycle.ask_cancel(won.run, by="ann", now=session.now)])
        with s.store.write() as session:
            assert not session.runs.move([lifecycle.settle(won.run, "succeeded", now=session.now)])
        assert used(s, "gpu") == 1


def test_a_rate_lets_so_many_start_in_any_span_and_says_when_the_next_may(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        set_limit(s, "api", 10, rate=2, span=MINUTE)
        due(s, ["a", "b", "c"], limits={"api": 1})
        began = s.clock.moment
        first, second = s.claim()
        s.settle(first)
        s.settle(second)
        assert s.claim() == [], "room in the limit, none in the rate"
        (left,) = [run for run in s.runs() if run.state == "waiting"]
        assert waits(s, left) == ("rate", "api")
        with s.store.read() as session:
            free_us = session.crowd.soonest_free_us(session.now)
            found = waiting_for(session, left)
        assert free_us is not None
        assert found is not None
        assert str(found["until"]).startswith((began + MINUTE).strftime("%Y-%m-%dT%H:%M"))
        s.at(began + MINUTE - SECOND)
        assert s.claim() == []
        s.at(began + MINUTE)
        assert len(s.claim()) == 1


def test_a_claim_that_is_given_back_counts_against_no_rate(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        set_limit(s, "api", 10, rate=2, span=MINUTE)
        set_limit(s, "web", 10, rate=5, span=MINUTE)
        due(s, ["a", "b", "c"], limits={"api": 1, "web": 1})
        first, second = s.claim()
        s.settle(second)
        assert s.claim() == []
        with s.store.write() as session:
            back = lifecycle.give_back(first.run, now=session.now, why="its holder died before it began")
            assert session.runs.move([back])
            session.ledger.add(back.entries)
            assert session.crowd.soonest_free_us(session.now) is None
        with s.store.write() as session:
            assert not session.runs.move([back]), "told twice, it frees once"
        assert len(s.claim()) == 1
        assert s.claim() == []
        with s.store.read() as session:
            assert [len(session.crowd.starts(key, NINE)) for key in ("api", "web")] == [2, 2]
        assert s.faults() == []


def test_an_attempt_that_failed_and_is_tried_again_counts_against_the_rate(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        set_limit(s, "api", 10, rate=1, span=HOUR)
        due(s, ["a"], limits={"api": 1}, retries=3, retry_after=MINUTE)
        (won,) = s.claim()
        s.settle(won, Outcome(word="failed", reason="exit_status", exit_code=1))
        s.at(NINE + 30 * MINUTE)
        assert [run.state for run in s.runs()] == ["waiting"]
        assert s.claim() == [], "the first attempt was a start"


def test_a_rate_is_counted_over_any_span_and_not_by_the_calendar(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        set_limit(s, "api", 100, rate=3, span=MINUTE)
        due(s, [f"t{n}" for n in range(12)], limits={"api": 1}, max_age=HOUR)
        starts = []
        for tick in range(0, 240, 7):
            s.at(NINE + MINUTE + tick * SECOND)
            for won in s.claim(free=64):
                starts.append(s.clock.moment)
                s.settle(won)
        assert len(starts) == 12
        for at in starts:
            assert sum(at <= other < at + MINUTE for other in starts) <= 3


def test_several_seats_hold_several_runs_of_one_task_each_on_its_own(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", minutely(), seats=2, overlap="queue", grace=HOUR)
        s.at(NINE + 4 * MINUTE)
        s.plan()
        won = s.claim()
        assert sorted(one.run.seat or 0 for one in won) == [1, 2]
        assert s.claim(s.connect(), holder="hld_b") == []
        left = [run for run in s.runs(task.id) if run.state == "waiting"]
        assert waits(s, left[0])[0] == "seat"
        s.settle(won[0])
        (third,) = s.claim(s.connect(), holder="hld_b")
        assert third.run.seat == won[0].run.seat
        assert s.faults() == []


def test_with_all_seats_taken_a_task_that_skips_ends_what_comes_and_names_who_has_them(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", minutely(), seats=2)
        s.at(NINE + MINUTE)
        s.plan()
        (first,) = s.claim()
        s.at(NINE + 2 * MINUTE)
        s.plan()
        assert len(s.claim()) == 1, "the second seat"
        s.at(NINE + 3 * MINUTE)
        s.plan()
        assert s.claim() == []
        last = s.runs(task.id)[-1]
        assert (last.outcome, last.reason) == ("skipped", "already_running")
        (entry,) = [one for one in s.entries(task.id) if one.kind == "skipped"]
        assert entry.details["run"] == first.run.id


@pytest.mark.parametrize(("policy", "how"), [("cancel_running", "term"), ("kill_running", "kill")])
def test_a_newer_occurrence_asks_the_running_one_to_end_and_then_takes_its_seat(
    tmp_path: Path, policy: str, how: str
) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", minutely(), overlap=policy)
        s.at(NINE + MINUTE)
        s.plan()
        (first,) = s.claim()
        s.at(NINE + 2 * MINUTE)
        s.plan()
        assert s.claim() == []
        asked = s.run(first.run.id)
        assert (asked.cancel_why, asked.cancel_how, asked.state) == ("overlap", how, "held")
        second = s.runs(task.id)[-1]
        assert second.state == "waiting"
        s.at(NINE + 3 * MINUTE)
        s.plan()
        with s.store.write() as session:
            trim(session, task)
        assert s.claim() == []
        assert (s.run(second.id).outcome, s.run(second.id).reason) == ("skipped", "superseded")
        assert s.run(first.run.id).version == asked.version, "one end asked for is enough"
        with s.store.write() as session:
            step = lifecycle.settle(asked, "cancelled", now=session.now, reason="overlap")
            assert session.runs.move([step])
            session.ledger.add(step.entries)
        (third,) = s.claim()
        assert third.run.due_at == NINE + 3 * MINUTE
        assert s.faults() == []


def test_a_task_runs_only_where_its_labels_are(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        due(s, ["a"], needs=("gpu", "big"))
        with s.store.write() as session:
            session.crowd.set_labels("hld_a", ["gpu"])
            session.crowd.set_labels("hld_b", ["big", "gpu", "other"])
        assert s.claim() == []
        (run,) = s.runs()
        assert waits(s, run)[0] == "label"
        with s.connect().write() as session:
            dispatcher = Dispatcher("hld_b", s.clock.boot, LEASE_US, lambda: KINDS, ["big", "gpu", "other"])
            assert len(dispatcher.step(session, 8).won) == 1


def test_a_thousand_runs_that_wait_for_a_limit_keep_nobody_else_from_starting(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        set_limit(s, "gpu", 1)
        task = s.add("many", minutely(), limits={"gpu": 1}, overlap="queue", queue=1000, seats=1000)
        for _ in range(300):
            run_now(s.store, task.id, by="ann", queue=True)
        late = s.add("late", minutely())
        s.at(NINE + MINUTE)
        s.plan()
        won = s.claim(free=2)
        assert {one.task.id for one in won} == {task.id, late.id}


def test_runs_by_hand_come_first_then_priority_then_projects_in_turn(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        for n in range(4):
            s.add(f"a{n}", minutely(), project="alpha")
        for n in range(2):
            s.add(f"b{n}", minutely(), project="beta")
        urgent = s.add("urgent", minutely(), project="alpha", priority=5)
        by_hand = s.add("hand", project="beta")
        s.at(NINE + MINUTE)
        s.plan()
        run_now(s.store, by_hand.id, by="ann")
        order = []
        for _ in range(8):
            (won,) = s.claim(free=1)
            order.append(won.definition.name)
            s.settle(won)
        assert order[:2] == ["hand", "urgent"]
        assert urgent.definition.rules.priority == 5
        projects = [name[0] for name in order[2:]]
        assert projects[:4].count("a") == 2, f"in turn: {order}"
        assert projects[4:] == ["a", "a"]


@pytest.mark.parametrize("most", [2, 1])
def test_a_limit_below_what_runs_is_refused_with_its_figures(tmp_path: Path, most: int) -> None:
    with scene(tmp_path) as s:
        set_limit(s, "gpu", 3)
        due(s, ["a", "b", "c"], limits={"gpu": 1})
        s.claim()
        with pytest.raises(Refused) as refused:
            set_limit(s, "gpu", most)
        assert refused.value.reason == "limit_reached"
        assert refused.value.details["used"] == 3
        assert len(refused.value.details["runs"]) == 3  # type: ignore[arg-type]
        with s.store.read() as session:
            assert session.crowd.by_keys(["gpu"])["gpu"].most == 3


def test_a_limit_below_the_weight_of_a_task_is_refused_and_so_is_a_task_above_the_limit(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        set_limit(s, "gpu", 3)
        s.add("a", minutely(), limits={"gpu": 3})
        with pytest.raises(Refused, match="weighs 3"):
            set_limit(s, "gpu", 2)
        with pytest.raises(Invalid, match="its weight is 4"):
            s.add("b", minutely(), limits={"gpu": 4})
        with pytest.raises(Invalid, match="until it is set: 1"):
            s.add("c", minutely(), limits={"db": 2})


def test_a_counter_that_does_not_count_what_is_taken_is_found_by_verify(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        set_limit(s, "gpu", 3)
        due(s, ["a", "b"], limits={"gpu": 1})
        s.claim()
        assert s.faults() == []
        s.sql("UPDATE limits SET used = 1")
        assert [one.promise for one in verify(s.store)] == ["P8"]
        s.sql("UPDATE limits SET used = 2, most = 1")
        assert [one.promise for one in verify(s.store)] == ["P8"]


def test_a_claim_that_saw_more_taken_than_was_allowed_is_found_by_verify(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        set_limit(s, "gpu", 1)
        due(s, ["a", "b"], limits={"gpu": 1})
        (won,) = s.claim()
        s.settle(won)
        assert len(s.claim()) == 1
        assert s.faults() == []
        (ended,) = s.sql("SELECT seq, run FROM ledger WHERE kind = 'ended'")
        s.sql("UPDATE ledger SET seq = 1000000 WHERE seq = ?", ended[0])
        assert "P8" in [promise for promise, _ in s.faults()], "two were live at once by the order of the ledger"
