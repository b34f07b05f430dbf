"""What an agent is asked beside its task's own words: snippets and standing knowledge of folders (G4)."""

import os
from pathlib import Path

import pytest
from agent_scene import Scene, say

INSIDE = {"agentCapabilities": {"promptCapabilities": {"embeddedContext": True}}, "protocolVersion": 1}


@pytest.fixture
def home(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own, and a project that is a worktree with a folder in it."""
    home = scene.folder / "home"
    monkeypatch.setenv("HOME", str(home))
    (scene.folder / "project" / ".git").mkdir(parents=True)
    (scene.folder / "project" / "part").mkdir()
    scene.writes([say("Done.")])
    return home


def written(folder: Path, name: str, text: str | bytes) -> Path:
    path = folder / ".agents" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def asked(scene: Scene, prompt: str, cwd: Path, **more: object) -> str:
    outcome = scene.perform(prompt, action={"cwd": str(cwd)}, **more)
    assert outcome.word == "succeeded", outcome.error
    return str(scene.seen("prompt")[-1]["text"])


def test_snippets_of_the_nearest_folder_come_before_those_of_the_home(scene: Scene, home: Path) -> None:
    project = scene.folder / "project"
    written(home, "snippets/tone.md", "kindly")
    written(home, "snippets/form.md", "in short #tone")
    written(project, "snippets/tone.md", "\ufefffirmly, {{attempt}} time\n")
    written(scene.folder, "snippets/form.md", "not of the worktree")
    assert asked(scene, "Say it #tone, #form. #none", project / "part") == (
        "Say it firmly, 1 time, in short firmly, 1 time. #none"
    )
    assert asked(scene, "Say it #tone.", home) == "Say it kindly."


def test_a_snippet_is_of_the_author_alone_and_never_of_an_input(scene: Scene, home: Path) -> None:
    written(home, "snippets/tone.md", "kindly")
    assert asked(scene, "Say {{input}}.", home, input="#tone") == "Say #tone."


@pytest.mark.parametrize("fault", ["bytes", "large", "folder", "pipe"])
def test_a_snippet_that_cannot_be_read_fails_before_anything_is_asked(scene: Scene, home: Path, fault: str) -> None:
    path = written(home, "snippets/bad.md", b"\xff" if fault == "bytes" else b"x" * 1_100_000)
    if fault in ("folder", "pipe"):
        path.unlink()
        path.mkdir() if fault == "folder" else os.mkfifo(path)
    outcome = scene.perform("Say #bad.", action={"cwd": str(home)})
    assert (outcome.word, outcome.reason, outcome.side_effect) == ("failed", "preflight", False)
    assert "the snippet #bad" in (outcome.error or "")
    assert scene.seen("start") == []


def test_what_was_left_as_it_stands_is_told_in_the_log(scene: Scene, home: Path) -> None:
    written(home, "snippets/round.md", "and #round")
    assert asked(scene, "#round", home) == "and #round"
    assert "[prompt] #round: left as it stands, after 1 snippets" in scene.log


def test_standing_knowledge_goes_first_as_a_text_or_as_a_resource(scene: Scene, home: Path) -> None:
    project = scene.folder / "project"
    written(project, "knowledge.md", "The moon is far. {{run}} #tone\n")
    text = asked(scene, "Do it.", project / "part")
    assert text.startswith("What follows is standing knowledge of this project")
    assert text.endswith("\n\nThe moon is far. {{run}} #tone\n\nDo it.")
    scene.writes([say("Done.")], greeting=INSIDE)
    assert asked(scene, "Do it.", project) == "Do it."
    first, second = scene.seen("prompt")[-1]["parts"]
    assert (first["type"], first["resource"]["text"]) == ("resource", "The moon is far. {{run}} #tone")
    assert second == {"type": "text", "text": "Do it."}
    assert asked(scene, "Do it.", scene.folder) == "Do it.", "it is of the worktree, and of nothing above or below"


def test_a_command_of_the_agent_comes_first_whatever_knowledge_there_is(scene: Scene, home: Path) -> None:
    project = scene.folder / "project"
    written(project, "knowledge.md", "The moon is far.")
    assert asked(scene, "/fix all", project) == "/fix all"
    assert "[knowledge] it is left out: the prompt begins with a command" in scene.log
    scene.writes([say("Done.")], greeting=INSIDE)
    asked(scene, "/fix all", project)
    assert [part["type"] for part in scene.seen("prompt")[-1]["parts"]] == ["resource", "text"]


@pytest.mark.parametrize("text", [b"\xff", b"x" * 300_000, b"  \n"])
def test_knowledge_that_cannot_be_had_fails_no_run(scene: Scene, home: Path, text: bytes) -> None:
    written(scene.folder / "project", "knowledge.md", text)
    assert asked(scene, "Do it.", scene.folder / "project") == "Do it."
    assert ("[knowledge] it is left out: " in scene.log) == bool(text.strip())
