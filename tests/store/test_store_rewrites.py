"""Edits of definitions: versions and eras, what stays and what goes, and who is refused."""

from pathlib import Path
from typing import Any

import pytest
from store_edits import TEN, edit, us, versions
from store_people import by_hand, pause, stretches, switch, unpause
from store_scene import DAY, HOUR, MINUTE, NINE, SECOND, hourly, scene

from duly.core.definition_json import definition_to_json
from duly.core.triggers import Daily, Every, On, Once
from duly.errors import Invalid, Refused
from duly.holder.settling import Interrupted
from duly.operations import edits, projects
from duly.store import changing

# Eras


NEW_SCHEDULES: dict[str, dict[str, Any]] = {
    "triggers": {"triggers": ["daily 10:30"]},
    "zone": {"zone": "Europe/Berlin"},
    "gap": {"rules": {"gap": "skip"}},
    "fold": {"rules": {"fold": "both"}},
    "start": {"rules": {"start": "2026-03-02T10:10:00Z"}},
    "until": {"rules": {"until": "2026-03-05T10:10:00Z"}},
}


@pytest.mark.parametrize("name", NEW_SCHEDULES)
def test_another_schedule_first_gives_what_was_due_its_fate_and_then_owes_nothing_before_itself(
    tmp_path: Path, name: str
) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", Daily(times=tuple((NINE + n * 15 * MINUTE).time() for n in range(1, 9))))
        s.at(TEN + SECOND)  # four are due, nobody has planned
        done = edit(s, **NEW_SCHEDULES[name])
        assert done.new_era
        after = s.task(task.id)
        assert after.planned_until == s.clock.moment
        assert (after.definition_version, after.version) == (2, 2)
        assert versions(s, task) == [(1, us(NINE)), (2, us(s.clock.moment))]
        (run,) = s.runs()
        assert (run.due_at, run.outcome, run.reason) == (TEN, "skipped", "schedule_changed")
        assert done.ended == 1
        assert s.sql("SELECT reason, count FROM missed") == [("coalesced", 3)], "what was missed stays on record"
        assert after.next_due_at is not None
        assert after.next_due_at > s.clock.moment
        s.at(after.next_due_at)
        assert [opened.due_at for opened in s.plan()] == [after.next_due_at]
        assert s.faults() == []


@pytest.mark.parametrize(
    "change",
    [
        {"name": "two"},
        {"description": "why"},
        {"labels": {"a": "b"}},
        {"action": {"argv": ["false"]}},
        {"rules": {"max_age": "1h", "overlap": "queue", "priority": 3, "grace": "1m", "times": 100}},
        {"project": "other"},
    ],
)
def test_any_other_change_leaves_cursor_phase_era_and_waiting_runs_as_they_are(
    tmp_path: Path, change: dict[str, Any]
) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", Every(span=7 * MINUTE, anchor=NINE - SECOND))
        s.at(NINE + 7 * MINUTE)
        (waiting,) = s.plan()
        s.at(NINE + 20 * MINUTE + 30 * SECOND)
        before = s.task(task.id)
        done = edit(s, **change)
        after = s.task(task.id)
        assert (done.new_era, done.ended) == (False, 0)
        for name in ("planned_until", "next_due_at", "next_start_at", "scheduled_runs", "done"):
            assert getattr(after, name) == getattr(before, name), name
        assert after.definition.triggers == before.definition.triggers
        assert versions(s, task) == [(1, us(NINE)), (2, us(NINE))], "a version of the same era"
        assert s.run(waiting.id).state == "waiting"
        s.at(NINE + 21 * MINUTE)
        assert [run.due_at for run in s.plan()] == [NINE + 21 * MINUTE - SECOND]
        assert s.faults() == []


def test_an_edit_that_does_not_plan_first_leaves_an_occurrence_without_a_fate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with scene(tmp_path) as s:
        s.add("one", hourly())
        s.at(TEN + SECOND)
        monkeypatch.setattr(changing, "_up_to_now", lambda _session, task, _pauses, *, rest: task)
        edit(s, triggers=["daily 12:00"])
        assert [promise for promise, _ in s.faults()] == ["P6"]


