"""`edit`: by options, from a file, and in an editor; nothing that was written is lost."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from cli_scene import DULY, Called, Scene

from duly.cli import definition_text

BASE = ("edit", "kept")
BAD: dict[str, tuple[tuple[str, ...], int, str]] = {
    "no such task": (("edit", "nobody", "--max-age", "1h"), 4, 'duly: there is no task "nobody"'),
    "when past": ((*BASE, "--when", "once 2020-01-01 09:00"), 2, "duly: --when: "),
    "when unreadable": ((*BASE, "--when", "daily 25:00"), 2, "duly: --when: `25:00` is not a time"),
    "zone": ((*BASE, "--zone", "Mars/Olympus"), 2, "duly: --zone: "),
    "name taken": ((*BASE, "--name", "OTHER"), 3, "duly: there is a task other already"),
    "name": ((*BASE, "--name", "a/b"), 2, 'duly: NAME: "a/b" has a slash'),
    "name empty": ((*BASE, "--name", ""), 2, "duly: NAME: a name has at least one character"),
    "stale": ((*BASE, "--max-age", "1h", "--if-version", "7"), 3, "duly: kept is at version 1, not 7: defined by "),
    "no version": ((*BASE, "--max-age", "1h", "--if-version", "v1"), 2, "duly: --if-version: "),
    "clear nothing": ((*BASE, "--clear", "hue"), 2, 'duly: --clear: there is nothing to clear by the name "hue"'),
    "clear near": ((*BASE, "--clear", "max_aeg"), 2, "duly: --clear: there is nothing to clear"),
    "clear an entry": ((*BASE, "--clear", "max-age.x"), 2, "duly: --clear: there is nothing to clear"),
    "clear the name": ((*BASE, "--clear", "name"), 2, "duly: --clear: there is nothing to clear"),
    "set and clear": ((*BASE, "--clear", "max-age", "--max-age", "1h"), 2, "duly: --clear: it is given and cleared"),
    "set and clear an entry": ((*BASE, "--clear", "env.A", "--env", "A=1"), 2, "duly: --clear: it is given and"),
    "clear cwd": ((*BASE, "--clear", "cwd"), 2, "duly: --cwd: it would be without a folder"),
    "words": ((*BASE, "true"), 2, 'duly: COMMAND: "true" was not expected'),
    "no command": ((*BASE, "--"), 2, "duly: COMMAND: it is missing"),
    "both commands": ((*BASE, "--shell", "x", "--", "y"), 2, "duly: --shell: a command after -- and --shell"),
    "file and options": ((*BASE, "--file", "x", "--max-age", "1h"), 2, "duly: --file: a whole definition and"),
    "file": ((*BASE, "--file", "/nowhere/x"), 2, "duly: --file: /nowhere/x cannot be read: No such file"),
    "folder as file": ((*BASE, "--file", "/"), 2, "duly: --file: / cannot be read: Is a directory"),
    "contradiction": ((*BASE, "--until", "2020-01-01 00:00"), 2, "duly: --until: nothing is due within these bounds"),
    "partner": ((*BASE, "--at-most", "3"), 2, "duly: --at-most: it counts with on_missed run_all only"),
    "weight": ((*BASE, "--limit", "db=2"), 2, "duly: --limit: its weight is 2, and db allows until it is set: 1"),
    "description": ((*BASE, "--description", "d" * 2001), 2, "duly: --description: it has 2,001"),
}


@pytest.mark.parametrize("name", BAD)
def test_an_edit_that_cannot_be_is_told_in_one_line_and_changes_nothing(scene: Scene, name: str) -> None:
    scene.add("kept", "--max-age", "2h")
    scene.add("other")
    before = scene.dump()
    args, code, first = BAD[name]
    called = scene.call(*args)
    assert (called.code, called.out) == (code, ""), called
    assert called.first.startswith(first), called
    assert "Traceback" not in called.err
    assert scene.dump() == before


def test_an_edit_answers_with_what_changed_and_what_comes_next(scene: Scene) -> None:
    task = scene.add("kept", "--max-age", "2h", "--env", "A=1", argv=["echo", "a b"])
    called = scene.ok(*BASE, "--when", "daily 10:00", "--clear", "max-age", "--name", "Nightly", "--", "date", "+%s")
    lines = [" ".join(line.split()) for line in called.out.splitlines()]
    assert lines[0] == f"edited Nightly {task['id']} version 2"
    assert lines[1:5] == [
        "name kept → Nightly",
        "when daily 09:00 → daily 10:00",
        "command echo 'a b' → date +%s",
        "max_age 2h → 6h (default)",
    ]
    assert lines[5].startswith("next ")
    assert "10:00:00" in lines[5]
    assert "nobody serves this store" in called.err
    shown = scene.ok("show", "nightly", "--json").json
    assert (shown["id"], shown["version"], shown["action"]["env"]) == (task["id"], 2, {"A": "1"})
    assert scene.ok("edit", "nightly", "--when", "daily 10:00").out.startswith("Nightly is so already: nothing")


def test_an_edit_as_json_has_the_task_and_its_changes(scene: Scene) -> None:
    scene.add("kept", "--description", "old")
    done = scene.ok(*BASE, "--description", "new", "--retries", "2", "--if-version", "1", "--json").json
    assert done["changes"] == [
        {"field": "description", "old": "old", "new": "new"},
        {"field": "rules.retries", "old": None, "new": 2},
    ]
    assert (done["version"], done["new_era"], done["ended"], done["dry_run"]) == (2, False, 0, False)
    assert done["own_rules"] == ["retries"]
    assert done["upcoming"][0]["due_at"] == done["next_due_at"]
    conflict = scene.call(*BASE, "--retries", "3", "--if-version", "1", "--json")
    assert (conflict.code, conflict.fault["reason"]) == (3, "version_conflict")
    assert {"asked": 1, "version": 2, "kind": "defined"}.items() <= conflict.fault["details"].items()
    assert conflict.fault["details"]["by"]


def test_maps_are_added_to_and_lists_are_replaced(scene: Scene) -> None:
    scene.ok("init")
    scene.ok("limit", "set", "db", "3")
    scene.add("kept", "--env", "A=1", "--env", "B=2", "--label", "a=b", "--limit", "db", "--needs", "gpu")
    done = scene.ok(*BASE, "--env", "B=3", "--label", "c=d", "--limit", "db=2", "--needs", "disk", "--json").json
    assert (done["action"]["env"], done["labels"]) == ({"A": "1", "B": "3"}, {"a": "b", "c": "d"})
    assert (done["rules"]["limits"], done["rules"]["needs"]) == ({"db": 2}, ["disk"])
    done = scene.ok(*BASE, "--clear", "env.B", "--clear", "labels", "--clear", "limit", "--json").json
    assert (done["action"]["env"], done["labels"], done["rules"]["limits"]) == ({"A": "1"}, {}, {})
    done = scene.ok(*BASE, "--clear", "env", "--env", "C=1", "--json").json
    assert done["action"]["env"] == {"C": "1"}


def test_a_dry_run_of_an_edit_answers_and_changes_nothing(scene: Scene) -> None:
    scene.add("kept")
    before = scene.dump()
    called = scene.ok(*BASE, "--when", "daily 10:00", "--dry-run")
    assert called.out.startswith("would edit kept")
    assert called.err == ""
    assert scene.ok(*BASE, "--when", "daily 10:00", "--dry-run", "--json").json["dry_run"] is True
    assert scene.dump() == before


def test_words_of_a_command_arrive_byte_for_byte_in_an_edit(scene: Scene) -> None:
    scene.add("kept")
    line = "echo 'a  b' \"$X\" \\\n && true"
    scene.ok(*BASE, "--shell", line)
    assert scene.ok("show", "kept", "--json").json["action"]["shell"] == line
    words = ["printf", "", " ", "a\nb", "%s", "`id`", "\\", '"', "日本", "--json", "--", "*"]
    scene.ok(*BASE, "--", *words)
    action = scene.ok("show", "kept", "--json").json["action"]
    assert (action["argv"], "shell" in action) == (words, False)


def test_what_is_done_may_become_another_kind_of_thing_and_back(scene: Scene) -> None:
    scene.add("kept", "--env", "A=1")
    called = scene.ok(*BASE, "--call", "os.path:basename", "--args", '["/a/b", null]')
    assert 'calls  true → os.path:basename("/a/b", null)' in called.out
    action = scene.ok("show", "kept", "--json").json["action"]
    assert (action["kind"], action["function"], action["env"]) == ("call", "os.path:basename", {"A": "1"})
    refused = scene.call(*BASE, "--in", "thread")
    assert (refused.code, refused.first[:15]) == (2, "duly: --cwd: a ")
    scene.ok(*BASE, "--in", "thread", "--clear", "cwd", "--clear", "env")
    assert scene.ok(*BASE, "--args", "[1]", "--json").json["action"]["args"] == [1]
    back = scene.ok(*BASE, "--shell", "date", "--cwd", "/", "--json").json["action"]
    assert (back["kind"], back["shell"], "args" in back, "function" in back) == ("command", "date", False, False)
    for words in (
        ("--args", "[1]"),
        ("--in", "thread"),
        ("--shell", "x", "--call", "a:b"),
        ("--args", "[1]", "--", "x"),
    ):
        assert scene.call(*BASE, *words).code == 2, words


# In an editor


EDITOR = """#!{python}
import json, sys
from pathlib import Path
path, steps = Path(sys.argv[-1]), Path({steps!r})
left = json.loads(steps.read_text())
seen = Path({seen!r})
with seen.open("a") as file:
    file.write(path.read_text(errors="surrogateescape") + "\\f")
