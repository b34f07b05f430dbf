"""Agents on the command line: what may be written of them, how that is shown, and what doctor says of this host's."""

import json
import sys
from pathlib import Path

import pytest
from cli_scene import Scene

SCRIPTED = Path(__file__).parents[1] / "agents" / "acp_agent.py"


@pytest.fixture
def config(scene: Scene) -> Path:
    """The config of this home, which names one scripted agent."""
    witness, script = scene.home / "agent-witness", scene.home / "script.json"
    script.write_text(json.dumps({"turns": [[]]}))
    command = json.dumps([sys.executable, "-S", str(SCRIPTED), str(script), str(witness)])
    file = scene.home / ".config" / "duly" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text(
        f'[agents.scripted]\nkind = "acp"\ncommand = {command}\nenv = {{ KEY = "${{TOKEN}}" }}\nmodels = ["small"]\n'
        '[secrets]\nTOKEN = "very-secret-word"\n'
    )
    return file


def test_a_definition_of_a_prompt_is_shown_edited_and_exported_as_any_other(scene: Scene, config: Path) -> None:
    words = (
        "--model",
        "small",
        "--permission",
        "execute:git *=allow",
        "--unattended",
        "fail",
        "--cwd",
        str(scene.home),
    )
    scene.ok("add", "ask", "--when", "manual", "--agent", "scripted", "--prompt", "Do it.", *words)
    task = scene.ok("show", "ask", "--json").json
    assert task["action"] == {
        "kind": "agent",
        "agent": "scripted",
        "prompt": "Do it.",
        "prompt_file": None,
        "model": "small",
        "session": {"use": "new"},
        "goal": None,
        "worktree": False,
        "cwd": str(scene.home),
    }
    assert task["rules"]["permissions"] == [{"tool": "execute", "pattern": "git *", "action": "allow"}]
    assert (task["rules"]["timeout"], task["rules"]["idle_timeout"]) == ("30m", "10m")
    assert "execute:git *=allow" in scene.ok("show", "ask").out
    scene.ok("edit", "ask", "--prompt-file", "prompt.md", "--clear", "model", "--clear", "permission")
    task = scene.ok("show", "ask", "--json").json
    action = task["action"]
    assert (action["prompt"], action["prompt_file"], action["model"]) == (None, "prompt.md", None)
    assert (task["rules"]["permissions"], task["rules"]["unattended"]) == ([], "fail")
    [written] = scene.ok("export", "ask", "--json").json["tasks"]
    assert written["action"] == {
        "kind": "agent",
        "agent": "scripted",
        "prompt_file": "prompt.md",
        "cwd": str(scene.home),
    }
    (scene.home / "words").write_text("From a file.")
    scene.ok("edit", "ask", "--prompt", f"@{scene.home / 'words'}")
    assert scene.ok("show", "ask", "--json").json["action"]["prompt"] == "From a file."
    scene.ok("edit", "ask", "--clear", "unattended", "--", "true")
    assert scene.ok("show", "ask", "--json").json["action"] == {
        "kind": "command",
        "argv": ["true"],
        "cwd": str(scene.home),
        "env": {},
    }


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--agent", "scripted"], "what the agent is asked is missing"),
        (["--agent", "scripted", "--prompt", " "], "it is empty"),
        (["--agent", "scripted", "--prompt", "x", "--prompt-file", "y"], "exclude each other"),
        (["--agent", "scripted", "--prompt", "x" * 20_001], "20,000 are allowed"),
        (["--agent", "scripted", "--prompt", "@none"], "none"),
        (["--agent", "scripted", "--prompt", "x", "--env", "A=b"], "an agent takes none"),
        (["--agent", "scripted", "--prompt", "x", "--", "ls"], "exclude each other"),
        (["--prompt", "x", "--", "ls"], "a command takes none"),
        (["--unattended", "allow", "--", "ls"], "it means agents alone"),
        (["--agent", "scripted", "--prompt", "x", "--permission", "execute"], "has no ="),
        (["--agent", "scripted", "--prompt", "x", "--permission", "execute=ask"], "is not one of allow, deny"),
        (["--agent", "scripted", "--prompt", "x", "--unattended", "ask"], "is not one of deny, allow, fail, park"),
        (["--agent", "scripted", "--prompt", "x", "--then", "deny"], "it counts with unattended park only"),
        (["--unattended", "park", "--", "ls"], "it means agents alone"),
    ],
)
def test_a_definition_that_means_nothing_is_refused_with_what_is_wrong(
    scene: Scene, config: Path, words: list[str], said: str
) -> None:
    done = scene.call("add", "ask", "--when", "manual", *words)
    assert done.code == 2
    assert said in done.err
    assert scene.ok("list", "--json").json["items"] == []


def test_what_this_host_does_not_have_is_warned_of_when_it_is_added(scene: Scene, config: Path) -> None:
    def warned(*words: str) -> str:
        return scene.ok("add", words[0], "--when", "manual", *words[1:]).err

    assert "[agents.claude]" in warned("a", "--agent", "claude", "--prompt", "x")
    assert "its models are small" in warned("b", "--agent", "scripted", "--prompt", "x", "--model", "huge")
    assert "is no file now" in warned("c", "--agent", "scripted", "--prompt-file", "none.md")
    assert "warning" not in warned("d", "--agent", "scripted", "--prompt", "x", "--model", "small")


