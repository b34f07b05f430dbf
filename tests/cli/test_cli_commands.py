import json
import subprocess

import pytest
from cli_scene import DULY, Scene

NAMES = [
    "日次バックアップ",
    "ночь",
    "🚀 launch",
    "👩‍👩‍👧 family",
    "naïve",
    "a b",
    "%d 100%",
    "'quoted'",
    'say "hi"',
    "back\\slash",
    "مهمة",
]
WORDS = ["", " ", "a\nb", "tab\there", "%s", "$HOME", "`id`", "\\", '"', "'", "日本", "🚀", "--json", "-f", "--", "*"]


@pytest.mark.parametrize("name", NAMES)
def test_names_in_any_script_come_back_as_they_were_given(scene: Scene, name: str) -> None:
    assert scene.add(name)["name"] == name
    assert scene.ok("show", name, "--json").json["name"] == name
    assert name in scene.ok("list").out
    assert scene.call("add", name.upper(), "--when", "manual", "--", "true").code == 3


def test_a_name_is_kept_composed_and_found_however_it_is_typed(scene: Scene) -> None:
    assert scene.add("cafe\u0301")["name"] == "caf\u00e9"
    assert scene.ok("show", "CAFE\u0301", "--json").json["name"] == "caf\u00e9"


def test_the_words_of_a_command_arrive_byte_for_byte(scene: Scene) -> None:
    task = scene.add("words", argv=["printf", *WORDS])
    assert task["action"]["argv"] == ["printf", *WORDS]
    line = "echo 'a  b' \"$X\" | sed s/a/%/ \\\n && true"
    scene.ok("add", "line", "--when", "manual", "--shell", line)
    assert scene.ok("show", "line", "--json").json["action"]["shell"] == line


def test_words_after_the_first_dashes_are_never_ours(scene: Scene) -> None:
    called = scene.process("add", "x", "--when", "manual", "--", "git", "log", "--", "--json", "--store", "nowhere")
    assert called.code == 0, called
    assert called.out.startswith("added x")
    assert scene.ok("show", "x", "--json").json["action"]["argv"][1:] == ["log", "--", "--json", "--store", "nowhere"]


def test_add_answers_with_what_was_understood(scene: Scene) -> None:
    called = scene.ok("add", "x", "--when", "Weekly MON-FRI 9:00", "--zone", "europe/berlin", "--", "echo", "a b")
    for told in (
        "every weekday at 09:00",
        "weekly mon-fri 09:00",
        "Europe/Berlin",
        "echo 'a b'",
        "timeout 1d (default)",
    ):
        assert told in called.out
    assert called.out.count(" in ") >= 3
    assert "nobody serves this store" in called.err
    assert scene.ok("add", "y", "--when", "manual", "--json", "--", "true").err == ""


def test_a_task_without_zone_gets_the_machines_and_keeps_it(scene: Scene) -> None:
    scene.add("x")
    scene.monkeypatch.setenv("TZ", "America/New_York")
    assert scene.ok("show", "x", "--json").json["zone"] == "Europe/Berlin"
    scene.monkeypatch.setenv("TZ", "CST")
    called = scene.call("add", "y", "--when", "daily 09:00", "--", "true")
    assert called.code == 2
    assert called.first.startswith("duly: --zone: this machine's zone has no IANA name")
    scene.add("z", "--zone", "UTC")


def test_a_dry_run_answers_and_adds_nothing(scene: Scene) -> None:
    called = scene.ok("add", "x", "--when", "daily 09:00", "--dry-run", "--", "true")
    assert called.out.startswith("would add x")
    assert not scene.is_made()
    scene.add("y")
    before = scene.dump()
    assert scene.ok("add", "x", "--when", "daily 09:00", "--dry-run", "--json", "--", "true").json["dry_run"] is True
    assert scene.call("add", "Y", "--when", "daily 09:00", "--dry-run", "--", "true").code == 3
    assert scene.dump() == before


def test_a_name_in_two_projects_lists_the_candidates(scene: Scene) -> None:
    scene.add("x", "--project", "a")
    scene.add("x", "--project", "b")
    called = scene.call("show", "x", "--json")
    assert called.code == 2
    assert called.fault["details"]["candidates"] == ["a/x", "b/x"]
    assert scene.ok("show", "B/X", "--json").json["project"] == "b"