what = left.pop(0)
steps.write_text(json.dumps(left))
if what == "gone":
    path.unlink()
elif isinstance(what, int):
    sys.exit(what)
elif isinstance(what, dict) and "add" in what:
    path.write_text(path.read_text() + what["add"])
elif isinstance(what, dict):
    text = path.read_text()
    for old, new in what.items():
        assert old in text, (old, text)
        text = text.replace(old, new)
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
"""


class Editor:
    """An editor that does what it is told, one step an opening; and what it saw."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.steps, self.seen_in = scene.home / "steps.json", scene.home / "seen"
        program = scene.home / "my editor"
        program.write_text(EDITOR.format(python=sys.executable, steps=str(self.steps), seen=str(self.seen_in)))
        program.chmod(0o755)
        scene.monkeypatch.setenv("EDITOR", shlex.quote(str(program)))
        scene.monkeypatch.delenv("VISUAL", raising=False)

    def edit(self, *steps: object, args: tuple[str, ...] = ()) -> Called:
        self.steps.write_text(json.dumps(steps))
        self.seen_in.unlink(missing_ok=True)
        called = self.scene.call(*BASE, *args)
        assert json.loads(self.steps.read_text()) == [], (called, "steps were left")
        return called

    @property
    def seen(self) -> list[str]:
        return self.seen_in.read_text().split("\f")[:-1]

    @property
    def kept(self) -> list[Path]:
        folder = self.scene.home / ".local" / "state" / "duly" / "edits"
        return sorted(folder.iterdir()) if folder.exists() else []


