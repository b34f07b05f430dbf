"""Defaults of the store and of projects, and the projects' folders: what tasks have because nobody said otherwise."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from store_people import by_hand
from store_scene import HOUR, MINUTE, NINE, Scene, definition, hourly, minutely, scene

from duly.core.definition_json import definition_to_json
from duly.core.task import Task
from duly.errors import Invalid, Refused
from duly.operations import defaults, projects
from duly.operations import tasks as task_operations
from duly.store import Store


def set_(s: Scene, project: str | None = None, **rules: object) -> defaults.Defaulted:
    return defaults.set_defaults(s.store, rules, project=project, by="ann")


def of(s: Scene, task: Task, *names: str) -> dict[str, object]:
    rules = s.task(task.id).definition.rules
    return {name: getattr(rules, name) for name in names}


def test_a_rule_of_its_own_goes_before_the_projects_default_and_that_before_the_stores(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        own = s.add("own", hourly(), project="a", max_age=HOUR)
        ours = s.add("ours", hourly(), project="a")
        other = s.add("other", hourly(), project="b")
        set_(s, max_age="12h", retries=2)
        set_(s, "A", max_age="2h")
        assert of(s, own, "max_age", "retries") == {"max_age": HOUR, "retries": 2}
        assert of(s, ours, "max_age", "retries") == {"max_age": 2 * HOUR, "retries": 2}
        assert of(s, other, "max_age", "retries") == {"max_age": 12 * HOUR, "retries": 2}
        assert s.task(own.id).definition.inherited == {"retries": "store"}
        assert s.task(ours.id).definition.inherited == {"retries": "store", "max_age": "project"}
        listed = [(one.rule, one.value, one.project, one.tasks) for one in _listed(s)]
        assert listed == [("max_age", "12h", None, 1), ("retries", 2, None, 3), ("max_age", "2h", "a", 1)]


def _listed(s: Scene) -> list[defaults.Default]:
    with s.store.read() as session:
        return defaults.listed(session)


def test_defaults_are_never_written_into_a_definition(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        before = s.add("before", hourly())
        set_(s, max_age="12h", overlap="queue", priority=5)
        projects.set_project(s.store, "default", folder="/tmp", by="ann")
        after = s.add("after", hourly())
        for task in (before, after):
            texts = s.sql("SELECT definition FROM definitions WHERE task = ?", task.id)
            texts += s.sql("SELECT definition FROM tasks WHERE id = ?", task.id)
            assert not any(word in text for (text,) in texts for word in ("max_age", "overlap", "priority", "cwd"))
            held = s.task(task.id).definition
            assert held.action["cwd"] == "/tmp"
            assert set(held.inherited) == {"max_age", "overlap", "priority", "cwd"}
            assert "cwd" not in definition_to_json(held)["action"]  # type: ignore[operator]
            with s.store.read() as session:
                assert session.versions.read(task.id, 1) == held, "a version is performed with them too"


def test_a_default_is_in_force_for_admission_and_waiting_runs_when_it_is_set(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        won = s.held("one")
        s.at(s.clock.moment + HOUR)
        (waiting,) = s.plan()
        set_(s, overlap="queue", queue=3, priority=7, seats=1)
        row = s.sql("SELECT overlap, queue, seats, rank FROM tasks WHERE id = ?", won.run.task)
        assert row == [("queue", 3, 1, -7)]
        assert s.run(waiting.id).rank == -7
        assert s.claim() == []
        assert s.run(waiting.id).state == "waiting", "it is queued, no longer skipped"
        s.settle(won)
        (second,) = s.claim()
        assert second.run.id == waiting.id
        defaults.remove_defaults(s.store, ["overlap", "queue", "priority"], project=None, by="ann")
        assert s.sql("SELECT overlap, queue, seats, rank FROM tasks") == [("skip", 5, 1, 0)]
        s.at(s.clock.moment + HOUR)
        s.plan()
        s.claim()
        assert s.runs()[-1].reason == "already_running"
        s.settle(second)
        assert s.faults() == []


def test_a_live_run_keeps_its_place_through_a_change_of_priority_and_can_be_settled(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        won = s.held("one")
        set_(s, priority=3)
        assert s.run(won.run.id).rank == -3
        s.settle(won)
        assert s.run(won.run.id).outcome == "succeeded"
        hand = by_hand(s)
        rank = hand.rank
        set_(s, priority=9)
        assert s.run(hand.id).rank == rank, "what a person asked for stays in front"
        assert s.faults() == []


def test_a_default_judges_what_is_found_late(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", hourly())
        set_(s, "default", on_missed="skip")
        s.at(NINE + 3 * HOUR + 5 * MINUTE)
        assert s.plan() == []
        assert s.sql("SELECT reason, count FROM missed WHERE task = ?", task.id) == [("missed_skip", 3)]


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"gap": "skip"}, "rules.gap"),
        ({"until": "2027-01-01T00:00:00Z"}, "rules.until"),
        ({"limits": {"db": 1}}, "rules.limits"),
        ({"gate": "true"}, "rules.gate"),
        ({"hue": 3}, "rules.hue"),
        ({"max_age": "6"}, "rules.max_age"),
        ({"retries": True}, "rules.retries"),
        ({"overlap": "que"}, "rules.overlap"),
        ({"retry_after": "3h"}, "rules.retry_after"),
        ({"idle_timeout": "5m", "timeout": "5m"}, "rules.idle_timeout"),
    ],
)
def test_a_default_that_means_one_task_does_not_read_or_contradicts_another_is_refused_whole(
    tmp_path: Path, given: dict[str, Any], field: str
) -> None:
    with scene(tmp_path) as s:
        s.add("one", hourly())
        before = s.sql("SELECT * FROM defaults"), s.entries()
        with pytest.raises(Invalid) as caught:
            set_(s, **given, spread="5m")
        assert caught.value.field == field
        assert (s.sql("SELECT * FROM defaults"), s.entries()) == before


def test_a_default_that_makes_an_older_task_contradictory_leaves_it_running(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", minutely(), idle_timeout=10 * MINUTE, retry_after=MINUTE, retries=1)
        set_(s, timeout="5m", retry_up_to="30s", retry_after="30s")
        held = s.task(task.id)
        assert held.broken is None
        s.at(NINE + MINUTE)
        assert len(s.plan()) == 1
        assert len(s.claim()) == 1


def test_setting_what_is_set_and_removing_what_is_not_change_nothing(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        set_(s, max_age="12h")
        before = s.sql("SELECT * FROM defaults"), s.entries()
        assert set_(s, max_age="720m").tasks == 0
        for names in (["retries"], ["max_age", "hue"], ["gap"]):
            with pytest.raises(Invalid):
                defaults.remove_defaults(s.store, names, project=None, by="ann")
        with pytest.raises(Refused) as caught:
            set_(s, "nobody", max_age="1h")
        assert caught.value.reason == "unknown_id"
        assert (s.sql("SELECT * FROM defaults"), s.entries()) == before


def test_who_changed_a_default_and_how_is_in_the_ledger(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        set_(s, max_age="12h", retries=1)
        (entry,) = s.entries()
        assert (entry.kind, entry.by, entry.task) == ("defined", "ann", None)
        assert entry.details == {
            "defaults": "store",
            "rules": {"max_age": "12h", "retries": 1},
            "changed": ["max_age", "retries"],
        }


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"hue": 1}', '{"max_age": 6}', '{"gap": "skip"}'])
def test_defaults_damaged_by_hand_are_no_defaults_and_block_nobody(tmp_path: Path, damage: str) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", minutely())
        s.sql("INSERT INTO defaults VALUES ('', ?)", damage)
        assert s.task(task.id).definition.inherited == {}
        s.at(NINE + MINUTE)
        assert len(s.plan()) == 1
        assert len(s.claim()) == 1
        set_(s, retries=1)
        assert of(s, task, "retries") == {"retries": 1}


def test_what_one_process_sets_another_that_has_the_store_open_reads_at_its_next_look(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", hourly())
        other: Store = s.connect()
        with other.read() as session:
            assert _max_age(session.tasks.by_id(task.id)) == 6 * HOUR
        set_(s, max_age="1h")
        with other.read() as session:
            assert _max_age(session.tasks.by_id(task.id)) == HOUR


def _max_age(task: Task | None) -> timedelta:
    assert task is not None
    return task.definition.rules.max_age


def test_a_task_without_a_folder_of_its_own_works_in_its_projects_wherever_that_lies(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        projects.set_project(s.store, "Reports", folder="/srv/a", by="ann")
        task = s.add("one", hourly(), project="reports")
        assert s.task(task.id).definition.project == "Reports", "a project goes by the name it was made with"
        projects.set_project(s.store, "REPORTS", folder="/srv/b", by="ann")
        assert s.task(task.id).definition.action["cwd"] == "/srv/b"
        s.at(NINE + HOUR)
        s.plan()
        (won,) = s.claim()
        assert won.definition.action["cwd"] == "/srv/b"
        with pytest.raises(Invalid, match="Reports/one") as caught:
            projects.set_project(s.store, "reports", folder=None, clear=True, by="ann")
        assert caught.value.field == "dir"
        task_operations.remove(s.store, task.id, by="ann")
        cleared = projects.set_project(s.store, "reports", folder=None, clear=True, by="ann")
        assert (cleared.project.name, cleared.project.dir) == ("Reports", None)


def test_a_project_is_removed_with_its_defaults_and_hold_once_it_has_no_tasks(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.add("one", hourly(), project="a")
        set_(s, "a", max_age="1h")
        task_operations.pause(s.store, "project", "a", until=None, note=None, by="ann")
        with pytest.raises(Refused, match="a/one") as caught:
            projects.remove_project(s.store, "a", by="ann")
        assert (caught.value.reason, caught.value.details["count"]) == ("already_exists", 1)
        task_operations.remove(s.store, "a/one", by="ann")
        projects.remove_project(s.store, "A", by="ann")
        assert s.sql("SELECT * FROM projects") == s.sql("SELECT * FROM pauses") == s.sql("SELECT * FROM defaults") == []
        again = s.add("one", hourly(), project="a")
        assert s.task(again.id).next_start_at == NINE + HOUR, "a new project begins without the old one's hold"
        with pytest.raises(Refused):
            projects.remove_project(s.store, "b", by="ann")


@pytest.mark.parametrize("folder", ["relative", "", "/" + "x" * 5000, "/nul\0"])
def test_a_project_takes_no_folder_that_a_system_cannot_have(tmp_path: Path, folder: str) -> None:
    with scene(tmp_path) as s:
        with pytest.raises(Invalid):
            projects.set_project(s.store, "a", folder=folder, by="ann")
        assert s.sql("SELECT * FROM projects") == []


def test_a_definition_says_of_itself_what_its_author_wrote(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        set_(s, max_age="1h")
        task = s.add("one", hourly(), grace=MINUTE)
        assert definition_to_json(s.task(task.id).definition) == definition_to_json(
            definition("one", hourly(), grace=MINUTE)
        )
