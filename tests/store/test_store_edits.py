"""Pauses, switches, removals, names and broken definitions, as they stand in the store."""

import json
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from store_scene import (
    DAY,
    HOUR,
    MINUTE,
    NINE,
    SECOND,
    TICK,
    Scene,
    definition,
    hourly,
    minutely,
    scene,
    without,
)

from duly.core import planning
from duly.core.run import Run
from duly.core.task import Task
from duly.core.triggers import Daily, Once
from duly.errors import Invalid, Refused, StoreAway
from duly.holder.planner import Planner, soonest
from duly.holder.settling import Interrupted, Returned
from duly.operations import runs as run_operations
from duly.operations import tasks as task_operations
from duly.store import plans, switches, tasks
from duly.core.names import key_of


def pause(s: Scene, scope: str = "task", target: str = "one", until: timedelta | None = None) -> None:
    end = None if until is None else s.clock.now() + until
    task_operations.pause(s.store, scope, target, until=end, note="away", by="ann")


def unpause(s: Scene, scope: str = "task", target: str = "one") -> None:
    task_operations.unpause(s.store, scope, target, by="ann")


def switch(s: Scene, verb: str, name: str = "one") -> None:
    match verb:
        case "pause":
            pause(s, target=name)
        case "disable":
            task_operations.disable(s.store, name, by="ann")
        case "remove":
            task_operations.remove(s.store, name, by="ann")
        case "unpause":
            unpause(s, target=name)
        case "enable":
            task_operations.enable(s.store, name, by="ann")


def by_hand(s: Scene, name: str = "one", **told: object) -> Run:
    return run_operations.run_now(s.store, name, by="ann", **told)  # type: ignore[arg-type]


def stretches(s: Scene, task: Task) -> list[tuple[str | None, int | None]]:
    return [(one.reason, one.count) for one in s.entries(task.id) if one.kind == "stretch"]


REASONS = {"pause": "paused", "disable": "disabled", "remove": "task_removed"}


# Edits plan first


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


# Pauses


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
            assert soonest(session) == NINE + 10 * MINUTE + 30 * SECOND
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
            with pytest.raises(Invalid):
                unpause(s)
            s.plan()
        else:
            switch(s, verb)
        assert stretches(s, task) == [("paused", 10)]
        assert s.sql("SELECT reason, count FROM missed") == [("missed_skip", 20)]
        assert s.faults() == []