@pytest.fixture
def editor(scene: Scene) -> Editor:
    scene.add("kept", "--max-age", "2h", "--env", "A=1", "--description", "why")
    return Editor(scene)


def test_a_task_is_edited_whole_in_an_editor(editor: Editor) -> None:
    called = editor.edit(
        {'"daily 09:00"': '"daily 10:00", "every 2h"', 'max_age = "2h"\n': "", "# retries = 0": "retries = 3"}
    )
    assert called.code == 0, called
    assert "when     daily 09:00 → daily 10:00; every 2h from" in called.out
    assert "max_age  2h → 6h (default)" in called.out
    shown = editor.scene.ok("show", "kept", "--json").json
    assert (shown["own_rules"], shown["rules"]["retries"], shown["version"]) == (["retries"], 3, 2)
    assert editor.kept == [], "what was taken over needs no file"
    (seen,) = editor.seen
    assert seen.startswith("# kept (tsk_")
    assert 'triggers = ["daily 09:00"]' in seen
    assert '# on_missed = "run"' in seen


@pytest.mark.parametrize("step", [None, "gone", {"add": "\n# a comment of mine\n"}])
def test_a_text_left_as_it_was_or_thrown_away_or_only_commented_changes_nothing(editor: Editor, step: object) -> None:
    before = editor.scene.dump()
    called = editor.edit(step)
    assert called.code == 0, called
    assert called.out in {"kept was left as it is\n", "kept is so already: nothing was changed  version 1\n"}
    assert editor.scene.dump() == before
    assert editor.kept == []


