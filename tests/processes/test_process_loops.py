"""Loop files under a real server: what was only cloned never runs, what a person named does, and changes are taken."""

import json
import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from process_scene import Place, wait_for

from duly.clock import monotonic_s, pause

SCRIPTED = Path(__file__).parents[1] / "agents" / "acp_agent.py"
LONG = pytest.mark.skipif("DULY_CHAOS_SECONDS" not in os.environ, reason="takes long: asked for by DULY_CHAOS_SECONDS")
ON = "enabled: true\n"


class Loops:
    """A place whose config names one scripted agent, which writes of each of its starts."""

    def __init__(self, place: Place) -> None:
        self.place = place
        script = place.home / "script.json"
        script.write_text(json.dumps({"turns": [[{"do": "say", "text": "Done."}]] * 100}))
        self.witness = place.home / "agent-witness"
        config = place.home / ".config" / "duly" / "config.toml"
        config.parent.mkdir(parents=True)
        command = json.dumps([sys.executable, "-S", str(SCRIPTED), str(script), str(self.witness)])
        config.write_text(f'[agents.scripted]\nkind = "acp"\ncommand = {command}\n')

    def repository(self, name: str) -> Path:
        """Make a worktree that nobody has named."""
        folder = self.place.home / name
        (folder / ".git").mkdir(parents=True)
        return folder

    def put(self, folder: Path, name: str, *, when: str = "every 1s", more: str = ON) -> Path:
        path = folder / ".agents" / "loops" / f"{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'---\nname: {name}\nschedule: "{when}"\nagent: scripted\n{more}---\nDo it.\n')
        return path

    def task(self, name: str) -> Any:
        found = [one for one in self.place.json("list")["items"] if one["name"] == name]
        return found[0] if found else None

    def prompted(self) -> int:
        if not self.witness.exists():
            return 0
        return sum(json.loads(line)["what"] == "prompt" for line in self.witness.read_text().splitlines())


@pytest.fixture
def loops(place: Place) -> Loops:
    return Loops(place)


