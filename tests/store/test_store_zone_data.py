"""Holders with new zone data: tasks are taken over to them, with a new era, and nothing runs twice or is doubted."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from store_people import pause, unpause
from store_scene import DAY, HOUR, MINUTE, Scene, scene

from duly.core.rezoning import cursor_by
from duly.core.task import Definition, Rules, Task
from duly.core.triggers import Cron, Daily, Every, Trigger
from duly.operations import tasks as task_operations
from duly.store import rezoning
from zone_maker import TOWN, write, zone_data

MORNING = datetime(2026, 3, 2, 6, tzinfo=UTC)
AT_NINE = Daily(times=(datetime(2026, 1, 1, 9, tzinfo=UTC).time(),))


@contextmanager
def data(tmp_path: Path, version: str, hours: float) -> Iterator[None]:
    """Zone data by which the town is so many hours ahead, and always was."""
    with zone_data(write(tmp_path / "zones" / version, version, timedelta(hours=hours))):
        yield


def add(s: Scene, name: str, *triggers: Trigger, zone: str = TOWN) -> Task:
    definition = Definition(
        name=name,
        triggers=triggers,
        zone=zone,
        action={"kind": "command", "argv": ("true",)},
        rules=Rules(),
    )
    return task_operations.add(s.store, definition, by="ann", source={"kind": "cli"})


def test_what_ran_by_old_data_does_not_run_again_and_the_next_is_computed_anew(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.at(MORNING - HOUR)
        with data(tmp_path, "2098a", 3):
            task = add(s, "one", AT_NINE)
            s.at(MORNING)
            assert len(s.plan()) == 1
            assert s.task(task.id).planned_wall == f"2026-03-02T09:00:00+03:00[{TOWN}]"
            assert s.faults() == []
        with data(tmp_path, "2099a", 2):
            s.at(MORNING + 10 * MINUTE)
            assert s.plan() == []
            after = s.task(task.id)
            assert (after.zone_data, after.planned_until) == ("2099a", MORNING + HOUR)
            assert after.next_due_at == MORNING + HOUR + DAY
            assert after.version == task.version, "an author's next edit is not refused for it"
            assert s.faults() == []
            s.at(MORNING + HOUR + MINUTE)
            assert s.plan() == []
            s.at(MORNING + HOUR + DAY)
            assert [run.due_at for run in s.plan()] == [MORNING + HOUR + DAY]
            assert s.faults() == []
            told = [entry for entry in s.entries(task.id) if entry.kind == "defined"][1:]
            assert [entry.details for entry in told] == [{"version": 2, "zone_data": "2099a", "before": "2098a"}]


def test_without_the_wall_the_local_time_would_run_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with scene(tmp_path) as s:
        s.at(MORNING - HOUR)
        with data(tmp_path, "2098a", 3):
            add(s, "one", AT_NINE)
            s.at(MORNING)
            s.plan()
        monkeypatch.setattr(rezoning, "cursor_by", lambda task, _zone: task.planned_until)
        with data(tmp_path, "2099a", 2):
            s.at(MORNING + HOUR)
            assert len(s.plan()) == 1, "the wall is what keeps it from running again"


def test_an_instant_that_comes_earlier_by_new_data_is_met_although_the_store_had_a_later_one(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.at(MORNING - 5 * HOUR)
        with data(tmp_path, "2098a", 3):
            task = add(s, "one", AT_NINE)
            assert task.next_due_at == MORNING
        with data(tmp_path, "2099a", 4):
            s.plan()
            assert s.task(task.id).next_due_at == MORNING - HOUR
            s.at(MORNING - HOUR)
            (run,) = s.plan()
            assert (run.due_at, run.opened_by) == (MORNING - HOUR, "schedule")
            assert s.faults() == []


def test_a_task_that_is_off_stays_off_and_is_right_when_it_is_switched_on(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.at(MORNING - HOUR)
        with data(tmp_path, "2098a", 3):
            held = add(s, "one", AT_NINE)
            off = add(s, "two", AT_NINE)
            s.at(MORNING)
            s.plan()
            pause(s)
            task_operations.disable(s.store, "two", by="ann")
        with data(tmp_path, "2099a", 2):
            s.at(MORNING + 10 * MINUTE)
            s.plan()
            assert [s.task(task.id).next_due_at for task in (held, off)] == [None, None]
            unpause(s)
            task_operations.enable(s.store, "two", by="ann")
            assert [s.task(task.id).next_due_at for task in (held, off)] == [MORNING + HOUR + DAY] * 2
            assert s.faults() == []


def test_an_edit_by_a_process_with_other_data_plans_by_its_own_and_says_so_in_an_era(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.at(MORNING - 5 * HOUR)
        with data(tmp_path, "2098a", 3):
            task = add(s, "one", AT_NINE)
        with data(tmp_path, "2099a", 4):
            s.at(MORNING - 30 * MINUTE)
            task_operations.disable(s.store, "one", by="ann")
            assert [run.due_at for run in s.runs()] == [MORNING - HOUR], "planned up to now by the new data"
            assert s.task(task.id).zone_data == "2099a"
            assert s.faults() == []
        with data(tmp_path, "2098a", 3):
            s.at(MORNING + HOUR)
            task_operations.enable(s.store, "one", by="ann")
            assert s.task(task.id).next_due_at == MORNING + DAY
            assert len(s.runs()) == 1
            assert s.faults() == []


def test_tasks_that_no_zone_data_move_are_taken_over_without_a_new_era(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.at(MORNING)
        with data(tmp_path, "2098a", 3):
            tasks = [
                add(s, "in utc", AT_NINE, zone="UTC"),
                add(s, "elapsed", Every(span=HOUR, anchor=MORNING)),
                add(s, "by hand"),
            ]
        with data(tmp_path, "2099a", 2):
            s.plan()
            after = [s.task(task.id) for task in tasks]
            assert [(one.zone_data, one.definition_version) for one in after] == [("2099a", 1)] * 3
            with s.store.read() as session:
                assert not session.tasks.of_other_zone_data("2099a", 1)
            assert s.faults() == []


def test_a_task_without_a_word_on_its_data_is_believed_to_have_ours(tmp_path: Path) -> None:
    """As all tasks of a store that an older version of Duly left."""
    with scene(tmp_path) as s:
        s.at(MORNING)
        with data(tmp_path, "2099a", 2):
            task = add(s, "one", AT_NINE)
            s.sql("UPDATE tasks SET zone_data = NULL")
            s.sql("UPDATE definitions SET zone_data = NULL")
            s.plan()
            after = s.task(task.id)
            assert (after.zone_data, after.definition_version) == ("2099a", 1)
            assert s.faults() == []


def test_many_tasks_are_taken_over_turn_by_turn_until_none_is_left(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.at(MORNING - HOUR)
        with data(tmp_path, "2098a", 3):
            for number in range(7):
                add(s, f"task {number}", AT_NINE)
        with data(tmp_path, "2099a", 2):
            for left in (7, 4, 1, 0):
                with s.store.write() as session:
                    others = session.tasks.of_other_zone_data("2099a", 100)
                    assert len(others) == left
                    assert rezoning.take_over_others(session, 3) == min(left, 3)


def test_a_task_that_somebody_moved_since_it_was_read_is_left_to_them(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.at(MORNING - HOUR)
        with data(tmp_path, "2098a", 3):
            stale = add(s, "one", AT_NINE)
            s.at(MORNING)
            s.plan()
            s.at(MORNING + DAY)
        with data(tmp_path, "2099a", 2), s.store.write() as session:
            assert rezoning.take_over(session, [stale]) == {}
        assert s.task(stale.id).definition_version == 1


def test_verify_does_not_judge_by_its_own_data_what_others_planned_by_theirs(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.at(MORNING - HOUR)
        with data(tmp_path, "2098a", 3):
            add(s, "one", AT_NINE, Cron(expression="*/20 * * * *"))
            for minutes in range(0, 200, 20):
                s.at(MORNING + minutes * MINUTE)
                s.plan()
            s.sql("DELETE FROM ledger WHERE occurrence = 'at:2026-03-02T06:40:00Z'")
            assert any("no fate for 2026-03-02T06:40" in text for _, text in s.faults())
        with data(tmp_path, "2099a", 2.5):
            assert [text for promise, text in s.faults() if promise == "P6" and "no fate" in text] == []
            s.plan()
            s.at(MORNING + 4 * HOUR)
            s.plan()
            s.sql("DELETE FROM ledger WHERE seq = (SELECT max(seq) FROM ledger WHERE kind = 'opened')")
            assert any("no fate" in text for _, text in s.faults()), "its own era it judges"


def test_the_wall_that_planning_keeps_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.at(MORNING - HOUR)
        with data(tmp_path, "2098a", 3):
            task = add(s, "one", AT_NINE)
            s.at(MORNING)
            s.plan()
            from duly import zones

            assert cursor_by(s.task(task.id), zones.zone(TOWN)) == MORNING