def test_a_text_that_cannot_be_taken_is_opened_again_with_the_fault_at_its_top_until_it_can(editor: Editor) -> None:
    called = editor.edit(
        {'"daily 09:00"': '"daily 25:00"'},
        {'max_age = "2h"': 'max_age = "2"'},
        {'"daily 25:00"': '"daily 23:00"'},
        {'max_age = "2"': 'max_age = "2h'},
        {'max_age = "2h': 'max_age = "3h"'},
    )
    assert called.code == 0, called
    first, second, third, fourth, fifth = editor.seen
    assert not first.startswith("#!")
    assert second.startswith("#! triggers[0]: `25:00` is not a time\n#!   daily 25:00\n#!         ^\n#!   try: ")
    assert third.startswith("#! "), "several faults are told one after another"
    assert fourth.startswith("#! rules.max_age: a span needs a unit\n")
    assert fifth.startswith("#! line "), fifth[:200]
    assert "is not TOML" in fifth
    assert second.count("#! Mend it and save.") == fifth.count("#! Mend it and save.") == 1, "old marks are gone"
    shown = editor.scene.ok("show", "kept", "--json").json
    assert (shown["rules"]["max_age"], shown["triggers"][0]["times"]) == ("3h", ["23:00"])
    assert editor.kept == []


@pytest.mark.parametrize("give_up", [None, "gone"])
def test_a_text_that_is_given_up_is_kept_whole_in_a_file_whose_path_is_told(editor: Editor, give_up: object) -> None:
    before = editor.scene.dump()
    called = editor.edit({'"why"': '"an hour of work"', '"2h"': '"2 hours"'}, give_up)
    assert editor.scene.dump() == before
    (path,) = editor.kept
    assert str(path) in called.err
    assert path.stat().st_mode & 0o777 == 0o600
    text = path.read_text()
    assert 'description = "an hour of work"' in text
    assert not text.startswith("#!")
    if give_up is None:
        assert (called.code, called.err.splitlines()[1]) == (2, "duly: rules.max_age: `hours` is not a unit")
    else:
        assert (called.code, called.out) == (0, "kept was left as it is\n")
    path.write_text(text.replace('"2 hours"', '"2h"'))
    done = editor.scene.ok(*BASE, "--file", str(path), "--json").json
    assert done["description"] == "an hour of work"


def test_an_editor_that_fails_changes_nothing_and_what_was_typed_before_is_kept(editor: Editor) -> None:
    before = editor.scene.dump()
    called = editor.edit(3)
    assert (called.code, called.first[:22]) == (2, "duly: EDITOR: the edit")
    assert editor.kept == []
    called = editor.edit({'"2h"': '"2 hours"'}, 3)
    assert called.code == 2
    assert len(editor.kept) == 1
    assert editor.scene.dump() == before


def test_no_editor_at_all_is_told_with_what_to_do(editor: Editor) -> None:
    editor.scene.monkeypatch.setenv("EDITOR", "")
    editor.scene.monkeypatch.setenv("PATH", "/nowhere")
    called = editor.scene.call(*BASE)
    assert (called.code, called.first) == (2, "duly: EDITOR: no editor is set")
    assert editor.kept == []