def test_the_config_is_shown_with_its_agents_and_without_a_secret(scene: Scene, config: Path) -> None:
    shown = scene.ok("config", "show", "--json")
    assert [(one["name"], one["kind"], one["env"]) for one in shown.json["agents"]] == [("scripted", "acp", ["KEY"])]
    assert shown.json["secrets"] == ["TOKEN"]
    text = scene.ok("config", "show").out
    assert "agent scripted" in text
    assert "very-secret-word" not in shown.out + text
    with config.open("a") as file:
        file.write('[agents.odd]\nkind = "acp"\ncommand = ["x"]\ncolour = "red"\n')
    broken = scene.call("config", "show")
    assert broken.code == 2
    assert "agents.odd.colour: there is no such key" in broken.out


def test_doctor_greets_each_agent_and_names_those_that_do_not_answer(scene: Scene, config: Path) -> None:
    assert scene.ok("doctor", "--json").json["ok"] is True
    witness = [json.loads(line)["what"] for line in (scene.home / "agent-witness").read_text().splitlines()]
    assert "start" in witness
    assert not {"new", "prompt"} & set(witness)
    with config.open("a") as file:
        file.write('[agents.gone]\nkind = "acp"\ncommand = ["no-such-agent"]\n[agents.odd]\nkind = "telepathy"\n')
        file.write('[agents.poor]\nkind = "acp"\ncommand = ["sh"]\nenv = { A = "${NOWHERE}" }\n')
        file.write('[agents.dumb]\nkind = "acp"\ncommand = ["sh", "-c", "echo no key >&2; exit 3"]\n')
    told = {one["subject"]: (one["check"], one["message"]) for one in scene.call("doctor", "--json").json["items"]}
    assert set(told) == {"gone", "odd", "poor", "dumb"}
    assert told["odd"][0] == "agent_unusable"
    assert "was not found" in told["gone"][1]
    assert "NOWHERE" in told["poor"][1]
    assert "no key" in told["dumb"][1]
    assert "exit status 3" in told["dumb"][1]


def test_a_success_is_written_shown_edited_whole_and_cleared(scene: Scene) -> None:
    words = ("--success-when", "exit=0,3", "--success-when", "matches=a=b, c")
    scene.ok("add", "one", "--when", "manual", *words, "--", "true")
    task = scene.ok("show", "one", "--json").json
    assert task["rules"]["success_when"] == {"exit": [0, 3], "matches": "a=b, c"}
    assert "success_when exit=0,3 'matches=a=b, c'" in scene.ok("show", "one").out
    scene.ok("edit", "one", "--success-when", '{"file": "x y"}')
    assert scene.ok("show", "one", "--json").json["rules"]["success_when"] == {"file": "x y"}
    scene.ok("edit", "one", "--clear", "success_when")
    assert scene.ok("show", "one", "--json").json["rules"]["success_when"] is None


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--success-when", "exit"), "has no ="),
        (("--success-when", "exit=x"), "is not a whole number"),
        (("--success-when", "exit=0", "--success-when", "exit=1"), "given twice"),
        (("--success-when", "exits=0"), "there is no such field"),
        (("--success-when", "matches=("), "no regular expression"),
        (("--success-when", "{"), "it is not JSON"),
    ],
)
def test_a_success_that_is_none_is_refused_with_what_is_wrong(scene: Scene, words: tuple[str, ...], said: str) -> None:
    refused = scene.call("add", "one", "--when", "manual", *words, "--", "true")
    assert refused.code == 2
    assert said in refused.err


def test_a_worktree_is_asked_for_by_a_word_and_warned_of_where_there_is_no_repository(
    scene: Scene, config: Path
) -> None:
    words = ("--agent", "scripted", "--prompt", "Do it.", "--worktree")
    added = scene.ok("add", "ask", "--when", "manual", *words, "--cwd", str(scene.home))
    assert "is in no git repository now" in added.err
    assert "in a worktree of its own" in added.out
    assert scene.ok("show", "ask", "--json").json["action"]["worktree"] is True
    scene.ok("edit", "ask", "--clear", "worktree")
    assert scene.ok("show", "ask", "--json").json["action"]["worktree"] is False
    refused = scene.call("add", "one", "--when", "manual", "--worktree", "--", "true")
    assert (refused.code, "it goes with --agent" in refused.err) == (2, True)


def test_a_session_and_a_goal_are_asked_for_by_a_word_each_and_take_the_place_of_what_stood_there(
    scene: Scene, config: Path
) -> None:
    words = ("--agent", "scripted", "--prompt", "Do it.", "--session", "ses-1,busy=wait", "--cwd", str(scene.home))
    added = scene.ok("add", "ask", "--when", "manual", *words)
    assert "in the session ses-1" in added.out
    assert scene.ok("show", "ask", "--json").json["action"]["session"] == {"use": "ses-1", "busy": "wait"}
    refused = scene.call("edit", "ask", "--goal", "200000")
    assert (refused.code, "a goal has a session of its own" in refused.err) == (2, True)
    scene.ok("edit", "ask", "--session", "ses-2")
    assert scene.ok("show", "ask", "--json").json["action"]["session"] == {"use": "ses-2", "busy": "skip"}
    scene.ok("edit", "ask", "--clear", "session", "--goal", "200000")
    shown = scene.ok("show", "ask", "--json").json["action"]
    assert (shown["session"], shown["goal"]) == ({"use": "new"}, {"tokens": 200_000})
    for given in (("--goal", "many"), ("--goal", "5"), ("--session", "s,busy=queue"), ("--session", "new,busy=wait")):
        assert scene.call("edit", "ask", *given).code == 2
