"""`check`, and what `list`, `show`, `status`, `enable`, `edit` and `remove` say of tasks that files define."""

import os
from pathlib import Path

import pytest
from cli_scene import Scene

GOOD = """---
name: digest
schedule: 0 9 * * mon-fri
enabled: true
model: anthropic/sonnet
timezone: Europe/Berlin
max_age: 2h
icon: sun
---
What changed here?
"""
BAD = "---\nname: bad\nschedule: 0 25 * * *\nmodel: sonnet\n---\nhi\n"


@pytest.fixture
def app(scene: Scene) -> Path:
    """A worktree in a home that has no loop files itself."""
    folder = scene.home / "app"
    (folder / ".git").mkdir(parents=True)
    (folder / ".agents" / "loops").mkdir(parents=True)
    return folder


def put(app: Path, name: str, text: str) -> str:
    path = app / ".agents" / "loops" / name
    path.write_text(text)
    return str(path)


def test_check_says_what_a_file_would_become_and_makes_no_store(scene: Scene, app: Path) -> None:
    path = put(app, "digest.md", GOOD)
    called = scene.ok("check", path)
    lines = called.out.splitlines()
    assert lines[0] == f"digest  {path}:2"
    told = dict(line.split(maxsplit=1) for line in lines[1:] if not line.startswith("   "))
    assert told["canonical"] == "cron 0 9 * * mon-fri"
    assert told["zone"] == "Europe/Berlin"
    assert told["prompt"] == "opencode (anthropic/sonnet): What changed here?"
    assert told["runs"].startswith("no: nobody named a project")
    assert "warning: line 8: icon is none of our keys" in called.out
    (item,) = scene.ok("check", str(app), "--json").json["items"]
    assert (item["ok"], item["project"], item["errors"]) == (True, None, [])
    assert item["task"]["rules"]["max_age"] == "2h"
    assert len(item["upcoming"]) == 3
    assert not os.path.exists(scene.env["DULY_STORE"])  # noqa: PTH110 - of a server it is a URL


def test_check_tells_all_that_is_wrong_with_its_lines_and_ends_with_one(scene: Scene, app: Path) -> None:
    path = put(app, "bad.md", BAD)
    called = scene.call("check", path, "--json")
    (item,) = called.json["items"]
    assert (called.code, item["ok"], item["task"]) == (1, False, None)
    assert [(error["field"], error["line"]) for error in item["errors"]] == [("model", 4)]
    Path(path).write_text(BAD.replace("sonnet", "a/sonnet"))
    called = scene.call("check", path)
    assert called.code == 1
    assert f"{path}:3: schedule: `25` is outside the hour field" in called.out
    put(app, "digest.md", GOOD)
    called = scene.call("check", str(app), "--json")
    assert [(called.code, item["ok"]) for item in called.json["items"]] == [(1, False), (1, True)]


@pytest.mark.parametrize("words", [(), ("nowhere.md",)])
def test_check_of_nothing_is_wrong_usage(scene: Scene, words: tuple[str, ...]) -> None:
    called = scene.call("check", *words)
    assert (called.code, called.out) == (2, "")


def test_check_of_a_folder_names_the_file_that_another_of_its_name_beats(scene: Scene, app: Path) -> None:
    put(app, "a.md", GOOD)
    second = put(app, "b.md", GOOD)
    called = scene.call("check", str(app), "--json")
    assert [item["ok"] for item in called.json["items"]] == [True, False]
    assert called.json["items"][1]["path"] == second
    assert scene.ok("check", str(scene.home), "--json").json["items"] == []


def test_a_named_folder_is_told_with_what_its_files_became(scene: Scene, app: Path) -> None:
    path = put(app, "digest.md", GOOD)
    bad = put(app, "bad.md", BAD)
    called = scene.ok("project", "set", "web", "--dir", str(app))
    assert "  added web/digest, by its loop file" in called.out.splitlines()
    assert called.err.splitlines()[0] == f'warning: {bad}:4: model: "sonnet" is not provider/model'
    assert scene.ok("project", "set", "web", "--json").json["loop_files"] == {"added": [], "changed": [], "removed": []}
    assert f"{path}:2" in scene.ok("show", "digest").out
    status = scene.ok("status")
    assert f'{bad}:4: "sonnet" is not provider/model' in status.out
    (trouble,) = scene.ok("status", "--json").json["projects"]
    assert (trouble["name"], trouble["missing"], trouble["faults"][0]["path"]) == ("web", None, bad)
    assert scene.ok("check", path, "--json").json["items"][0]["project"] == "web"
    assert "yes, in the project web" in scene.ok("check", path).out


def test_a_task_of_a_file_is_switched_in_it_and_else_left_to_it(scene: Scene, app: Path) -> None:
    path = put(app, "digest.md", GOOD)
    scene.ok("project", "set", "web", "--dir", str(app))
    called = scene.ok("disable", "digest")
    assert called.err.splitlines()[0] == f"hint: it is written in {path}"
    assert Path(path).read_text() == GOOD.replace("enabled: true", "enabled: false")
    for words in (
        ("edit", "digest", "--max-age", "3h"),
        ("edit", "digest"),
        ("remove", "digest", "--yes"),
    ):
        called = scene.call(*words, "--json")
        assert (called.code, called.fault["reason"]) == (3, "owned_by_file"), words
        assert (called.fault["details"]["path"], called.fault["details"]["line"]) == (path, 2)
    scene.ok("enable", "digest")
    assert Path(path).read_text() == GOOD
    Path(path).unlink()
    scene.ok("remove", "digest", "--yes")


def test_a_task_whose_file_broke_says_so_and_stays_on(scene: Scene, app: Path) -> None:
    path = put(app, "digest.md", GOOD)
    scene.ok("project", "set", "web", "--dir", str(app))
    Path(path).write_text(GOOD.replace("---\nWhat", "<<<<<<< ours\n=======\n>>>>>>> theirs\n---\nWhat"))
    scene.ok("project", "set", "web")
    assert "on, file broken" in scene.ok("list").out
    assert f"{path}:9: an unfinished merge" in scene.ok("show", "digest").out
    (item,) = scene.ok("list", "--json").json["items"]
    assert item["broken"]["field"] == "file"
    assert item["next_due_at"] is not None
    assert scene.ok("status", "--json").json["tasks"]["broken"] == 1


def test_what_a_run_asks_waits_for_a_person_and_says_so(scene: Scene, app: Path) -> None:
    run = "run_01m8p37vrgrhfq3eex4h4tptbb"
    scene.add("before", "--disabled")
    scene.monkeypatch.setenv("DULY_RUN", run)
    called = scene.ok("add", "own", "--when", "every 1m", "--cwd", "/", "--", "true")
    assert "so it waits for a person: duly unpause own" in called.err
    scene.ok("enable", "before")
    for words in (
        ("unpause", "own"),
        ("unpause", "--all"),
        ("project", "set", "web", "--dir", str(app)),
        ("run", "own", "--anyway"),
    ):
        called = scene.call(*words, "--json")
        assert (called.code, called.fault["reason"]) == (3, "not_allowed"), words
    scene.monkeypatch.delenv("DULY_RUN")
    for name in ("own", "before"):
        task = scene.ok("show", name, "--json").json
        assert (task["enabled"], task["next_due_at"]) == (True, None)
        assert task["paused"][0]["by"].endswith(f" in {run}")
        scene.ok("unpause", name)
        assert scene.ok("show", name, "--json").json["next_due_at"] is not None
