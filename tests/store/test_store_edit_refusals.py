"""Edits that are refused, and edits of what no longer reads: whole or not at all, and on record."""

from pathlib import Path
from typing import Any

import pytest
from store_edits import TEN, edit, us, versions
from store_people import stretches, switch
from store_scene import DAY, HOUR, MINUTE, NINE, definition, hourly, minutely, scene, without

from duly.core.definition_json import definition_to_json
from duly.core.task import Definition
from duly.core.triggers import Daily
from duly.errors import Invalid, Refused
from duly.operations import edits
from duly.operations import runs as run_operations
from duly.operations import tasks as task_operations
from duly.store import rewriting

# Refusals


def test_a_stale_editor_is_refused_and_told_who_was_faster(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", hourly())
        edit(s, description="bob's", by="bob")
        s.at(NINE + MINUTE)
        before = s.sql("SELECT * FROM tasks"), s.entries()
        with pytest.raises(Refused) as caught:
            edit(s, description="ann's", if_version=1)
        assert caught.value.reason == "version_conflict"
        assert caught.value.details == {
            "task": task.id,
            "asked": 1,
            "version": 2,
            "by": "bob",
            "at": "2026-03-02T09:00:00Z",
            "kind": "defined",
        }
        assert (s.sql("SELECT * FROM tasks"), s.entries()) == before
        edit(s, description="ann's", if_version=2)
        switch(s, "pause")
        s.at(NINE)  # a clock that was set back
        with pytest.raises(Refused, match="paused by ann"):
            edit(s, description="again", if_version=3)


def test_without_the_version_in_its_statement_a_stale_writer_would_win(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", hourly())
        stale = s.task(task.id)
        edit(s, description="bob's")
        with s.store.write() as session:
            assert not rewriting.rewrite(session.line, stale, stale)
        with without(rewriting.SET_DEFINITION, "tasks.version = ?", "? IS NOT NULL"), s.store.write() as session:
            assert rewriting.rewrite(session.line, stale, stale)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"hue": 3}, "hue"),
        ({"rules": {"hue": 3}}, "rules.hue"),
        ({"rules": 5}, "rules"),
        ({"name": None}, "name"),
        ({"name": "a/b"}, "name"),
        ({"name": "nul\0"}, "name"),
        ({"description": "nul\0"}, "description"),
        ({"description": "x" * 10_000_000}, "description"),
        ({"triggers": []}, None),
        ({"triggers": None}, None),
        ({"triggers": "daily 09:00"}, "triggers"),
        ({"triggers": ["daily 25:00"]}, "triggers[0]"),
        ({"triggers": ["daily 09:00", "once 2020-01-01 09:00"]}, "triggers[1]"),
        ({"triggers": ["0 0 31 2 *"]}, "triggers[0]"),
        ({"zone": "Mars/Olympus"}, "zone"),
        ({"action": None}, "action"),
        ({"action": {"shell": "true"}}, "action.shell"),
        ({"action": {"argv": ["nul\0"]}}, "action.argv[0]"),
        ({"enabled": "no"}, "enabled"),
        ({"rules": {"until": "2026-03-01T00:00:00Z"}}, "rules.until"),
        ({"rules": {"start": "2026-03-03T00:00:00Z", "until": "2026-03-03T00:00:00Z"}}, "rules.until"),
        ({"rules": {"gap": "skip"}}, "rules.gap"),
        ({"rules": {"at_most": 3}}, "rules.at_most"),
        ({"rules": {"limits": {"db": 2}}}, "rules.limits.db"),
        ({"rules": {"idle_timeout": "24h"}}, "rules.idle_timeout"),
    ],
)
def test_an_edit_is_written_whole_or_refused_whole_with_the_field(
    tmp_path: Path, change: dict[str, Any], field: str | None
) -> None:
    with scene(tmp_path) as s:
        s.add("one", hourly(), max_age=HOUR)
        s.at(TEN)
        s.plan()
        before = s.sql("SELECT * FROM tasks"), s.sql("SELECT * FROM definitions"), s.entries(), s.runs()
        if field is None:
            edit(s, **change, dry_run=True)
        else:
            with pytest.raises(Invalid) as caught:
                edit(s, **{"labels": {"not": "kept"}, **change})
            assert caught.value.field == field
        assert (s.sql("SELECT * FROM tasks"), s.sql("SELECT * FROM definitions"), s.entries(), s.runs()) == before