def test_a_task_that_somebody_else_changed_meanwhile_is_not_written_over_and_the_text_is_kept(editor: Editor) -> None:
    other = editor.scene.home / "racing"
    other.write_text(
        f'#!/bin/sh\n{DULY} edit kept --description theirs >/dev/null 2>&1\nsed -i \'s/"why"/"mine"/\' "$1"\n'
    )
    other.chmod(0o755)
    editor.scene.monkeypatch.setenv("VISUAL", str(other))
    called = editor.scene.call(*BASE)
    assert called.code == 3, called
    assert "kept is at version 2, not 1: defined by" in called.err
    (path,) = editor.kept
    assert 'description = "mine"' in path.read_text()
    assert editor.scene.ok("show", "kept", "--json").json["description"] == "theirs"


def test_every_text_that_can_stand_in_a_definition_comes_back_from_the_editor_as_it_was(editor: Editor) -> None:
    texts = [
        "", " ", "a\nb\n", "\n\n", "tab\there", "quote ' and ''' and \"\"\" \\", "ends with '", "cr\r\nlf\r", "日本 🚀",
        "\x7f\x1b[31m", "#! not ours", "''' x", "\\u0041", "{{due_at}} %s $HOME `id`",
    ]  # fmt: skip
    env = {f"V{number}": text for number, text in enumerate(texts)} | {"odd.key ü": "x"}
    options = [word for key, value in env.items() for word in ("--env", f"{key}={value}")]
    shell = "#! /bin/sh\necho '''\\''' \"\"\"\n\techo\n"
    editor.scene.ok(*BASE, *options, "--shell", shell, "--description", "many\nlines\n", "--label", "a.b=c d")
    before = editor.scene.ok("show", "kept", "--json").json
    assert editor.edit({"# retries = 0": "retries = 1"}).code == 0
    after = editor.scene.ok("show", "kept", "--json").json
    assert after["action"] == before["action"]
    assert after["action"]["shell"] == shell
    assert (after["description"], after["labels"]) == ("many\nlines\n", {"a.b": "c d"})
    assert after["rules"]["retries"] == 1


def test_arguments_of_a_call_come_back_from_the_editor_as_they_were_null_among_them(editor: Editor) -> None:
    args = [1, 2.5, "x", True, {"a b": [None, {"c": ["d"]}]}]
    for given in (args, args[:-1], {"a": {"b": 1}, "c": []}):
        editor.scene.ok(*BASE, "--call", "os.path:join", "--args", json.dumps(given))
        assert editor.edit({"# retries = 0": "retries = 1"}).code == 0
        shown = editor.scene.ok("show", "kept", "--json").json
        assert (shown["action"]["args"], shown["rules"]["retries"]) == (given, 1)
        editor.scene.ok(*BASE, "--clear", "retries")


def test_times_may_be_written_as_toml_has_them(editor: Editor) -> None:
    called = editor.edit(
        {"# start = ": "start = 2027-03-01T08:00:00+01:00 #", "# until = ": "until = 2028-03-01 09:00:00 #"}
    )
    assert called.code == 0, called
    rules = editor.scene.ok("show", "kept", "--json").json["rules"]
    assert (rules["start"], rules["until"]) == ("2027-03-01T07:00:00Z", "2028-03-01T08:00:00Z")


def test_a_broken_definition_is_mended_in_the_editor(editor: Editor) -> None:
    editor.scene.sql("UPDATE tasks SET definition = replace(definition, '\"2h\"', '\"2 hours\"')")
    called = editor.edit({'max_age = "2 hours"': 'max_age = "4h"'})
    assert called.code == 0, called
    assert "# It no longer reads: rules.max_age: `hours` is not a unit" in editor.seen[0]
    shown = editor.scene.ok("show", "kept", "--json").json
    assert (shown["broken"], shown["rules"]["max_age"]) == (None, "4h")