@pytest.mark.parametrize("watched_s", [0.0, pytest.param(60.0, marks=[pytest.mark.slow, LONG])])
def test_a_cloned_repository_runs_nothing_until_a_person_names_its_folder(loops: Loops, watched_s: float) -> None:
    place = loops.place
    ours, clone = loops.repository("ours"), loops.repository("clone")
    loops.put(clone, "theirs")
    loops.put(ours, "mine", more="")
    place.duly("project", "set", "ours", "--dir", str(ours))
    # Work is done inside of the clone, and something else of ours is there too.
    done = subprocess.run(
        [sys.executable, "-m", "duly", "--store", str(place.store), "add", "there", "--when", "manual", "--", "true"],
        env=place.env, cwd=clone, check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert "there" in done.stdout
    checked = place.json("check", str(clone))["items"]
    assert [(one["task"]["name"], one["project"]) for one in checked] == [("theirs", None)]
    place.serve()
    for when in ("daily 07:00", "daily 08:00"):  # it looks at files, and has done so twice since it serves
        loops.put(ours, "mine", when=when, more="")
        triggers = [{"kind": "daily", "times": [when.removeprefix("daily ")]}]
        wait_for(partial(lambda wanted: loops.task("mine")["triggers"] == wanted, triggers))
    until = monotonic_s() + watched_s
    while True:
        assert loops.task("theirs") is None
        assert not loops.witness.exists()
        if monotonic_s() >= until:
            break
        pause(0.5)
    place.duly("project", "set", "clone", "--dir", str(clone))
    wait_for(loops.prompted)
    assert loops.task("theirs")["source"]["path"] == str(clone / ".agents/loops/theirs.md")
    assert place.duly("verify").returncode == 0


def test_files_are_followed_while_a_server_runs_and_two_servers_do_it_once(loops: Loops) -> None:
    place = loops.place
    ours = loops.repository("ours")
    place.duly("project", "set", "ours", "--dir", str(ours))
    place.serve()
    place.serve()
    path = loops.put(ours, "mine", when="daily 07:00")
    first = wait_for(lambda: loops.task("mine"))
    path.write_text(path.read_text().replace("daily 07:00", "0 25 * * *"))
    broken = wait_for(lambda: loops.task("mine")["broken"])
    assert broken["message"].startswith(f"{path}:3: schedule: ")
    assert loops.task("mine")["next_due_at"] == first["next_due_at"]
    path.write_text(path.read_text().replace("0 25 * * *", "daily 08:00").replace("name: mine", "name: other"))
    after = wait_for(lambda: loops.task("other"))
    assert (after["id"], after["version"], after["broken"]) == (first["id"], 2, None)
    path.unlink()
    wait_for(lambda: loops.task("other") is None)
    kinds = [row[0] for row in place.rows("SELECT kind FROM ledger WHERE task = ? ORDER BY seq", first["id"])]
    assert kinds == ["defined", "defined", "removed"]
    assert place.duly("verify").returncode == 0


def test_changes_are_found_also_where_nothing_can_be_watched(loops: Loops) -> None:
    place = loops.place
    place.env["WATCHFILES_FORCE_POLLING"] = "true"
    ours = loops.repository("ours")
    place.duly("project", "set", "ours", "--dir", str(ours))
    place.serve()
    loops.put(ours, "mine", when="daily 07:00")
    wait_for(lambda: loops.task("mine"))


def test_what_a_file_that_went_while_nobody_served_had_missed_is_not_run(loops: Loops) -> None:
    place = loops.place
    ours = loops.repository("ours")
    path = loops.put(ours, "mine")
    place.duly("project", "set", "ours", "--dir", str(ours))
    assert loops.task("mine")["enabled"] is True
    path.unlink()
    pause(1.1)  # the time of one occurrence, which is owed by now
    server = place.serve()
    wait_for(lambda: loops.task("mine") is None)
    assert loops.prompted() == 0
    assert place.rows("SELECT count(*) FROM runs WHERE state <> 'ended'") == [(0,)]
    assert server.poll() is None


def test_a_folder_that_goes_away_keeps_its_tasks_and_says_so_until_it_is_back(loops: Loops) -> None:
    place = loops.place
    ours = loops.repository("ours")
    loops.put(ours, "mine", when="daily 07:00")
    place.duly("project", "set", "ours", "--dir", str(ours))
    place.serve()
    away = place.home / "away"
    shutil.move(ours, away)
    wait_for(lambda: place.json("status")["projects"])
    refused = place.duly("run", "mine", "--json", check=False)
    assert (refused.returncode, json.loads(refused.stderr)["reason"]) == (3, "project_missing")
    assert loops.task("mine")["enabled"] is True
    assert "cannot be used: it is not there" in place.duly("status").stdout
    shutil.move(away, ours)
    wait_for(lambda: not place.json("status")["projects"])
    place.duly("run", "mine")
    wait_for(loops.prompted)


def test_what_a_run_adds_or_switches_on_waits_for_a_person(loops: Loops) -> None:
    place = loops.place
    ours = loops.repository("ours")
    loops.put(ours, "mine", when="daily 07:00", more="")
    place.duly("project", "set", "ours", "--dir", str(ours))
    line = (
        "duly add own --when 'every 1s' --cwd / -- true; duly enable mine; duly unpause own; "
        "duly project set clone --dir /; duly unpause --all"
    )
    line = line.replace("duly ", f"{sys.executable} -m duly --store '{place.store}' ")
    place.duly("add", "agentlike", "--when", "manual", "--cwd", "/", "--shell", line)
    place.serve()
    place.duly("run", "agentlike", "--wait", check=False)
    run = place.json("runs", "--task", "agentlike")["items"][0]["id"]
    log = place.duly("log", run).stdout
    assert log.count("waits for a person") >= 5, log
    own, mine = loops.task("own"), loops.task("mine")
    assert own["created_by"].endswith(f" in {run}")
    for task in (own, mine):
        assert (task["enabled"], task["next_due_at"]) == (True, None)
        assert task["paused"][0]["note"] == f"made or switched on in {run}: a person lets it start"
    assert [one["name"] for one in place.json("project", "list")["items"]] == ["default", "ours"]
    assert place.json("runs", "--task", "own")["items"] == []
    place.duly("unpause", "own")
    wait_for(lambda: place.json("runs", "--task", "own", "--outcome", "succeeded")["items"])