def test_the_same_text_written_again_writes_nothing(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", hourly(), Daily(times=(NINE.time(),)), max_age=HOUR)
        s.at(NINE + 90 * MINUTE)
        before = s.sql("SELECT * FROM tasks"), s.sql("SELECT * FROM definitions"), s.entries()
        for change in (
            {"triggers": ["every 1h", "daily 9:00"]},
            {"triggers": [{"kind": "every", "span": "60m", "anchor": "2026-03-02T09:00:00Z"}, "Daily 09:00"]},
            {"rules": {"max_age": "60m"}, "zone": "utc", "name": "one", "enabled": True},
            {"rules": {"retries": None}},
            {},
        ):
            done = edit(s, **change)
            assert (done.changes, done.after.version) == ((), 1), change
        edits.rewrite(s.store, task.id, definition_to_json(s.task(task.id).definition), by="ann")
        assert (s.sql("SELECT * FROM tasks"), s.sql("SELECT * FROM definitions"), s.entries()) == before


def test_an_interval_written_again_without_its_anchor_keeps_its_phase_and_another_span_begins_anew(
    tmp_path: Path,
) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", Every(span=7 * MINUTE, anchor=NINE))
        s.at(NINE + 10 * MINUTE)
        edit(s, triggers=["every 7m", "daily 12:00"])
        assert s.task(task.id).next_due_at == NINE + 14 * MINUTE
        edit(s, triggers=["every 5m", "daily 12:00"])
        assert s.task(task.id).next_due_at == NINE + 15 * MINUTE
        edit(s, triggers=["every 7m from 2026-03-02T09:00:30Z"])
        assert s.task(task.id).next_due_at == NINE + 14 * MINUTE + 30 * SECOND


# What goes on and what ends


def test_a_live_run_goes_on_by_the_definition_it_was_started_with(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        won = s.held("one")
        edit(s, triggers=["daily 12:00"], action={"argv": ["other"]}, rules={"timeout": "1m"})
        run = s.run(won.run.id)
        assert (run.state, run.definition_version, run.cancel_asked_at) == ("held", 1, None)
        s.settle(won, Interrupted(why="holder_died", ended_at=s.clock.moment))
        assert s.run(won.run.id).outcome == "abandoned"
        assert s.faults() == []


def test_a_run_between_two_attempts_goes_on_by_its_own_definition_through_another_edit(
    tmp_path: Path,
) -> None:
    with scene(tmp_path) as s:
        won = s.held("one", on_interrupt="retry")
        s.settle(won, Interrupted(why="holder_died", ended_at=s.clock.moment))
        done = edit(s, action={"argv": ["other"]})
        assert done.ended == 0
        (again,) = s.claim()
        assert (again.run.id, again.run.definition_version) == (won.run.id, 1)
        assert again.definition.action["argv"] == ("true",)
        s.settle(again)
        assert s.faults() == []


def test_a_run_that_waits_between_two_attempts_ends_as_its_last_one_did_when_the_schedule_changes(
    tmp_path: Path,
) -> None:
    with scene(tmp_path) as s:
        won = s.held("one", on_interrupt="retry")
        s.settle(won, Interrupted(why="holder_died", ended_at=s.clock.moment))
        done = edit(s, triggers=["daily 12:00"])
        assert done.ended == 1
        run = s.run(won.run.id)
        assert (run.state, run.outcome, run.reason) == ("ended", "abandoned", "holder_died")
        assert s.claim() == []
        assert s.faults() == []


def test_waiting_runs_by_hand_stay_and_are_performed_by_the_new_definition(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.add("one", hourly())
        hand = by_hand(s)
        done = edit(s, triggers=["daily 12:00"], action={"argv": ["other"]})
        assert done.ended == 0
        (won,) = s.claim()
        assert (won.run.id, won.run.definition_version) == (hand.id, 2)
        assert won.definition.action["argv"] == ("other",)


def test_a_run_not_claimed_yet_is_performed_by_the_newest_definition_of_its_era(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.add("one", hourly())
        s.at(TEN)
        (run,) = s.plan()
        edit(s, action={"argv": ["other"]})
        (won,) = s.claim()
        assert (won.run.id, won.run.definition_version) == (run.id, 2)


def test_a_run_that_an_event_opened_ends_only_with_the_trigger_that_took_it(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", hourly(), On(source="deploy"))
        run = by_hand(s)
        s.sql("UPDATE runs SET opened_by = 'event', occurrence = 'event:deploy:1' WHERE id = ?", run.id)
        edit(s, triggers=["daily 12:00", "on deploy"])
        assert s.run(run.id).state == "waiting"
        edit(s, triggers=["daily 12:00", "on release"])
        assert (s.run(run.id).outcome, s.run(run.id).reason) == ("skipped", "schedule_changed")
        assert s.task(task.id).definition_version == 3


# Switches, holds, names, projects


@pytest.mark.parametrize(("off", "on"), [("pause", "unpause"), ("disable", "enable")])
def test_an_edit_while_a_task_is_off_tells_of_the_stretch_before_it_under_the_old_schedule(
    tmp_path: Path, off: str, on: str
) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", hourly())
        switch(s, off)
        s.at(NINE + 3 * HOUR)
        edit(s, triggers=["every 20m"])
        assert s.task(task.id).next_start_at is None
        s.at(NINE + 4 * HOUR)
        switch(s, on)
        reason = {"pause": "paused", "disable": "disabled"}[off]
        assert stretches(s, task) == [(reason, 3), (reason, 3)]
        assert s.task(task.id).next_start_at == NINE + 4 * HOUR + 20 * MINUTE
        assert s.faults() == []


def test_the_switch_in_an_edit_is_the_switch(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", hourly())
        s.at(TEN)
        s.plan()
        done = edit(s, enabled=False)
        assert (done.after.definition_version, done.after.version) == (1, 2), "no new version of the definition"
        assert s.runs()[0].reason == "disabled"
        s.at(NINE + 3 * HOUR)
        edit(s, enabled=True, description="on again")
        assert stretches(s, task) == [("disabled", 2)]
        assert s.task(task.id).next_due_at == NINE + 4 * HOUR
        s.at(NINE + 4 * HOUR)
        s.plan()
        edit(s, enabled=False, triggers=["daily 12:00"])
        assert s.runs()[-1].reason == "schedule_changed"
        kinds = [kind for kind in s.kinds(task.id) if kind in {"defined", "enabled", "disabled"}]
        assert kinds == ["defined", "disabled", "defined", "enabled", "defined", "disabled"]
        assert s.faults() == []


def test_a_new_name_keeps_the_history_and_frees_the_old_one(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        won = s.held("one")
        s.settle(won)
        pause(s)
        edit(s, name="Über")
        task = s.task(won.run.task)
        assert (task.definition.name, task.last_run) == ("Über", won.run.id)
        assert s.runs(task.id)[0].id == won.run.id
        assert s.add("one", hourly()).id != task.id
        with pytest.raises(Refused) as caught:
            edit(s, "one", name="ÜBER")
        assert caught.value.reason == "already_exists"
        edit(s, "über", name="ÜBER")  # its own name in other letters
        assert unpause(s, target="über") is not None, "a hold is of the task, not of its name"
        assert s.faults() == []


def test_a_task_moves_to_another_project_with_its_runs_and_under_its_holds_and_defaults(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.add("other", hourly(), project="b")
        projects.set_project(s.store, "b", folder="/srv/b", by="ann")
        task = s.add("one", hourly(), project="a", overlap="queue")
        s.at(TEN)
        first, second = sorted(s.plan(), key=lambda run: run.task != task.id)
        edit(s, "a/one", project="B")
        assert s.run(first.id).project == "b"
        moved = s.task(task.id)
        assert (moved.definition.project, moved.definition.action["cwd"]) == ("b", "/srv/b")
        s.add("one", hourly(), project="a")
        with pytest.raises(Refused, match="b/one"):
            edit(s, "a/one", project="b")
        pause(s, "project", "a")
        s.at(NINE + 3 * HOUR)
        with pytest.raises(Invalid, match="without a folder"):
            edit(s, "b/one", project="a", name="two")
        projects.set_project(s.store, "a", folder="/srv/a", by="ann")
        done = edit(s, "b/one", project="a", name="two")
        assert (done.new_era, done.ended) == (False, 2), "under the other project's hold it rests"
        assert {run.reason for run in s.runs(task.id)} == {"paused"}
        s.at(NINE + 5 * HOUR)
        edit(s, "a/two", project="b")
        assert stretches(s, task) == [("paused", 2)]
        assert s.task(task.id).next_due_at == NINE + 6 * HOUR
        assert s.faults() == []


def test_the_projects_turn_and_rank_of_a_live_run_follow_its_task_and_its_end_is_still_written(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        won = s.held("one")
        edit(s, project="b", rules={"priority": 9})
        assert (s.run(won.run.id).project, s.run(won.run.id).rank) == ("b", -9)
        s.settle(won)
        assert s.run(won.run.id).outcome == "succeeded"
        assert s.faults() == []


def test_rules_that_admission_reads_beside_the_definition_change_with_it(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", hourly())
        edit(
            s, rules={"overlap": "queue", "queue": 2, "seats": 3, "priority": 4, "limits": {"db": 1}, "needs": ["gpu"]}
        )
        assert s.sql("SELECT overlap, queue, seats, rank FROM tasks") == [("queue", 2, 3, -4)]
        assert s.sql("SELECT key, weight FROM task_limits") == [("db", 1)]
        assert s.sql("SELECT label FROM task_needs") == [("gpu",)]
        edit(s, rules=None)
        assert s.sql("SELECT overlap, queue, seats, rank FROM tasks") == [("skip", 5, 1, 0)]
        assert s.sql("SELECT * FROM task_limits") == s.sql("SELECT * FROM task_needs") == []
        assert s.task(task.id).definition.own_rules == frozenset()


# Once, times


def test_a_once_that_is_over_is_armed_again_by_a_new_future_time_only(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", Once(at=TEN))
        s.at(TEN)
        s.plan()
        s.settle(s.claim()[0])
        by_hand(s)
        s.settle(s.claim()[0])
        assert s.task(task.id).done
        for change in (
            {"description": "x"},
            {"rules": {"max_age": "1h"}},
            {"triggers": ["once 2026-03-02T10:00:00Z"]},
            {"zone": "Europe/Berlin"},
            {"name": "one"},
        ):
            edit(s, **change)
            assert (s.task(task.id).done, s.task(task.id).next_start_at) == (True, None), change
        with pytest.raises(Invalid, match="past") as caught:
            edit(s, triggers=["once 2026-03-02T09:59:59Z"])
        assert caught.value.field == "triggers[0]"
        s.at(TEN + DAY)
        assert s.plan() == []
        edit(s, triggers=["once 2026-03-04T10:00:00Z"])
        assert (s.task(task.id).done, s.task(task.id).next_due_at) == (False, NINE + 2 * DAY + HOUR)
        s.at(NINE + 2 * DAY + HOUR)
        assert len(s.plan()) == 1
        assert s.faults() == []


def test_a_zone_in_which_a_local_time_is_past_is_refused(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        local = (NINE + 2 * HOUR).replace(tzinfo=None)
        s.add("one", Once(local=local))
        with pytest.raises(Invalid, match="past"):
            edit(s, zone="Asia/Tokyo")


def test_more_times_bring_a_task_that_is_done_back_and_owe_nothing_of_the_time_between(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", hourly(), times=2)
        for _ in range(2):
            s.at(s.clock.moment + HOUR)
            s.plan()
            s.settle(s.claim()[0])
        assert s.task(task.id).done
        s.at(NINE + 5 * HOUR + MINUTE)
        assert s.plan() == []
        done = edit(s, rules={"times": 3})
        assert (done.new_era, done.after.done) == (True, False)
        assert s.task(task.id).next_due_at == NINE + 6 * HOUR
        s.at(NINE + 6 * HOUR)
        assert len(s.plan()) == 1
        assert s.task(task.id).done
        assert s.task(task.id).scheduled_runs == 3
        assert s.faults() == []


def test_fewer_times_than_were_run_end_a_task_now_and_leave_what_waits(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", hourly(), overlap="queue")
        s.at(TEN)
        (run,) = s.plan()
        edit(s, rules={"times": 1})
        assert (s.task(task.id).done, s.task(task.id).next_start_at) == (True, None)
        assert s.run(run.id).state == "waiting"
        edit(s, rules={"times": None})
        assert s.task(task.id).next_due_at == NINE + 2 * HOUR
        assert s.faults() == []