def test_a_pause_with_an_end_in_the_past_or_of_nothing_is_refused_and_writes_nothing(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.add("one", hourly())
        before = s.entries()
        for end in (timedelta(0), -HOUR):
            with pytest.raises(Invalid):
                pause(s, until=end)
        for scope, target in (("task", "one"), ("store", "")):
            with pytest.raises(Invalid):
                unpause(s, scope, target)
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


# By hand


def test_a_run_by_hand_neither_eats_nor_doubles_the_occurrence_of_the_same_instant(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", hourly(), overlap="queue")
        s.at(NINE + HOUR)
        hand = by_hand(s)
        assert s.task(task.id).planned_until == NINE
        assert [run.occurrence for run in s.plan()] == ["at:2026-03-02T10:00:00Z"]
        assert hand.occurrence.startswith("manual:")
        (first,) = s.claim()
        assert first.run.id == hand.id, "by hand goes first"
        s.settle(first)
        (second,) = s.claim()
        s.settle(second)
        assert [run.outcome for run in s.runs()] == ["succeeded", "succeeded"]
        s.at(NINE + 2 * HOUR)
        assert len(s.plan()) == 1, "the next is not moved"
        assert s.faults() == []


def test_a_run_by_hand_does_not_use_up_a_once(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", Once(at=NINE + HOUR))
        by_hand(s)
        s.settle(s.claim()[0])
        assert not s.task(task.id).done
        s.at(NINE + HOUR)
        assert len(s.plan()) == 1
        assert s.task(task.id).done


def test_a_run_by_hand_does_not_cancel_a_pending_retry(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        won = s.held("one", on_interrupt="retry")
        s.settle(won, Interrupted(why="holder_died", ended_at=s.clock.now()))
        assert s.run(won.run.id).state == "waiting"
        hand = by_hand(s)
        (claimed,) = s.claim(holder="hld_b")
        assert claimed.run.id == hand.id
        s.claim(holder="hld_b")  # a turn in which the seat is taken
        assert s.run(won.run.id).state == "waiting", "the retry waits for its seat"
        s.settle(claimed, holder="hld_b")
        (again,) = s.claim(holder="hld_b")
        assert (again.run.id, again.run.attempt) == (won.run.id, 2)


def test_the_same_key_answers_with_the_first_run_and_with_another_input_is_refused(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.add("one", hourly())
        s.add("two", hourly())
        first = by_hand(s, key="k", input_="a")
        other = s.connect()
        again = run_operations.run_now(other, "one", by="bob", key="k", input_="a")
        assert again == first
        with pytest.raises(Refused) as caught:
            by_hand(s, key="k", input_="b")
        assert caught.value.reason == "key_reused"
        with pytest.raises(Refused):
            by_hand(s, key="k")
        assert len(s.runs()) == 1
        s.settle(s.claim()[0])
        assert by_hand(s, key="k", input_="a").id == first.id, "after its end too"
        assert by_hand(s, "two", key="k", input_="b").id != first.id, "a key is of one task"
        assert by_hand(s).id != by_hand(s, queue=True).id, "without a key each ask is new"


def test_a_run_by_hand_is_refused_with_the_holders_name_or_waits_where_asked(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        won = s.held("one")
        before = (s.entries(), s.runs())
        with pytest.raises(Refused, match="hld_a") as caught:
            by_hand(s)
        assert caught.value.reason == "already_running"
        assert caught.value.details["run"] == won.run.id
        assert (s.entries(), s.runs()) == before
        hand = by_hand(s, queue=True)
        s.claim()
        assert s.run(hand.id).state == "waiting", "what a person asked for is never skipped for its seat"


def test_a_cancelled_waiting_run_ends_even_if_the_wish_is_older_than_its_waiting(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        won = s.held("one")
        run_operations.cancel(s.store, won.run.id, by="ann")
        s.settle(won, Returned(why="it had not begun"))
        assert s.claim() == [], "a cancelled run is not started again"
        run = s.run(won.run.id)
        assert (run.state, run.outcome) == ("ended", "cancelled")
        assert s.faults() == []


# Names and whole definitions


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Report", "rEPORT"),
        ("Straße", "STRASSE"),
        ("caf\u00e9", "cafe\u0301"),
        ("ΣΊΣΥΦΟΣ", "σίσυφος"),
        ("\u212bngstr\u00f6m", "A\u030angstro\u0308m"),
        ("🦊 朝", "🦊 朝"),
    ],
)
def test_names_are_compared_ignoring_case_and_spelling_and_taken_once_in_a_project(
    tmp_path: Path, first: str, second: str
) -> None:
    with scene(tmp_path) as s:
        task = s.add(first, hourly())
        before = s.sql("SELECT * FROM tasks"), s.entries()
        with pytest.raises(Refused) as caught:
            s.add(second, minutely())
        assert caught.value.reason == "already_exists"
        assert (s.sql("SELECT * FROM tasks"), s.entries()) == before
        assert s.add(second, hourly(), project="other").id != task.id
        with s.store.read() as session:
            found = session.tasks.by_name(key_of("default"), key_of(second))
        assert found is not None
        assert found.id == task.id


def test_two_writers_that_both_saw_a_name_free_cannot_both_take_it(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", hourly())
        double = replace(task, id="tsk_double")
        with pytest.raises(StoreAway, match="UNIQUE"), s.connect().write() as session:
            session.tasks.insert(double)
        s.sql("DROP INDEX tasks_name")
        with s.connect().write() as session:
            session.tasks.insert(double)
        assert s.sql("SELECT count(*) FROM tasks") == [(2,)], "the index is what holds it"


def test_a_task_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        before = [s.sql(f"SELECT * FROM {table}") for table in ("tasks", "definitions", "projects", "ledger")]
        for bad in (
            definition("past", Once(at=NINE - HOUR), project="new"),
            definition("past and coming", Once(at=NINE - HOUR), hourly(), project="new"),
        ):
            with pytest.raises(Invalid):
                task_operations.add(s.store, bad, by="ann", source={})
        made = definition("dry", hourly(), project="new")
        task_operations.add(s.store, made, by="ann", source={}, dry_run=True)
        assert [s.sql(f"SELECT * FROM {table}") for table in ("tasks", "definitions", "projects", "ledger")] == before


# Broken definitions

DAMAGE = [
    "",
    "null",
    "[]",
    '"one"',
    "17",
    "{",
    "NaN",
    "[" * 100_000,
    '{"name": "one"}',
    '{"name": ["one"], "action": {"kind": "command", "argv": ["true"]}}',
    '{"name": "one", "action": {"kind": "rocket"}}',
    '{"name": "one", "action": {"kind": ["command"], "argv": ["true"]}}',
    '{"name": "one", "action": {"kind": "command", "argv": "true"}}',
    '{"name": "one", "action": {"kind": "command", "argv": [1]}}',
    '{"name": "one", "zone": "Mars/Olympus", "action": {"kind": "command", "argv": ["true"]}}',
    '{"name": "one", "zone": 7, "action": {"kind": "command", "argv": ["true"]}}',
    '{"name": "one", "rules": {"grace": "soon"}, "action": {"kind": "command", "argv": ["true"]}}',
    '{"name": "one", "rules": {"max_age": 1e999}, "action": {"kind": "command", "argv": ["true"]}}',
    '{"name": "one", "rules": [], "action": {"kind": "command", "argv": ["true"]}}',
    '{"name": "one", "hue": 3, "action": {"kind": "command", "argv": ["true"]}}',
    *(
        json.dumps({"name": "one", "triggers": [trigger], "action": {"kind": "command", "argv": ["true"]}})
        for trigger in (
            "daily 09:00",
            {},
            {"kind": "cron"},
            {"kind": "cron", "expression": 5},
            {"kind": "cron", "expression": "not a line"},
            {"kind": "cron", "expression": "99 * * * *"},
            {"kind": "daily", "times": ["25:00"]},
            {"kind": "daily", "times": 9},
            {"kind": "daily", "times": []},
            {"kind": "weekly", "weekdays": [{}], "times": ["09:00"]},
            {"kind": "weekly", "weekdays": [9], "times": ["09:00"]},
            {"kind": "once", "at": "0001-01-01T00:00:00+14:00"},
            {"kind": "once", "at": "9999-12-31T23:59:59-14:00"},
            {"kind": "once", "at": "2026-13-01T00:00:00Z"},
            {"kind": "once", "at": 12},
            {"kind": "once"},
            {"kind": "every", "span": "0s", "anchor": "2026-01-01T00:00:00Z"},
            {"kind": "every", "span": "99999999999999999999d", "anchor": "2026-01-01T00:00:00Z"},
            {"kind": "every", "span": 60, "anchor": "2026-01-01T00:00:00Z"},
            {"kind": "every", "span": "1m", "anchor": None},
            {"kind": ["every"]},
        )
    ),
]


def test_definitions_damaged_by_hand_are_kept_and_shown_and_block_no_other(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        damaged = {}
        for number, kind in enumerate(DAMAGE):
            task = s.add(f"bad {number}", hourly())
            text = kind.replace('"one"', f'"bad {number}"')
            s.sql("UPDATE tasks SET definition = ? WHERE id = ?", text, task.id)
            damaged[task.id] = (number, text)
        whole = s.add("whole", hourly())
        for turn in range(1, 4):
            s.at(NINE + turn * HOUR)
            assert [run.task for run in s.plan()] == [whole.id], "the whole one is planned at every turn"
            s.settle(s.claim()[0])
        for id_, (number, text) in damaged.items():
            found = s.task(id_)
            assert found.broken is not None, text[:80]
            assert found.broken.field
            assert found.broken.message
            assert found.definition.name == f"bad {number}"
            assert found.definition.enabled, "the author's switch stays the author's"
            assert s.sql("SELECT definition FROM tasks WHERE id = ?", id_) == [(text,)], "nothing is erased"
            with s.store.read() as session:
                assert session.tasks.by_name("default", f"bad {number}") == found
            with pytest.raises(Refused):
                by_hand(s, f"bad {number}")
        with s.store.read() as session:
            assert len(session.tasks.page()) == len(DAMAGE) + 1
        assert len(s.runs()) == 3


@pytest.mark.parametrize("damage", ["", "{", "[]", "7"])
def test_a_source_damaged_by_hand_blocks_no_other_task(tmp_path: Path, damage: str) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", hourly())
        s.add("two", hourly())
        s.sql("UPDATE tasks SET source = ? WHERE id = ?", damage, task.id)
        s.at(NINE + HOUR)
        assert len(s.plan()) >= 1
        with s.store.read() as session:
            assert len(session.tasks.page()) == 2


def mended(s: Scene, task: Task, text: str) -> None:
    s.sql("UPDATE tasks SET definition = ? WHERE id = ?", text, task.id)


def take_back(s: Scene) -> None:
    """What a holder does at its start."""
    with s.connect().write() as session:
        Planner("hld_b").take_back(session)


@pytest.mark.parametrize("starts_between", [0, 1, 2])
def test_a_broken_task_comes_back_when_it_is_mended_however_often_holders_start_meanwhile(
    tmp_path: Path, starts_between: int
) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", hourly())
        ((whole,),) = s.sql("SELECT definition FROM tasks")
        s.sql("UPDATE tasks SET definition = '{'")
        s.at(NINE + HOUR)
        s.plan()
        for _ in range(starts_between):
            take_back(s)
        assert s.task(task.id).broken is not None
        mended(s, task, whole)
        take_back(s)
        after = s.task(task.id)
        assert after.broken is None
        assert after.next_start_at is not None, "it is armed again"
        s.at(NINE + 2 * HOUR)
        assert [run.due_at for run in s.plan()] == [NINE + 2 * HOUR]
        assert s.faults() == []


def test_a_task_broken_while_paused_and_mended_after_is_armed_again(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", hourly())
        ((whole,),) = s.sql("SELECT definition FROM tasks")
        pause(s)
        s.sql("UPDATE tasks SET definition = '{'")
        unpause(s)
        assert s.task(task.id).next_start_at is None
        take_back(s)
        mended(s, task, whole)
        take_back(s)
        s.at(NINE + HOUR)
        assert len(s.plan()) == 1


def broken_zone(s: Scene, task: Task) -> None:
    s.sql("UPDATE tasks SET definition = replace(definition, '\"UTC\"', '\"Mars/Olympus\"') WHERE id = ?", task.id)


def test_a_zone_that_an_upgrade_took_away_keeps_no_holder_from_starting(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", hourly())
        s.add("two", hourly())
        broken_zone(s, task)
        s.at(NINE + HOUR)
        assert len(s.plan()) == 1
        assert s.task(task.id).broken is not None
        take_back(s)
        assert s.task(task.id).broken is not None, "it is still shown"
        s.at(NINE + 2 * HOUR)
        s.claim()
        assert len(s.plan()) == 1


@pytest.mark.parametrize("how", ["ends by itself", "by hand"])
def test_a_zone_that_went_away_under_a_pause_keeps_no_pause_from_ending(tmp_path: Path, how: str) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", hourly())
        s.add("two", hourly())
        pause(s, "store", "", until=2 * HOUR)
        broken_zone(s, task)
        if how == "by hand":
            s.at(NINE + HOUR)
            unpause(s, "store", "")
        s.at(NINE + 3 * HOUR)
        assert len(s.plan()) == 1
        assert s.task(task.id).broken is not None
        assert s.sql("SELECT count(*) FROM pauses") == [(0,)]


def test_a_trigger_that_fails_in_planning_puts_its_own_task_aside_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with scene(tmp_path) as s:
        bad = s.add("one", hourly())
        s.add("two", minutely())
        s.at(NINE + HOUR)

        def failing(task: Task, zone: ZoneInfo, now: datetime) -> planning.Plan:
            if task.id == bad.id:
                raise ZeroDivisionError("a fault of ours")
            return planning.plan(task, zone, now)

        with monkeypatch.context() as patched:
            patched.setattr(plans, "plan", failing)
            assert len(s.plan()) == 1
        trouble = s.task(bad.id).broken
        assert trouble is not None
        assert "ZeroDivisionError" in trouble.message
        assert s.task(bad.id).planned_until == NINE, "its cursor stays: nothing is lost"
        take_back(s)
        s.plan()
        assert s.task(bad.id).broken is None
        assert s.faults() == []


def test_a_damaged_version_of_a_definition_keeps_its_run_waiting_and_verify_going(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", Daily(times=(NINE.time(),)))
        s.sql("UPDATE definitions SET definition = '{'")
        s.at(NINE + DAY)
        s.plan()
        assert len(s.claim()) == 1, "the definition in force is whole"
        assert s.task(task.id).broken is None
        assert isinstance(s.faults(), list)


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
