"""`remove_when_done`: a task that is done goes by itself when nothing of it is left, and its story stays."""

from pathlib import Path
from typing import Any

import pytest
from store_people import by_hand, unpause
from store_scene import DAY, HOUR, NINE, Scene, hourly, scene

from duly.core.task import Task
from duly.core.triggers import Once
from duly.holder.settling import Interrupted
from duly.operations import edits
from duly.operations import missed as missed_operations
from duly.operations import runs as run_operations
from duly.operations import tasks as task_operations

TEN = NINE + HOUR


def is_gone(s: Scene, task: Task) -> bool:
    """Whether it is removed after a turn of a holder."""
    s.plan()
    return s.task(task.id).removed_at is not None


def test_a_once_goes_when_its_run_has_ended_and_its_runs_and_ledger_stay(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", Once(at=TEN), remove_when_done=True)
        assert not is_gone(s, task)
        s.at(TEN)
        s.plan()
        assert s.task(task.id).done
        assert not is_gone(s, task), "its run waits"
        (won,) = s.claim()
        assert not is_gone(s, task), "its run is live"
        s.settle(won)
        assert is_gone(s, task)
        assert s.run(won.run.id).outcome == "succeeded"
        (entry,) = [one for one in s.entries(task.id) if one.kind == "removed"]
        assert (entry.by, entry.details) == ("duly", {"why": "done"})
        assert s.add("one", hourly()).id != task.id, "its name is free"
        assert s.faults() == []


def test_a_task_goes_after_its_last_of_so_many_times_and_not_before_it_was_tried_again(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", hourly(), times=2, remove_when_done=True, on_interrupt="retry")
        for _ in range(2):
            assert not is_gone(s, task)
            s.at(s.clock.moment + HOUR)
            s.plan()
            (won,) = s.claim()
            s.settle(won) if s.clock.moment == TEN else None
        s.settle(won, Interrupted(why="holder_died", ended_at=s.clock.moment))
        assert s.task(task.id).done
        assert not is_gone(s, task), "it waits to be tried again"
        s.settle(s.claim()[0])
        assert is_gone(s, task)
        assert s.faults() == []


def test_a_task_whose_last_occurrence_is_offered_waits_for_the_answer(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", Once(at=TEN), on_missed="offer", remove_when_done=True)
        s.at(TEN + HOUR)
        assert not is_gone(s, task)
        assert s.task(task.id).done
        assert not is_gone(s, task)
        ((id_,),) = s.sql("SELECT id FROM missed")
        missed_operations.accept(s.store, id_, by="ann")
        assert not is_gone(s, task), "the accepted one waits"
        s.settle(s.claim()[0])
        assert is_gone(s, task)
        assert s.faults() == []


def test_a_task_that_missed_its_last_occurrence_and_skips_it_goes(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", Once(at=TEN), on_missed="skip", remove_when_done=True)
        s.at(TEN + HOUR)
        s.plan()
        assert is_gone(s, task)


def test_a_run_by_hand_keeps_a_task_that_is_done_until_it_has_ended(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", Once(at=TEN), on_missed="skip", remove_when_done=True)
        hand = by_hand(s)
        s.at(TEN + HOUR)
        s.plan()
        assert not is_gone(s, task)
        run_operations.cancel(s.store, hand.id, by="ann")
        assert is_gone(s, task)


@pytest.mark.parametrize("rules", [{}, {"remove_when_done": False}])
def test_a_task_that_does_not_say_so_stays(tmp_path: Path, rules: dict[str, Any]) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", Once(at=TEN), on_missed="skip", **rules)
        s.at(TEN + HOUR)
        s.plan()
        assert not is_gone(s, task)
        edits.edit(s.store, "one", {"rules": {"remove_when_done": True}}, by="ann")
        assert is_gone(s, task), "said afterwards, it goes too"


def test_a_task_that_is_off_is_not_done_and_stays(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", Once(at=TEN), remove_when_done=True)
        task_operations.pause(s.store, "task", "one", until=None, note=None, by="ann")
        s.at(NINE + DAY)
        assert not is_gone(s, task)
        unpause(s)
        assert is_gone(s, task), "its time passed while it was held"
        assert s.sql("SELECT count(*) FROM pauses") == [(0,)]


def test_a_new_future_time_keeps_a_task_that_was_about_to_go(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", Once(at=TEN), on_missed="skip", remove_when_done=True)
        s.at(TEN + HOUR)
        s.plan()
        edits.edit(s.store, "one", {"triggers": ["once 2026-03-03T10:00:00Z"]}, by="ann")
        assert not is_gone(s, task)
        s.at(NINE + DAY + HOUR)
        assert len(s.plan()) == 1
