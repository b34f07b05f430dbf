"""`skill install`: the file for agents is put where they look for it, and never over what somebody wrote."""

import json
import re
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from duly import __version__
from duly.app import skill
from duly.cli.frame import COMMANDS, run
from duly.errors import Refused

DESCRIPTION_MOST = 1024
LINES_MOST = 500


def file(folder: Path, place: str = ".agents") -> Path:
    return folder / place / "skills" / "duly" / "SKILL.md"


def test_the_skill_is_written_once_found_current_and_brought_up_to_date(tmp_path: Path) -> None:
    folder = tmp_path / ".agents" / "skills"
    assert skill.look(folder).state == "missing"
    assert skill.install(folder).written
    assert (skill.look(folder).state, skill.install(folder).written) == ("current", False)
    older = skill.text().replace(__version__, "0.0.9")
    stamp = skill.STAMP.search(older)
    assert stamp is not None
    file(tmp_path).write_text(older.replace(stamp[1], skill.digest(older)))
    assert skill.look(folder).state == "older"
    assert skill.install(folder).written
    assert file(tmp_path).read_text() == skill.text()
    assert [one.name for one in file(tmp_path).parent.iterdir()] == ["SKILL.md"]


def test_a_skill_that_somebody_changed_is_left_as_it_is_unless_that_is_forced(tmp_path: Path) -> None:
    folder = tmp_path / ".agents" / "skills"
    skill.install(folder)
    for words in (skill.text() + "our own words\n", "our own words\n", ""):
        file(tmp_path).write_text(words)
        assert skill.look(folder).state == "changed"
        with pytest.raises(Refused, match="would be lost"):
            skill.install(folder)
        assert file(tmp_path).read_text() == words
    assert skill.install(folder, force=True).written
    assert file(tmp_path).read_text() == skill.text()


def test_the_command_writes_where_it_is_asked_to_and_says_what_is_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    assert run(["skill", "install", "--check"]) == 1
    assert run(["skill", "install"]) == 0
    assert file(tmp_path / "home").is_file()
    capsys.readouterr()
    assert run(["skill", "install", "--to", "claude", "--to", "opencode", "--here", "--json"]) == 0
    items = json.loads(capsys.readouterr().out)["items"]
    assert [one["path"] for one in items] == [str(file(tmp_path, ".claude")), str(file(tmp_path, ".opencode"))]
    assert run(["skill", "install", "--here", "--to", "claude", "--check"]) == 0
    assert run(["skill", "install", "--to", "cluade"]) == 2
    assert "claude" in capsys.readouterr().err


def test_the_skill_is_one_that_agents_take_and_names_only_commands_that_there_are() -> None:
    _, front, body = skill.text().split("---\n", 2)
    told = YAML(typ="safe").load(front)
    assert (told["name"], told["metadata"]["version"]) == ("duly", __version__)
    assert len(told["description"]) <= DESCRIPTION_MOST
    assert body.count("\n") < LINES_MOST
    assert "{version}" not in front
    named = set(re.findall(r"`?duly ([a-z]+)", body)) - {"mcp"}
    assert named <= set(COMMANDS), named - set(COMMANDS)
    assert {"preview", "add", "why", "missed", "runs", "log"} <= named
