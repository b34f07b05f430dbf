"""Names, whole definitions, and broken ones."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from store_people import by_hand, pause, unpause
from store_scene import (
    DAY,
    HOUR,
    NINE,
    Scene,
    definition,
    hourly,
    minutely,
    scene,
)

from duly.core import planning
from duly.core.names import key_of
from duly.core.skips import Range
from duly.core.task import Task
from duly.core.triggers import Daily, Once
from duly.errors import Invalid, Refused, StoreAway
from duly.holder.planner import Planner
from duly.operations import tasks as task_operations
from duly.store import plans


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
        with pytest.raises(StoreAway, match=r"UNIQUE|unique"), s.connect().write() as session:
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

        def failing(task: Task, zone: ZoneInfo, now: datetime, skipped: Sequence[Range] = ()) -> planning.Plan:
            if task.id == bad.id:
                raise ZeroDivisionError("a fault of ours")
            return planning.plan(task, zone, now, skipped)

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