def test_editing_what_was_removed_is_refused_naming_it(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", hourly())
        task_operations.remove(s.store, "one", by="ann")
        with pytest.raises(Refused, match="was removed") as caught:
            edit(s, task.id, description="x")
        assert caught.value.reason == "unknown_task"
        with pytest.raises(Refused):
            edit(s, "one", description="x")


def test_a_dry_run_of_an_edit_judges_it_and_keeps_nothing(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", hourly())
        s.at(TEN)
        s.plan()
        before = s.sql("SELECT * FROM tasks"), s.sql("SELECT * FROM definitions"), s.entries(), s.runs()
        done = edit(s, triggers=["daily 12:00"], dry_run=True)
        assert (done.new_era, done.ended, done.after.next_due_at) == (True, 1, NINE + 3 * HOUR)
        assert (s.sql("SELECT * FROM tasks"), s.sql("SELECT * FROM definitions"), s.entries(), s.runs()) == before
        assert s.task(task.id).version == 1


# What is broken, and clocks


def test_an_edit_mends_a_definition_that_no_longer_reads_and_owes_nothing_of_before(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", hourly(), max_age=HOUR)
        s.sql('UPDATE tasks SET definition = replace(definition, \'"max_age":"1h"\', \'"max_age":"1 hour"\')')
        s.at(NINE + 3 * HOUR)
        s.plan()
        assert s.task(task.id).broken is not None
        with pytest.raises(Invalid) as caught:
            edit(s, description="not what is wrong")
        assert caught.value.field == "rules.max_age"
        done = edit(s, rules={"max_age": "2h"})
        after = s.task(task.id)
        assert (after.broken, done.new_era) == (None, True)
        assert after.definition.triggers == (hourly(),), "the triggers were not read again"
        assert after.next_due_at == NINE + 4 * HOUR
        assert stretches(s, task) == [("schedule_changed", 3)]
        s.at(NINE + 4 * HOUR)
        assert len(s.plan()) == 1
        assert s.faults() == []


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"name": "one"}'])
def test_a_definition_of_which_nothing_is_left_is_written_anew_whole(tmp_path: Path, damage: str) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", hourly())
        s.sql("UPDATE tasks SET definition = ?", damage)
        with pytest.raises(Invalid):
            edit(s, description="x")
        whole = definition_to_json(definition("one", minutely()))
        edits.rewrite(s.store, task.id, whole, by="ann")
        assert s.task(task.id).broken is None
        assert s.task(task.id).next_due_at == NINE + MINUTE


def test_a_zone_that_went_away_is_mended_by_another(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", Daily(times=(TEN.time(),)))
        s.sql("UPDATE tasks SET definition = replace(definition, '\"UTC\"', '\"Mars/Olympus\"')")
        s.at(TEN)
        s.plan()
        assert s.task(task.id).broken is not None
        edit(s, zone="Europe/Berlin")
        assert s.task(task.id).broken is None
        assert s.task(task.id).next_due_at == TEN - HOUR + DAY


def test_an_edit_of_a_task_that_other_zone_data_planned_takes_it_over_first(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", Daily(times=(TEN.time(),)))
        edit(s, zone="Europe/Berlin")
        s.sql("UPDATE tasks SET zone_data = '2000a'")
        s.sql("UPDATE definitions SET zone_data = '2000a'")
        done = edit(s, triggers=["daily 12:00"])
        assert done.after.definition_version == 4, "3 is the same definition by these data"
        assert [number for number, _ in versions(s, task)] == [1, 2, 3, 4]
        assert s.faults() == []


def test_an_edit_with_a_clock_stepped_back_moves_no_cursor_back(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", hourly())
        s.at(NINE + 5 * HOUR)
        s.plan()
        s.at(NINE + 2 * HOUR)
        edit(s, triggers=["every 20m from 2026-03-02T09:00:00Z"])
        after = s.task(task.id)
        assert after.planned_until == NINE + 5 * HOUR
        assert after.next_due_at == NINE + 5 * HOUR + 20 * MINUTE
        assert versions(s, task)[-1] == (2, us(NINE + 5 * HOUR))
        assert s.faults() == []


def test_who_made_and_who_changed_what_is_on_record(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", hourly())
        edit(s, name="two", triggers=["daily 12:00"], rules={"max_age": "1h"}, by="bob in run_1")
        assert s.task(task.id).created_by == "ann"
        made, changed = [one for one in s.entries(task.id) if one.kind == "defined"]
        assert (made.by, changed.by) == ("ann", "bob in run_1")
        assert changed.details == {
            "version": 2,
            "changed": ["name", "triggers", "rules.max_age"],
            "era_from": "2026-03-02T09:00:00Z",
            "was_name": "one",
        }


def test_ended_runs_and_runs_asked_for_keep_their_definitions_by_version(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", hourly())
        wanted = []
        for number in range(1, 6):
            edit(s, action={"argv": [str(number)]}, triggers=[f"daily {12 + number // 3}:00"])
            run = run_operations.run_now(s.store, "one", by="ann")
            (won,) = s.claim()
            assert won.run.id == run.id
            s.settle(won)
            wanted.append((run.id, number + 1, (str(number),)))
        for id_, version, argv in wanted:
            assert s.run(id_).definition_version == version
            with s.store.read() as session:
                read = session.versions.read(task.id, version)
            assert isinstance(read, Definition)
            assert read.action["argv"] == argv
        assert s.faults() == []
