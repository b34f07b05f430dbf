"""Lists that ask for some tasks, and lists for who sees some projects alone."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from store_people import by_hand
from store_scene import HOUR, NINE, Scene, definition, hourly, scene

from duly.errors import Invalid, Refused
from duly.operations import choosing, listing, missed, tasks
from duly.operations.choosing import Wanted

LABELS = {"team": "data", "tier": "1"}


def names(s: Scene, wanted: Wanted, projects: frozenset[str] | None = None) -> list[str]:
    with s.store.read() as session:
        found, _ = choosing.chosen(session, wanted, cursor=None, most=200, projects=projects)
    return [one.task.definition.name for one in found]


def test_a_list_of_tasks_asks_by_project_name_label_words_and_state(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.add("Backup", hourly())
        s.add("report", hourly(), project="Shop")
        labelled = replace(definition("import", hourly(), project="shop", enabled=False), labels=LABELS)
        tasks.add(s.store, labelled, by="ann", source={"kind": "cli"})
        tasks.pause(s.store, "task", "report", until=None, note=None, by="ann")
        assert names(s, Wanted()) == ["Backup", "import", "report"]
        assert names(s, Wanted(project="SHOP")) == ["import", "report"]
        assert names(s, Wanted(name="backUP")) == ["Backup"]
        assert names(s, Wanted(text="SHOP/imp")) == ["import"]
        assert names(s, Wanted(labels=[("team", None), ("tier", "1")])) == ["import"]
        assert names(s, Wanted(labels=[("team", "web")])) == []
        assert names(s, Wanted(state="disabled")) == ["import"]
        assert names(s, Wanted(state="paused")) == ["report"]
        assert names(s, Wanted(state="running")) == []
        by_hand(s, "Backup")
        s.claim()
        assert names(s, Wanted(state="running")) == ["Backup"]
        with s.store.read() as session, pytest.raises(Invalid, match="no state"):
            choosing.chosen(session, Wanted(state="tired"), cursor=None, most=1)


def test_a_list_of_tasks_goes_on_where_it_ended_and_repeats_none(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        for number in range(5):
            s.add(f"task {number}", hourly(), project="odd" if number % 2 else "even")
        seen, cursor, pages = [], None, 0
        while pages == 0 or cursor is not None:
            with s.store.read() as session:
                found, cursor = choosing.chosen(session, Wanted(text="task"), cursor=cursor, most=2)
            seen += [one.task.definition.name for one in found]
            pages += 1
        assert (pages, seen) == (3, ["task 0", "task 2", "task 4", "task 1", "task 3"])


def test_who_is_held_to_projects_finds_nothing_of_others_in_any_list(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        mine = s.add("mine", hourly(), project="shop", on_missed="offer")
        other = s.add("other", hourly(), project="bank", on_missed="offer")
        for task in (mine, other):
            by_hand(s, task.id)
        s.at(NINE + 3 * HOUR)
        s.plan()
        only = frozenset({"shop"})
        assert names(s, Wanted(), only) == ["mine"]
        assert names(s, Wanted(project="bank"), only) == []
        with s.store.read() as session:
            given: dict[str, Any] = {
                "task": None,
                "state": None,
                "outcome": None,
                "since": None,
                "cursor": None,
                "most": 50,
            }
            runs, _ = listing.runs(session, **given, projects=only)
            everything, _ = listing.runs(session, **given)
            offers, _ = missed.listed(session, task=None, only_open=True, cursor=None, most=50, projects=only)
            told, following = listing.ledger(session, task=None, since=None, after=0, most=200, projects=only)
        assert {run["task"] for run in runs} == {mine.id}
        assert {run["task"] for run in everything} == {mine.id, other.id}
        assert {one["task"] for one in offers} == {mine.id}
        assert {one.entry.task for one in told} == {mine.id}
        assert following is None


def test_a_page_of_the_ledger_of_one_project_goes_on_behind_what_it_has(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        for name in ("a", "b", "c"):
            s.add(name, hourly(), project="shop")
            s.add(name, hourly(), project="bank")
        seen: list[int] = []
        after: int | None = 0
        while after is not None:
            with s.store.read() as session:
                page, after = listing.ledger(
                    session, task=None, since=None, after=after, most=1, projects=frozenset({"bank"})
                )
            seen += [one.seq for one in page]
        assert len(seen) == len(set(seen)) == 3


def test_a_task_is_removed_only_as_it_was_seen(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", hourly())
        tasks.disable(s.store, task.id, by="bob")
        with pytest.raises(Refused) as refused:
            tasks.remove(s.store, task.id, by="ann", if_version=task.version)
        assert refused.value.reason == "version_conflict"
        assert refused.value.details["by"] == "bob"
        tasks.remove(s.store, task.id, by="ann", if_version=s.task(task.id).version)
