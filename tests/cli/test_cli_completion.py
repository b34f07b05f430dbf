"""`completion`: what may stand at the cursor, and real shells that ask for it."""

import os
import pty
import re
import select
import shutil
import subprocess
import time
from collections.abc import Sequence

import pytest
from cli_scene import Scene

from duly.cli.completing import SCRIPTS, offered
from duly.cli.frame import COMMANDS

PATIENCE_S = 120
SHELLS_PATH = os.environ["PATH"]  # before a scene puts its own in place


def values(*words: str) -> list[str]:
    return [str(item.value) for item in offered(words)]


def files(*words: str) -> bool:
    return [item.type for item in offered(words)] == ["file"]


@pytest.fixture
def named(scene: Scene) -> Scene:
    """A store with tasks whose names a shell must not trip over."""
    for name in ("plain", "my task", "it's", 'say "hi"', "a:b=c", "日次 🎉", "$(reboot)", "*"):
        scene.add(name)
    scene.add("plain", "--project", "other")
    return scene


def test_commands_options_and_choices_are_offered_by_how_they_begin(named: Scene) -> None:
    assert values("") == list(COMMANDS)
    assert values("en") == ["enable"]
    assert values("config", "") == ["show"]
    assert set(values("list", "--")) >= {"--json", "--store", "--help", "--cursor"}
    assert values("add", "x", "--on-m") == ["--on-missed"]
    assert values("add", "x", "--overlap", "k") == ["kill_running"]
    assert values("add", "x", "--overlap=q") == ["queue"]
    assert values("runs", "--state", "r") == ["running"]
    assert values("holders", "--state", "") == ["alive", "draining", "gone"]
    assert values("runs", "--outcome", "t") == ["timed_out"]
    assert values("completion", "z") == ["zsh"]
    assert values("add", "x", "--zone", "Europe/Berl") == ["Europe/Berlin"]
    assert values("status", "") == []
    assert values("nonsense", "x") == []
    assert values("add", "x", "--nonsense", "") == []


@pytest.mark.parametrize("command", ["show", "run", "log", "enable", "remove", "next", "export", "fence"])
def test_the_names_of_tasks_are_offered_with_their_project_where_it_is_not_the_default_one(
    named: Scene, command: str
) -> None:
    assert values(command, "p") == ["plain"]
    assert values(command, "o") == ["other/plain"]
    assert set(values(command, "")) >= {"my task", "it's", "日次 🎉"}


def test_runs_projects_and_the_values_of_options_are_offered_too(named: Scene) -> None:
    run = named.ok("run", "default/plain", "--json").json["id"]
    assert values("cancel", "") == [run[-8:]]
    assert run[-8:] in values("log", "")
    assert values("runs", "--task", "pl") == ["plain"]
    assert values("pause", "--project", "o") == ["other"]
    named.ok("cancel", run)
    assert values("cancel", "") == []
    assert run[-8:] in values("show", "")


def test_where_a_file_is_meant_the_shell_offers_its_own(named: Scene) -> None:
    assert files("backup", "")
    assert files("restore", "x")
    assert files("list", "--store", "")
    assert files("add", "x", "--when", "manual", "--cwd", "/")
    assert files("add", "x", "--when", "manual", "--", "gi")


def test_names_come_from_the_store_that_the_line_names_and_nothing_is_said_or_made_where_there_is_none(
    named: Scene,
) -> None:
    other = named.home / "other.db"
    assert values("--store", str(other), "show", "") == []
    assert values("--store", "/nowhere/x.db", "show", "") == []
    assert not other.exists()
    named.ok("add", "elsewhere", "--when", "manual", "--store", str(other), "--", "true")
    assert values("--store", str(other), "show", "") == ["elsewhere"]
    assert values("show", "--store", str(other), "") == ["elsewhere"]
    (named.home / "bad.db").write_text("no store")
    called = named.ok("completion", "bash", "--", f"duly --store {named.home}/bad.db show ", "")
    assert (called.out, called.err) == ("words\n", "")


@pytest.mark.parametrize("shell", SCRIPTS)
def test_each_shell_gets_a_script_that_names_no_path(scene: Scene, shell: str) -> None:
    text = scene.ok("completion", shell).out
    assert "completion for duly" in text
    assert str(scene.home) not in text


@pytest.mark.parametrize(
    ("args", "code", "first"),
    [
        (("completion",), 2, "duly: bash|zsh|fish is missing"),
        (("completion", "tcsh"), 2, 'duly: SHELL: "tcsh" is not one of bash, zsh, fish'),
        (("completion", "Bash"), 2, 'duly: SHELL: "Bash" is not one of bash, zsh, fish'),
    ],
)
def test_an_unknown_shell_is_refused(scene: Scene, args: tuple[str, ...], code: int, first: str) -> None:
    called = scene.call(*args)
    assert (called.code, called.out) == (code, "")
    assert called.first.startswith(first)


