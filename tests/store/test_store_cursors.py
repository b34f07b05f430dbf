"""The cursor in the planner's write, and what is written by a turn."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from store_claims import B, end, waiting_two
from store_scene import (
    HOUR,
    MINUTE,
    NINE,
    SECOND,
    SUCCEEDED,
    hourly,
    minutely,
    scene,
    without,
)

from by_hand import by_hand
from duly.core.run import Run
from duly.core.task import Task
from duly.errors import StoreAway
from duly.holder.dispatcher import Chosen
from duly.holder.view import Place
from duly.store import Store, tasks
from duly.store.plans import write_plans


def read_due(store: Store) -> list[Task]:
    with store.read() as session:
        return session.tasks.due(session.now, 100)


def plan_what_was_read(store: Store, due: Sequence[Task], holder: str) -> list[Run]:
    with store.write() as session:
        return write_plans(session, due, holder=holder)


def test_of_two_planners_that_read_the_same_tasks_one_opens_and_the_other_writes_nothing(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.add("one", minutely())
        s.add("two", minutely(), on_missed="skip")
        s.at(NINE + 10 * MINUTE + 50 * SECOND)
        other = s.connect()
        stale = read_due(other)
        assert len(s.plan()) == 1
        before = (s.entries(), s.runs(), s.sql("SELECT * FROM missed"), s.sql("SELECT * FROM tasks"))
        assert plan_what_was_read(other, stale, B) == []
        assert (s.entries(), s.runs(), s.sql("SELECT * FROM missed"), s.sql("SELECT * FROM tasks")) == before
        assert s.faults() == []


def test_a_late_loser_still_loses_after_a_fast_winners_run_has_ended_and_even_been_forgotten(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.add("one", hourly())
        s.at(NINE + HOUR)
        other = s.connect()
        stale = read_due(other)
        (run,) = s.plan()
        end(s, s.claim()[0])
        assert plan_what_was_read(other, stale, B) == []
        # Even where nothing is left of the run: the cursor remembers.
        s.sql("DELETE FROM runs")
        assert plan_what_was_read(other, stale, B) == []
        with without(tasks.PLANNED, "tasks.planned_until_us = v.was_planned_until_us"):
            doubled = plan_what_was_read(other, stale, B)
        assert [one.occurrence for one in doubled] == [run.occurrence], "the cursor is what remembers it"


def test_without_the_cursor_the_occurrence_index_still_refuses_the_double_and_undoes_all_of_it(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.add("one", hourly())
        s.at(NINE + HOUR)
        other = s.connect()
        stale = read_due(other)
        s.plan()
        entries = s.entries()
        with (
            without(tasks.PLANNED, "tasks.planned_until_us = v.was_planned_until_us"),
            pytest.raises(StoreAway, match=r"runs\.task, runs\.occurrence|runs_occurrence"),
        ):
            plan_what_was_read(other, stale, B)
        assert s.entries() == entries
        assert len(s.runs()) == 1


def test_a_planner_that_read_before_an_edit_plans_nothing_by_the_old_definition(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", hourly())
        s.at(NINE + HOUR)
        stale = read_due(s.store)
        s.sql("UPDATE tasks SET definition_version = 2 WHERE id = ?", task.id)
        assert plan_what_was_read(s.store, stale, B) == []
        with without(tasks.PLANNED, "tasks.definition_version = v.was_definition_version"):
            assert len(plan_what_was_read(s.store, stale, B)) == 1, "the version is what refuses it"


def test_the_cursor_never_moves_back_in_the_store(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", hourly())
        with s.store.write() as session:
            back = tasks.CursorMove(
                task=task,
                planned_until=task.planned_until - HOUR,
                next_due_at=None,
                next_start_at=None,
                done=False,
            )
            assert session.tasks.move_cursors([back]) == set()
        assert s.task(task.id).planned_until == task.planned_until
        with without(tasks.PLANNED, "tasks.planned_until_us <= v.planned_until_us"), s.store.write() as session:
            assert session.tasks.move_cursors([back]) == {task.id}


@pytest.mark.parametrize("back", [timedelta(minutes=1), timedelta(hours=5), timedelta(days=400)])
def test_a_store_whose_clock_stepped_back_opens_nothing_twice_and_goes_on_where_it_was(
    tmp_path: Path, back: timedelta
) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", minutely())
        s.at(NINE + 3 * MINUTE)
        s.plan()
        s.at(NINE + 3 * MINUTE - back)
        assert s.plan() == []
        s.sql("UPDATE tasks SET next_start_us = 0, next_due_us = 0")  # even if something made it look due
        assert s.plan() == []
        assert s.task(task.id).planned_until == NINE + 3 * MINUTE
        s.at(NINE + 4 * MINUTE)
        assert [run.due_at for run in s.plan()] == [NINE + 4 * MINUTE]
        assert s.faults() == []


def test_an_open_a_claim_and_an_end_are_each_counted_once_by_holder_and_task(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        won = s.held()
        end(s, won)
        s.settle(won, SUCCEEDED)  # its answer was lost, say: told again
        task = s.task(won.run.task)
        assert (task.runs, task.failures_in_a_row, task.last_run) == (1, 0, won.run.id)
        assert s.kinds().count("ended") == 1


@pytest.mark.parametrize("count", [1, 2, 4, 5, 20, 70])
def test_any_number_of_ends_is_counted_in_one_write(tmp_path: Path, count: int) -> None:
    with scene(tmp_path) as s:
        made = [s.add(f"task {number}", hourly()) for number in range(count)]
        s.at(NINE + HOUR)
        s.plan()
        won = s.claim(free=count)
        assert len(won) == count
        failed = replace(SUCCEEDED, word="failed", reason="exit_status", exit_code=3)
        with s.store.write() as session:
            settled = s.settler().step(session, [s.delivery(one, failed) for one in won])
        assert len(settled) == count
        assert {(s.task(task.id).runs, s.task(task.id).failures_in_a_row) for task in made} == {(1, 1)}


def test_two_ends_of_one_task_in_one_write_are_both_counted_in_their_order(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", hourly())
        with s.store.write() as session:
            session.tasks.count_end(
                [
                    (task.id, "run_a", tasks.SUCCESS),
                    (task.id, "run_b", tasks.FAILURE),
                    (task.id, "run_c", tasks.NEITHER),
                ]
            )
        after = s.task(task.id)
        assert (after.runs, after.failures_in_a_row, after.last_run) == (3, 1, "run_c")


def test_a_dispatcher_that_loses_a_seat_writes_nothing_for_it_and_claims_the_rest(tmp_path: Path) -> None:
    """The seat is taken under it: that claim alone is undone, fence and all, quiet and counted."""
    with scene(tmp_path) as s:
        other_task = s.add("other", minutely())
        first, _ = [run for run in waiting_two(s) if run.task != other_task.id]
        dispatcher = s.dispatcher(B)
        with s.store.write() as session:
            chosen = []
            for id_ in (first.task, other_task.id):
                task = session.tasks.by_id(id_)
                assert task is not None
                run = session.runs.waiting_of(id_)[0]
                place = Place(seat=1, weights={}, limits={})
                chosen.append(Chosen(run=run, task=task, definition=task.definition, place=place))
            park = "UPDATE runs SET state = 'parked', seat = 1 WHERE task = ? AND id != ?"
            by_hand(session.line, park, first.task, chosen[0].run.id)
            won = dispatcher._claim(session, chosen)
        assert [one.task.id for one in won] == [other_task.id]
        assert dispatcher.lost == 1
        assert s.task(first.task).fence == 0
        assert s.run(chosen[0].run.id).state == "waiting"
        assert [one.task for one in s.entries() if one.kind == "claimed"] == [other_task.id]


def test_what_is_due_is_judged_by_the_clock_after_the_lock_was_had(tmp_path: Path) -> None:
    """A writer that waited for the lock must not judge by the moment at which it began to wait."""
    with scene(tmp_path) as s:
        asked: list[bool] = []
        line = s.store._line
        now = s.clock.now

        def look() -> datetime:
            asked.append(line.stands)
            return now()

        s.clock.now = look  # type: ignore[method-assign]
        with s.store.write():
            pass
        assert asked == [True]
