"""`default` and `project`: what tasks have because nobody said otherwise, and where they work."""

from pathlib import Path

import pytest
from cli_scene import Scene

BAD: dict[str, tuple[tuple[str, ...], int, str]] = {
    "no rule": (("default", "set"), 2, "duly: RULE=VALUE... is missing"),
    "no value": (("default", "set", "max_age"), 2, 'duly: RULE: "max_age" has no ='),
    "unknown rule": (("default", "set", "max_aeg=6h"), 2, 'duly: RULE: there is no rule "max_aeg"'),
    "given twice": (("default", "set", "retries=1", "retries=2"), 2, "duly: RULE: retries is given twice"),
    "of one task": (("default", "set", "until=2027-01-01"), 2, "duly: --until: it means one task's own"),
    "not a number": (("default", "set", "retries=two"), 2, 'duly: --retries: "two" is not a whole number'),
    "not a span": (("default", "set", "max_age=6"), 2, "duly: --max-age: a span needs a unit"),
    "contradiction": (("default", "set", "retry_after=2h"), 2, "duly: --retry-after: 2h is longer than retry_up_to"),
    "unknown project": (("default", "set", "retries=1", "--project", "x"), 4, 'duly: there is no project "x"'),
    "not set": (("default", "remove", "retries"), 2, "duly: RULE: no default is set for retries there"),
    "unknown to remove": (("default", "remove", "hue"), 2, 'duly: RULE: there is no rule "hue"'),
    "no verb": (("default", "get"), 2, 'duly: there is no verb of duly default "get"'),
    "project name": (("project", "set", "a/b"), 2, 'duly: --project: "a/b" has a slash'),
    "both": (("project", "set", "a", "--dir", "/", "--no-dir"), 2, "duly: --dir: --dir and --no-dir exclude"),
    "no project": (("project", "remove", "nobody"), 4, 'duly: there is no project "nobody"'),
    "with tasks": (("project", "remove", "default"), 3, "duly: the project default still has 1 task: kept"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_default_or_a_project_that_cannot_be_is_told_in_one_line_and_changes_nothing(scene: Scene, name: str) -> None:
    scene.add("kept")
    before = scene.dump()
    args, code, first = BAD[name]
    called = scene.call(*args)
    assert (called.code, called.out) == (code, ""), called
    assert called.first.startswith(first), called
    assert scene.dump() == before


def test_defaults_are_set_listed_shown_and_removed(scene: Scene) -> None:
    assert scene.ok("default", "list", "--json").json == {"items": [], "next": None}
    scene.add("one", "--max-age", "1h")
    scene.add("two", "--project", "ops")
    called = scene.ok("default", "set", "max-age=12h", "on_missed=skip")
    assert called.out.splitlines() == [
        "default on_missed of the store: none → skip",
        "default max_age of the store: none → 12h",
        "changes the rules of 2 tasks",
    ]
    done = scene.ok("default", "set", "max_age=2h", "--project", "OPS", "--json").json
    assert done == {"project": "ops", "rules": {"max_age": "2h"}, "tasks": 1}
    items = scene.ok("default", "list", "--json").json["items"]
    assert items == [
        {"rule": "on_missed", "value": "skip", "project": None, "tasks": 2},
        {"rule": "max_age", "value": "12h", "project": None, "tasks": 0},
        {"rule": "max_age", "value": "2h", "project": "ops", "tasks": 1},
    ]
    table = scene.ok("default", "list").out.splitlines()
    assert table[0].split() == ["RULE", "VALUE", "OF", "TASKS"]
    assert table[-1].split() == ["max_age", "2h", "project", "ops", "1"]
    one, two = scene.ok("show", "one").out, scene.ok("show", "two").out
    assert "max_age 1h\n" in one
    assert "on_missed skip (store's default)" in one
    assert "max_age 2h (project's default)" in two
    shape = scene.ok("show", "two", "--json").json
    assert (shape["rules"]["max_age"], shape["own_rules"]) == ("2h", [])
    assert shape["inherited_rules"] == {"on_missed": "store", "max_age": "project"}
    scene.ok("default", "remove", "max-age", "--project", "ops")
    assert "max_age 12h (store's default)" in scene.ok("show", "two").out
    assert "changed on_missed max_age" in scene.ok("ledger").out


def test_add_in_a_project_with_a_folder_works_there_unless_it_names_one(scene: Scene) -> None:
    folder = scene.home / "reports"
    called = scene.ok("project", "set", "reports", "--dir", str(folder))
    assert called.out == f"project reports works in {folder} (0 tasks)\n"
    assert called.err.startswith(f"warning: --dir: {folder} is no folder now")
    folder.mkdir()
    assert scene.add("one", "--project", "Reports")["action"]["cwd"] == str(folder)
    assert scene.add("two", "--project", "reports", "--cwd", "/")["action"]["cwd"] == "/"
    assert scene.add("three")["action"]["cwd"] == str(Path.cwd())
    assert f"{folder} (the project's folder)" in scene.ok("show", "one").out
    scene.monkeypatch.chdir(scene.home)
    moved = scene.ok("project", "set", "reports", "--dir", "elsewhere", "--json").json
    assert (moved["dir"], moved["tasks"], moved["in_its_folder"]) == (str(scene.home / "elsewhere"), 2, 1)
    assert scene.ok("show", "one", "--json").json["action"]["cwd"] == moved["dir"]
    called = scene.call("project", "set", "reports", "--no-dir")
    assert (called.code, called.err.splitlines()[-1]) == (2, "try: duly edit reports/one --cwd PATH")
    rows = [line.split() for line in scene.ok("project", "list").out.splitlines()]
    assert rows == [["PROJECT", "TASKS", "FOLDER"], ["default", "1"], ["reports", "2", moved["dir"]]]


def test_a_project_is_made_alone_and_removed_when_it_is_empty(scene: Scene) -> None:
    made = scene.ok("project", "set", "ops", "--json").json
    assert (made["name"], made["dir"], made["tasks"]) == ("ops", None, 0)
    scene.add("x", "--project", "OPS")
    assert scene.ok("show", "ops/x", "--json").json["project"] == "ops"
    scene.ok("remove", "ops/x", "--yes")
    assert scene.ok("project", "remove", "Ops").out == "removed project ops\n"
    assert scene.ok("project", "list", "--json").json["items"] == []
