"""Switching tasks off, on and away: what was due gets its fate first, what waits ends with the reason."""

from pathlib import Path

import pytest
from store_people import REASONS, by_hand, pause, stretches, switch
from store_scene import (
    DAY,
    HOUR,
    MINUTE,
    NINE,
    SECOND,
    TICK,
    hourly,
    minutely,
    scene,
    without,
)

from duly.core.triggers import Once
from duly.errors import Refused
from duly.operations import tasks as task_operations
from duly.store import switches, tasks


@pytest.mark.parametrize("verb", REASONS)
def test_switching_off_first_gives_what_was_due_its_fate_and_then_ends_what_waits_with_the_reason(
    tmp_path: Path, verb: str
) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", hourly())
        s.at(NINE + 3 * HOUR + SECOND)  # three are due, nobody has planned
        switch(s, verb)
        after = s.task(task.id)
        assert after.planned_until == NINE + 3 * HOUR
        assert after.next_start_at is None
        (run,) = s.runs()
        assert (run.state, run.outcome, run.reason) == ("ended", "skipped", REASONS[verb])
        assert s.sql("SELECT reason, count FROM missed") == [("coalesced", 2)]
        s.at(NINE + 9 * HOUR)
        assert s.plan() == []
        assert s.faults() == []


@pytest.mark.parametrize("verb", ["pause", "disable"])
def test_an_edit_that_does_not_plan_first_takes_the_fate_of_what_was_due_from_it(
    tmp_path: Path, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was due before the switch would be told as paused or disabled, though it was neither."""
    with scene(tmp_path) as s:
        task = s.add("one", hourly())
        s.at(NINE + 3 * HOUR + SECOND)
        with monkeypatch.context() as patched:
            patched.setattr(switches, "bring_up_to_now", lambda _session, task: task)
            switch(s, verb)
        s.at(NINE + 4 * HOUR + MINUTE)
        switch(s, {"pause": "unpause", "disable": "enable"}[verb])
        assert stretches(s, task) == [(REASONS[verb], 4)], "planning first is what makes it 1"


@pytest.mark.parametrize("verb", ["pause", "disable"])
def test_switching_off_leaves_live_runs_and_waiting_ones_by_hand(tmp_path: Path, verb: str) -> None:
    with scene(tmp_path) as s:
        won = s.held("one", overlap="queue")
        hand = by_hand(s, queue=True)
        s.at(s.clock.now() + HOUR)
        (queued,) = s.plan()
        switch(s, verb)
        assert s.run(won.run.id).state == "held"
        assert s.run(won.run.id).cancel_asked_at is None
        assert s.run(hand.id).state == "waiting"
        assert s.run(queued.id).reason == REASONS[verb]
        assert s.faults() == []


def test_removing_ends_all_that_waits_cancels_what_runs_and_keeps_the_story(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        won = s.held("one", overlap="queue")
        hand = by_hand(s, queue=True)
        pause(s, "project", "default")
        pause(s)
        switch(s, "remove")
        assert s.run(won.run.id).state == "held"
        assert s.run(won.run.id).cancel_asked_by == "ann"
        assert (s.run(hand.id).outcome, s.run(hand.id).reason) == ("skipped", "task_removed")
        assert [row[0] for row in s.sql("SELECT scope FROM pauses")] == ["project"], "its own pause goes with it"
        with pytest.raises(Refused, match="one"):
            by_hand(s, anyway=True)
        s.settle(won)
        assert s.run(won.run.id).outcome == "succeeded", "success that came first stays success"
        assert s.faults() == []
        assert s.add("one", hourly()).id != won.run.task, "the name is free again"


@pytest.mark.parametrize(("off", "on"), [("pause", "unpause"), ("disable", "enable")])
def test_switching_on_owes_nothing_of_the_stretch_and_tells_it_in_one_counted_entry(
    tmp_path: Path, off: str, on: str
) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", minutely())
        s.at(NINE + MINUTE)
        switch(s, off)
        s.at(NINE + 11 * MINUTE)
        switch(s, on)
        after = s.task(task.id)
        assert stretches(s, task) == [(REASONS[off], 10)]
        assert after.planned_until == NINE + 11 * MINUTE, "what is due now was still in the stretch"
        assert after.next_start_at == NINE + 12 * MINUTE
        assert s.plan() == []
        s.at(NINE + 12 * MINUTE)
        assert [run.due_at for run in s.plan()] == [NINE + 12 * MINUTE]
        assert s.faults() == []


@pytest.mark.parametrize(("off", "on"), [("pause", "unpause"), ("disable", "enable")])
def test_a_stretch_without_occurrences_leaves_no_entry(tmp_path: Path, off: str, on: str) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", hourly())
        switch(s, off)
        s.at(NINE + HOUR - TICK)
        switch(s, on)
        assert stretches(s, task) == []
        assert s.task(task.id).next_start_at == NINE + HOUR
        s.at(NINE + HOUR)
        assert len(s.plan()) == 1
        assert s.faults() == []


def test_switching_on_what_is_on_and_off_what_is_off_changes_nothing(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.add("one", hourly())
        before = (s.sql("SELECT * FROM tasks"), s.entries())
        switch(s, "enable")
        assert (s.sql("SELECT * FROM tasks"), s.entries()) == before
        switch(s, "disable")
        before = (s.sql("SELECT * FROM tasks"), s.entries())
        switch(s, "disable")
        assert (s.sql("SELECT * FROM tasks"), s.entries()) == before


@pytest.mark.parametrize(("off", "on"), [("pause", "unpause"), ("disable", "enable")])
def test_a_once_whose_time_passed_while_off_is_done_and_never_arms_again(tmp_path: Path, off: str, on: str) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", Once(at=NINE + HOUR))
        switch(s, off)
        s.at(NINE + 2 * HOUR)
        switch(s, on)
        after = s.task(task.id)
        assert (after.done, after.next_start_at) == (True, None)
        assert stretches(s, task) == [(REASONS[off], 1)]
        switch(s, off)
        s.at(NINE + DAY)
        switch(s, on)
        assert s.plan() == []
        assert s.runs() == []
        assert s.faults() == []


def test_switching_with_a_clock_stepped_back_moves_no_cursor_back(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", hourly())
        s.at(NINE + 5 * HOUR)
        s.plan()
        s.at(NINE + 2 * HOUR)
        for verb in ("pause", "unpause", "disable", "enable"):
            switch(s, verb)
            assert s.task(task.id).planned_until == NINE + 5 * HOUR, verb
        assert s.task(task.id).next_start_at == NINE + 6 * HOUR
        assert s.faults() == []


def test_a_switch_that_lost_to_another_writer_is_refused_whole(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", hourly())
        stale = s.task(task.id)
        task_operations.pause(s.connect(), "task", "one", until=None, note=None, by="bob")
        with pytest.raises(Refused) as caught, s.store.write() as session:
            switches.write(session, stale, stale)
        assert caught.value.reason == "version_conflict"
        with without(tasks.SET_STATE, "tasks.version = ?", "? IS NOT NULL"), s.store.write() as session:
            switches.write(session, stale, stale)
        assert s.task(task.id).next_start_at == NINE + HOUR, "without the version a paused task would run"


@pytest.mark.parametrize("verb", ["pause", "disable"])
def test_removing_what_was_off_tells_of_the_stretch_until_then(tmp_path: Path, verb: str) -> None:
    """Every occurrence whose time has come has a fate, those of a task that was removed while off too."""
    with scene(tmp_path) as s:
        task = s.add("one", hourly())
        switch(s, verb)
        s.at(NINE + 3 * HOUR)
        switch(s, "remove")
        assert stretches(s, task) == [(REASONS[verb], 3)]
        assert s.task(task.id).planned_until == NINE + 3 * HOUR
        assert s.faults() == []


def test_planning_an_edit_up_to_now_goes_on_past_the_openings_of_one_plan(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", minutely(), grace=DAY)
        s.at(NINE + 250 * MINUTE)
        pause(s)
        assert s.task(task.id).planned_until == NINE + 250 * MINUTE
        runs = s.runs()
        assert len(runs) == 250
        assert {run.reason for run in runs} == {"paused"}
        assert s.faults() == []
