"""Pauses of task, project and store: they stack, and end at their end."""

from datetime import timedelta
from pathlib import Path

import pytest
from store_people import by_hand, pause, stretches, switch, unpause
from store_scene import (
    HOUR,
    MINUTE,
    NINE,
    SECOND,
    hourly,
    minutely,
    scene,
)

from duly.errors import Invalid, Refused
from duly.holder.planner import Planner


def test_pauses_of_task_project_and_store_stack_and_each_lift_lifts_one(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        one = s.add("one", minutely(), project="house")
        two = s.add("two", minutely(), project="garden")
        pause(s, "store", "")
        pause(s, "project", "HOUSE")
        pause(s, "task", "one")
        s.at(NINE + 10 * MINUTE)
        for scope, target, armed in [
            ("store", "", [two.id]),
            ("task", "one", [two.id]),
            ("project", "house", [one.id, two.id]),
        ]:
            assert s.plan() == [] or scope != "store"
            unpause(s, scope, target)
            assert [t.id for t in (s.task(one.id), s.task(two.id)) if t.next_start_at is not None] == armed
        assert stretches(s, one) == [("paused", 10)]
        assert stretches(s, two) == [("paused", 10)]
        assert s.faults() == []


def test_pausing_again_replaces_end_and_note_and_keeps_since(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.add("one", hourly())
        pause(s, until=HOUR)
        s.at(NINE + 10 * MINUTE)
        pause(s, until=5 * HOUR)
        assert s.sql("SELECT since_us, until_us FROM pauses") == [
            (1_772_442_000_000_000, 1_772_442_000_000_000 + (5 * 3600 + 600) * 1_000_000)
        ]


def test_a_pause_whose_end_has_come_lifts_at_its_end_and_not_when_somebody_looks(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", minutely(), on_missed="skip")
        pause(s, until=10 * MINUTE + 30 * SECOND)
        with s.store.read() as session:
            assert Planner("hld_a").soonest(session) == NINE + 10 * MINUTE + 30 * SECOND
        s.at(NINE + 20 * MINUTE)
        opened = s.plan(holder="hld_a")
        assert [run.due_at for run in opened] == [NINE + 20 * MINUTE]
        assert stretches(s, task) == [("paused", 10)]
        assert s.sql("SELECT reason, count FROM missed") == [("missed_skip", 9)], "after its end the late table judges"
        assert s.sql("SELECT count(*) FROM pauses") == [(0,)]
        told = next(one for one in s.entries() if one.kind == "unpaused")
        assert told.by == "duly"
        assert s.faults() == []


def test_an_occurrence_at_the_very_end_of_a_pause_still_belongs_to_it(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", minutely())
        pause(s, until=10 * MINUTE)
        s.at(NINE + 10 * MINUTE)
        s.plan()
        assert stretches(s, task) == [("paused", 10)]
        assert s.runs() == []
        assert s.faults() == []


def test_two_pauses_that_end_at_different_times_hold_until_the_later(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", minutely(), on_missed="skip")
        pause(s, until=5 * MINUTE)
        pause(s, "store", "", until=15 * MINUTE)
        s.at(NINE + 20 * MINUTE)
        s.plan()
        assert stretches(s, task) == [("paused", 15)]
        assert s.faults() == []


def test_a_task_added_under_a_pause_waits_for_its_end_and_owes_only_from_its_making(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        pause(s, "store", "", until=10 * MINUTE)
        s.at(NINE + 4 * MINUTE)
        task = s.add("one", minutely())
        assert task.next_start_at is None
        s.at(NINE + 12 * MINUTE)
        s.plan()
        assert stretches(s, task) == [("paused", 6)]
        assert [run.due_at for run in s.runs()] == [NINE + 12 * MINUTE]
        assert s.faults() == []


def test_a_pause_that_is_over_holds_nothing_even_before_anybody_has_lifted_it(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.add("one", hourly())
        pause(s, until=10 * MINUTE)
        with pytest.raises(Refused, match="paused"):
            by_hand(s)
        s.at(NINE + 10 * MINUTE)
        assert by_hand(s).state == "waiting"


@pytest.mark.parametrize("verb", ["unpause", "disable", "pause"])
def test_what_came_due_after_the_end_of_a_pause_is_not_told_as_paused_or_disabled(tmp_path: Path, verb: str) -> None:
    """Nobody served from 09:10 to 09:30: those occurrences were late, nothing else."""
    with scene(tmp_path) as s:
        task = s.add("one", minutely(), on_missed="skip")
        pause(s, until=10 * MINUTE)
        s.at(NINE + 30 * MINUTE + 45 * SECOND)
        if verb == "unpause":
            assert unpause(s) is None
            s.plan()
        else:
            switch(s, verb)
        assert stretches(s, task) == [("paused", 10)]
        assert s.sql("SELECT reason, count FROM missed") == [("missed_skip", 20)]
        assert s.faults() == []


def test_a_pause_with_an_end_in_the_past_or_the_lifting_of_none_writes_nothing(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.add("one", hourly())
        before = s.entries()
        for end in (timedelta(0), -HOUR):
            with pytest.raises(Invalid):
                pause(s, until=end)
        for scope, target in (("task", "one"), ("store", "")):
            assert unpause(s, scope, target) is None
        with pytest.raises(Refused):
            pause(s, "project", "nowhere")
        assert s.entries() == before
        assert s.sql("SELECT count(*) FROM pauses") == [(0,)]


def test_a_disabled_task_under_a_pause_needs_both_lifted(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", minutely())
        pause(s)
        switch(s, "disable")
        s.at(NINE + 5 * MINUTE)
        unpause(s)
        assert s.task(task.id).next_start_at is None
        s.at(NINE + 10 * MINUTE)
        switch(s, "enable")
        assert s.task(task.id).next_start_at == NINE + 11 * MINUTE
        assert sum(count or 0 for _, count in stretches(s, task)) == 10
        assert s.faults() == []