def test_bash_sources_the_script_and_fills_the_reply_with_words_as_they_must_stand(named: Scene) -> None:
    script = r"""
    shopt -s nullglob; touch a-file; source <(duly completion bash)
    ask() {
        COMP_LINE=$1; COMP_POINT=${#COMP_LINE}; COMP_WORDS=("${@:2}"); COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        _duly duly; printf '%s\n' "${COMPREPLY[@]}" --
    }
    ask 'duly en' duly en
    ask 'duly show ' duly show ''
    ask 'duly show "my' duly show '"my'
    ask "duly show 'it" duly show "'it"
    ask 'duly show a:' duly show a :
    ask 'duly add x --overlap=' duly add x --overlap =
    """
    done = subprocess.run(
        ["bash", "--norc", "--noprofile", "-c", script],
        env=named.env,
        cwd=named.home,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.stderr == ""
    told = [block.split("\n")[:-1] for block in done.stdout.split("--\n")]
    assert told[0] == ["enable"]
    assert set(told[1]) == {
        *("plain", "my\\ task", "it\\'s", 'say\\ \\"hi\\"', "a:b=c", "日次\\ \\🎉", "\\$\\(reboot\\)", "\\*"),
        "other/plain",
    }
    assert told[2] == ["my task"]
    assert told[3] == ["it'\\''s"]
    assert told[4] == ["b=c"], "what stands before the colon is another word to bash"
    assert told[5] == ["skip", "queue", "cancel_running", "kill_running"]


def typed(scene: Scene, argv: Sequence[str], begin: str, keys: str, wanted: str) -> str:
    """Type into a shell on a terminal until it shows what is wanted; give what the screen was sent."""
    child, terminal = pty.fork()
    if child == 0:
        env = {**scene.env, "TERM": "dumb", "PS1": "$ ", "PATH": f"{scene.env['PATH']}:{SHELLS_PATH}"}
        for name in ("FPATH", "MODULE_PATH"):
            if name in os.environ:
                env[name] = os.environ[name]
        os.execvpe(argv[0], list(argv), env)
    seen, sent, until = b"", 0, time.monotonic() + PATIENCE_S
    steps = [("[$#%] ", "PS1='@@ '; " + begin + "; echo rea''dy\n"), ("ready\r?\n(.*\n)*.*@@ ", keys)]
    while time.monotonic() < until and wanted.encode() not in seen:
        if sent < len(steps) and re.search(steps[sent][0], seen.decode(errors="replace")):
            os.write(terminal, steps[sent][1].encode())
            seen, sent = b"", sent + 1
        if select.select([terminal], [], [], 0.1)[0]:
            try:
                seen += os.read(terminal, 65536)
            except OSError:
                break
    os.close(terminal)
    os.waitpid(child, 0)
    return seen.decode(errors="replace")


SHELLS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], "source <(duly completion bash)"),
    "zsh": (["zsh", "-f", "-i"], "autoload -U compinit; compinit -u -D; source <(duly completion zsh)"),
}


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("keys", "wanted"),
    [
        ("duly ena\t", "duly enable "),
        ("duly show m\t", "duly show my\\ task "),
        ('duly show "my t\t', 'duly show "my task" '),
        ("duly show it\t", "duly show it\\'s "),
        ("duly add x --overlap=q\t", "--overlap=queue "),
        ("duly backup ./unli\t", "duly backup ./unlikely.db "),
    ],
)
def test_a_person_at_a_shell_types_the_beginning_and_gets_the_rest(
    named: Scene, shell: str, keys: str, wanted: str
) -> None:
    if shutil.which(shell, path=SHELLS_PATH) is None:
        pytest.skip(f"no {shell} on this machine")
    (named.home / "unlikely.db").touch()
    argv, begin = SHELLS[shell]
    seen = typed(named, argv, f"cd {named.home}; {begin}", keys, wanted)
    assert wanted in seen


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("duly ena", ["enable\tSwitch a task on."]),
        ("duly show m", ["my task\tevery day at 09:00"]),
        ("duly show 'my ", ["my task\tevery day at 09:00"]),
        ("duly show my\\ ", ["my task\tevery day at 09:00"]),
        ("duly add x --overlap=q", ["--overlap=queue"]),
    ],
)
def test_fish_is_given_words_with_what_they_mean(named: Scene, line: str, wanted: list[str]) -> None:
    if shutil.which("fish", path=SHELLS_PATH) is None:
        pytest.skip("no fish on this machine")
    done = subprocess.run(
        ["fish", "--no-config", "-c", "duly completion fish | source; complete -C $argv[1]", line],
        env=named.env | {"PATH": f"{named.env['PATH']}:{SHELLS_PATH}"},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert [told.rstrip() for told in done.stdout.splitlines()] == wanted, done.stderr