def test_ids_are_found_by_beginning_and_ending_and_win_over_names(scene: Scene) -> None:
    one, other = scene.add("one"), scene.add("other")
    ending = one["id"][-6:]
    assert scene.ok("show", ending, "--json").json["id"] == one["id"]
    assert scene.ok("show", one["id"], "--json").json["id"] == one["id"]
    assert scene.call("show", one["id"][:8]).code == 2
    scene.add(ending)
    assert scene.ok("show", ending, "--json").json["name"] == "one"
    assert scene.call("show", other["id"][-5:]).code == 4


def test_an_unknown_name_is_answered_with_the_nearest(scene: Scene) -> None:
    scene.add("backup")
    assert "try: duly show backup" in scene.call("show", "bakcup").err
    assert "try: backup" in scene.call("run", "bakcup").err


def test_removing_wants_a_yes_and_leaves_the_story(scene: Scene) -> None:
    task = scene.add("x")
    assert scene.call("remove", "x", "--json").fault["reason"] == "needs_confirmation"
    scene.ok("remove", "x", "--yes")
    called = scene.call("show", "x", "--json")
    assert (called.code, called.fault["reason"]) == (4, "unknown_id")
    kinds = [entry["kind"] for entry in scene.ok("ledger", "--task", task["id"], "--json").json["items"]]
    assert kinds == ["defined", "removed"]


def test_switches_and_holds_show_in_the_list(scene: Scene) -> None:
    for name in ("off", "held", "on"):
        scene.add(name)
    scene.ok("disable", "off")
    scene.ok("pause", "held", "--until", "2h", "--note", "disk")
    rows = {line.split()[0]: line.split()[-1] for line in scene.ok("list").out.splitlines()[1:]}
    assert rows == {"off": "disabled", "held": "paused", "on": "on"}
    assert "disk" in scene.ok("show", "held").out
    assert scene.call("run", "held", "--json").fault["reason"] == "paused"
    assert scene.ok("run", "held", "--anyway", "--json").json["state"] == "waiting"
    scene.ok("unpause", "held")
    scene.ok("enable", "off")
    assert {line.split()[-1] for line in scene.ok("list").out.splitlines()[1:]} == {"on"}


def test_run_takes_a_key_once_and_an_input_from_a_file(scene: Scene) -> None:
    scene.add("x")
    path = scene.home / "in.txt"
    path.write_text("ünïcode\n")
    first = scene.ok("run", "x", "--key", "k", "--input", f"@{path}", "--json").json
    assert first["input"] == "ünïcode\n"
    assert first["occurrence"] == "manual:k"
    assert scene.ok("run", "x", "--key", "k", "--input", "ünïcode\n", "--json").json["id"] == first["id"]
    assert scene.call("run", "x", "--key", "k", "--input", "other", "--json").fault["reason"] == "key_reused"
    assert scene.ok("run", "x", "--queue", "--input", "@@home", "--json").json["input"] == "@home"
    assert scene.ok("cancel", first["id"], "--json").json["outcome"] == "cancelled"
    assert scene.call("cancel", first["id"], "--json").fault["reason"] == "already_ended"


def test_why_a_run_waits_stands_on_its_screen(scene: Scene) -> None:
    scene.add("x")
    run = scene.ok("run", "x", "--json").json["id"]
    assert "waits for" in scene.ok("show", run).out
    assert "somebody to serve this store" in scene.ok("show", run).out
    assert "waits for somebody to serve" in scene.ok("runs").out