def test_with_json_only_the_document_goes_to_standard_output(editor: Editor) -> None:
    noisy = editor.scene.home / "noisy"
    noisy.write_text('#!/bin/sh\necho noise\nsed -i \'s/"why"/"because"/\' "$1"\n')
    noisy.chmod(0o755)
    editor.scene.monkeypatch.setenv("EDITOR", str(noisy))
    called = editor.scene.process(*BASE, "--json", env={"EDITOR": str(noisy)})
    assert (called.code, called.json["description"]) == (0, "because")
    assert "noise" in called.err
    same = editor.scene.process(*BASE, "--json", env={"EDITOR": "true"})
    assert (same.code, same.json["changes"]) == (0, [])


def test_a_whole_definition_comes_from_standard_input_too(scene: Scene) -> None:
    scene.add("kept", "--max-age", "2h")
    text = 'name = "kept"\ntriggers = ["manual"]\n[action]\nkind = "command"\nargv = ["date"]\ncwd = "/"\n'
    done = subprocess.run(
        [DULY, *BASE, "--file", "-", "--json"], env=scene.env, input=text, text=True, capture_output=True, check=True
    )
    shown = json.loads(done.stdout)
    assert (shown["triggers"], shown["own_rules"], shown["zone"]) == ([], [], "Europe/Berlin")
    huge = scene.home / "huge.toml"
    huge.write_text(f'{text}description = "{"x" * 10_000_000}"\n')
    called = scene.call(*BASE, "--file", str(huge))
    assert (called.code, called.first) == (2, "duly: action.description: there is no such field")
    huge.write_text(f'description = "{"x" * 10_000_000}"\n{text}')
    assert scene.call(*BASE, "--file", str(huge)).first.startswith("duly: description: it has 10,000,000 characters")
    huge.write_bytes(b"#" * (definition_text.TEXT_MOST + 1))
    assert scene.call(*BASE, "--file", str(huge)).first == "duly: text: it is longer than 16 MiB"


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("", "duly: name: it is missing"),
        ("name", "duly: line 1: it is not TOML: "),
        ('name = "kept"\nname = "x"', "duly: line 2: it is not TOML: "),
        ('name = "nul\\u0000"', "duly: name: "),
        ("a = " + "[" * 5_000, "duly: "),
        (
            'name = "kept"\n[action]\nkind = "command"\nargv = ["a"]\n[rules]\nretries = 1.5',
            "duly: rules.retries: 1.5",
        ),
        ('name = "kept"\nzone = 5', "duly: zone: "),
        ('name = "kept"\ntriggers = "daily 09:00"', "duly: triggers: "),
    ],
)
def test_a_file_that_is_no_definition_is_refused_with_the_place(scene: Scene, text: str, first: str) -> None:
    scene.add("kept")
    before = scene.dump()
    path = scene.home / "x.toml"
    path.write_text(text)
    called = scene.call(*BASE, "--file", str(path))
    assert (called.code, called.out) == (2, "")
    assert called.first.startswith(first), called
    assert scene.dump() == before


def test_what_a_runs_own_work_makes_and_changes_is_recorded_with_the_run(scene: Scene) -> None:
    user = scene.add("first")["created_by"]
    run = scene.ok("run", "first", "--json").json["id"]
    scene.monkeypatch.setenv("DULY_RUN", run)
    assert scene.add("second")["created_by"] == f"{user} in {run}"
    scene.ok("edit", "second", "--max-age", "1h")
    entries = scene.ok("ledger", "--task", "second", "--json").json["items"]
    assert {entry["by"] for entry in entries} == {f"{user} in {run}"}
    for other in ("", "run_1", "run_" + "!" * 26, f"{run}x", f"tsk_{run[4:]}"):
        scene.monkeypatch.setenv("DULY_RUN", other)
        assert scene.ok("edit", "second", "--description", f"x{other}", "--json").json["created_by"].endswith(run)
    assert scene.ok("ledger", "--task", "second", "--json").json["items"][-1]["by"] == user