def test_following_a_run_that_waits_says_so_when_nobody_serves(scene: Scene) -> None:
    scene.add("x")
    run = scene.ok("run", "x", "--json").json["id"]
    with subprocess.Popen(
        [DULY, "log", "-f", run], env=scene.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as following:
        assert following.stderr is not None
        assert "nobody serves this store" in following.stderr.readline()
        scene.ok("cancel", run)
        assert following.communicate(timeout=60)[0] == ""
    assert following.returncode == 0
    assert scene.ok("log", "x", "-f").err == "", "it has ended"


def test_a_folder_that_is_not_there_is_warned_of_and_one_that_was_removed_is_refused(scene: Scene) -> None:
    add = ("add", "x", "--when", "manual", "--cwd")
    called = scene.ok(*add, "/nowhere", "--dry-run", "--", "true")
    assert called.first.startswith("warning: --cwd: /nowhere is no folder now")
    assert scene.ok(*add, "/nowhere", "--dry-run", "--json", "--", "true").json["warnings"]
    assert scene.ok(*add, "/", "--dry-run", "--", "true").err == ""
    gone = scene.home / "gone"
    gone.mkdir()
    scene.monkeypatch.chdir(gone)
    gone.rmdir()
    called = scene.call("add", "x", "--when", "manual", "--", "true")
    assert (called.code, called.first) == (2, "duly: --cwd: this folder has been removed")
    assert scene.ok(*add, "/", "--", "true").err.startswith("hint: nobody")


def test_a_definition_that_no_longer_reads_is_shown_and_blocks_nobody(scene: Scene) -> None:
    scene.add("bad")
    scene.add("good")
    text = json.loads(scene.sql("SELECT definition FROM tasks WHERE name = 'bad'")[0][0])
    text["rules"] = {"overlap": "often"}
    scene.sql("UPDATE tasks SET definition = ? WHERE name = 'bad'", json.dumps(text))
    items = {item["name"]: item for item in scene.ok("list", "--json").json["items"]}
    assert items["bad"]["broken"]["field"] == "rules.overlap"
    assert items["bad"]["enabled"] is True
    assert items["good"]["broken"] is None
    assert "broken" in scene.ok("list").out
    assert "rules.overlap" in scene.ok("show", "bad").out
    assert scene.ok("status", "--json").json["tasks"]["broken"] == 1
    assert [item["task_name"] for item in scene.ok("next", "-n", "1", "--json").json["items"]] == ["good"]


def test_reading_changes_no_row(scene: Scene) -> None:
    task = scene.add("x", when="every 1s")
    scene.ok("run", "x")
    before = scene.dump()
    for ask in (
        ("list",),
        ("show", "x"),
        ("show", task["id"]),
        ("runs",),
        ("next",),
        ("status",),
        ("ledger",),
        ("verify",),
    ):
        for form in ((), ("--json",)):
            assert scene.call(*ask, *form).code in {0, 1}
    assert scene.dump() == before


def test_a_preview_marks_what_a_gap_and_a_fold_do(scene: Scene) -> None:
    ask = ("preview", "daily 02:30", "--zone", "Europe/Berlin", "-n", "2", "--json", "--after")
    spring = scene.ok(*ask, "2026-03-28T12:00:00Z").json["items"]
    assert [(one["due_at"], one["note"]) for one in spring] == [
        ("2026-03-29T01:00:00Z", "gap"),
        ("2026-03-30T00:30:00Z", None),
    ]
    autumn = scene.ok(*ask, "2026-10-24T12:00:00Z").json["items"]
    assert [(one["due_at"], one["note"], one["offset"]) for one in autumn] == [
        ("2026-10-25T00:30:00Z", "fold", "+02:00"),
        ("2026-10-26T01:30:00Z", None, "+01:00"),
    ]
    ordinary = (
        "preview",
        "daily 03:00",
        "--zone",
        "Europe/Berlin",
        "-n",
        "1",
        "--json",
        "--after",
        "2026-03-28T12:00:00Z",
    )
    assert scene.ok(*ordinary).json["items"][0]["note"] is None


def test_a_description_is_on_the_wall_of_the_tasks_own_zone(scene: Scene) -> None:
    scene.monkeypatch.setenv("TZ", "Australia/Adelaide")
    found = scene.ok(
        "preview", "0 0 1 * *", "--zone", "America/Los_Angeles", "--after", "2026-05-15T00:00:00Z", "--json"
    ).json
    first = found["items"][0]
    assert (first["due_at"], first["local"], first["offset"]) == (
        "2026-06-01T07:00:00Z",
        "2026-06-01T00:00:00",
        "-07:00",
    )
    assert "00:00" in found["words"]
