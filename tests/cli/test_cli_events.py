"""`emit`, and what the other commands say of tasks that listen: shapes for programs, screens for people."""

import json

import pytest
from cli_scene import Scene

from duly.cli.table import cells_of

EVENT = {"id", "source", "key", "at", "by", "through", "data"}
EMITTED = {*EVENT, "again", "runs", "not_opened"}
LISTENS = "on git.push where repo=duly and branch=main throttle 10m by branch"


def screen(scene: Scene, *args: str, columns: int = 80) -> list[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(columns))
        lines = scene.ok(*args).out.splitlines()
    assert all(cells_of(line) <= columns for line in lines), lines
    return lines


@pytest.fixture
def listening(scene: Scene) -> Scene:
    """A scene with a task that takes pushes, one that is switched off, and one that waits for the first."""
    scene.add("build", when=LISTENS)
    scene.add("audit", "--disabled", when="on git.push")
    scene.add("publish", when="on duly.run.ended where task=build and outcome=succeeded")
    return scene


PUSH = ("emit", "git.push", "--data", '{"repo": "Duly", "branch": "main", "n": 1.50}')


def test_what_emit_answers_has_one_shape_the_first_time_and_again(listening: Scene) -> None:
    first = listening.ok(*PUSH, "--key", "k1", "--json").json
    again = listening.ok(*PUSH, "--key", "k1", "--json").json
    assert set(first) == set(again) == EMITTED
    assert (first["source"], first["key"], first["again"], again["again"]) == ("git.push", "k1", False, True)
    assert first["data"] == {"repo": "Duly", "branch": "main", "n": 1.5}
    assert {name: value for name, value in again.items() if name != "again"} == {
        name: value for name, value in first.items() if name != "again"
    }
    (run,) = first["runs"]
    assert set(run) == {"id", "state", "outcome", "task", "task_name", "project"}
    assert (run["task_name"], run["project"], run["state"], run["outcome"]) == ("build", "default", "waiting", None)
    (passed,) = first["not_opened"]
    assert set(passed) == {"task", "task_name", "project", "reason", "message"}
    assert (passed["task_name"], passed["reason"]) == ("audit", "disabled")


def test_emit_says_which_runs_it_opened_whom_it_passed_over_and_that_nobody_serves(listening: Scene) -> None:
    called = listening.ok(*PUSH, "--key", "k1")
    head, columns, build, audit = called.out.splitlines()
    assert head.startswith("git.push k1  evt_")
    assert columns.split() == ["TASK", "RUN", "STATE", "WHY"]
    assert build.split()[0] == "build"
    assert build.endswith("… waiting")
    assert audit.split() == ["audit", "not", "opened", "it", "is", "disabled"]
    assert called.err.startswith("hint: nobody serves this store: what it opened waits until somebody does")
    again = listening.ok(*PUSH, "--key", "k1").out.splitlines()
    assert again[0].endswith(", emitted before: nothing new was opened")
    assert again[1:] == [columns, build, audit]


def test_at_80_columns_a_throttled_task_is_told_with_the_end_of_its_window(listening: Scene) -> None:
    listening.ok(*PUSH)
    lines = screen(listening, *PUSH)
    (row,) = [line for line in lines if line.startswith("build")]
    assert "not opened  throttled until 2" in row
    assert row.endswith("Z, one in 10m")
    (row,) = [line for line in screen(listening, *PUSH, columns=50) if line.startswith("build")]
    assert row.endswith("suppressed")


def test_an_event_that_nobody_takes_says_so_and_names_what_was_probably_meant(listening: Scene) -> None:
    called = listening.ok("emit", "git.psh")
    assert called.out.splitlines()[1] == "no task takes it"
    assert called.err == "hint: there are tasks that listen to git.push\n"
    assert listening.ok("emit", "git.push", "--json").json["runs"] == []
    assert listening.ok("emit", "elsewhere").err == ""


def test_data_may_come_from_a_file_and_are_kept_as_they_stand_there(listening: Scene) -> None:
    text = '{\n "repo": "duly", "branch": ["main", "x"], "big": 12345678901234567890\n}\n'
    (listening.home / "push.json").write_text(text)
    answer = listening.ok("emit", "git.push", "--data", f"@{listening.home}/push.json", "--json").json
    assert [run["task_name"] for run in answer["runs"]] == ["build"]
    with listening.opened() as store, store.read() as session:
        kept = session.events.by_id(answer["id"])
    assert kept is not None
    assert kept.body == text.strip()
    listening.ok("emit", "git.push")
    assert listening.ok("emit", "git.push", "--json").json["data"] is None


def test_a_run_shows_the_event_it_was_opened_for(listening: Scene) -> None:
    run = listening.ok(*PUSH, "--key", "k1", "--json").json["runs"][0]["id"]
    listed = listening.ok("runs", "--json").json["items"][0]
    assert set(listed["event"]) == {"id", "source", "key", "at"}
    assert (listed["event"]["source"], listed["event"]["key"]) == ("git.push", "k1")
    shown = listening.ok("show", run, "--json").json["event"]
    assert set(shown) == EVENT
    assert shown["data"] == {"repo": "Duly", "branch": "main", "n": 1.5}
    text = listening.ok("show", run).out
    assert "event       git.push k1 by " in text
    assert 'data        {"repo": "Duly", "branch": "main", "n": 1.50}' in text
    assert "event by " in text
    by_hand = listening.ok("run", "build", "--queue", "--json").json
    assert by_hand["event"] is None


def test_large_data_are_cut_on_the_screen_and_whole_in_json(listening: Scene) -> None:
    data = json.dumps({"repo": "duly", "branch": "main", "text": "x" * 5000})
    run = listening.ok("emit", "git.push", "--data", data, "--json").json["runs"][0]["id"]
    (line,) = [line for line in listening.ok("show", run).out.splitlines() if line.startswith("data")]
    assert line.endswith("x…")
    assert len(line) < 250
    assert listening.ok("show", run, "--json").json["event"]["data"]["text"] == "x" * 5000


def test_a_pruned_event_leaves_its_run_its_id(listening: Scene) -> None:
    answer = listening.ok(*PUSH, "--json").json
    listening.sql("DELETE FROM events")
    shown = listening.ok("show", answer["runs"][0]["id"], "--json").json
    assert shown["event"] == {"id": answer["id"], "source": None, "key": None, "at": None}
    assert answer["runs"][0]["id"] in listening.ok("show", answer["runs"][0]["id"]).out


def test_list_show_next_and_preview_say_what_starts_a_task_that_listens(listening: Scene) -> None:
    rows = {line.split()[0]: line for line in screen(listening, "list", columns=140)[1:]}
    assert "on git.push where branch is main and repo is duly, at most once every 10 minutes" in rows["build"]
    assert "on event" in rows["build"]
    assert "on event" not in rows["audit"]
    narrow = {line.split()[0]: line for line in screen(listening, "list")[1:]}
    assert "on git.push" in narrow["build"]
    assert "…" not in "".join(narrow.values())
    shown = listening.ok("show", "build", "--json").json
    assert shown["words"].startswith("on git.push where branch is main")
    assert shown["canonical"] == "on git.push where branch=main and repo=duly throttle 10m by branch"
    assert (shown["next_due_at"], shown["upcoming"], shown["sources"]) == (None, [], [])
    assert "next       when an event comes" in listening.ok("show", "build").out
    listening.ok(*PUSH, "--key", "k7")
    text = listening.ok("show", "build").out
    assert "heard      git.push k7 " in text
    assert ", 1 in all" in text
    (source,) = listening.ok("show", "build", "--json").json["sources"]
    assert set(source) == {"name", "last_at", "last_key", "received"}
    assert listening.ok("next", "--json").json["items"] == []
    assert "by events alone" in listening.ok("next").err
    previewed = listening.ok("preview", LISTENS)
    assert "no instant: an event starts it, such as `duly emit git.push`" in previewed.out
    found = listening.ok("preview", LISTENS, "--json").json
    assert (found["items"], found["triggers"][0]["kind"]) == ([], "event")


def test_add_says_what_will_start_it(scene: Scene) -> None:
    called = scene.ok("add", "a", "--when", "on deploy", "--when", "daily 09:00", "--", "true")
    assert "on deploy; every day at 09:00" in called.out
    assert "when an event comes: `duly emit deploy`" in scene.ok("add", "b", "--when", "on deploy", "--", "true").out
    added = scene.ok("add", "c", "--when", "on duly.missed", "--", "true").out
    assert "next       when an event comes\n" in added


def test_the_ledger_tells_of_events_opened_and_suppressed(listening: Scene) -> None:
    listening.ok(*PUSH, "--key", "k1")
    listening.ok(*PUSH, "--key", "k2")
    text = listening.ok("ledger", "--task", "build").out
    assert "source git.push, key k1" in text
    assert "suppressed" in text
    screen(listening, "ledger")
    items = listening.ok("ledger", "--task", "build", "--json").json["items"]
    assert [item["occurrence"] for item in items] == [None, "event:git.push:k1", "event:git.push:k2"]
    (told,) = [item for item in items if item["reason"] == "suppressed"]
    assert (told["kind"], told["run"]) == ("skipped", None)
    assert set(told["details"]) >= {"event", "source", "key", "why", "until", "within", "alike"}


def test_a_cycle_of_chains_is_refused_and_spelled_out_and_a_dry_run_says_so_too(listening: Scene) -> None:
    ask = ("add", "build2", "--when", "on duly.run.ended where task=build2", "--", "true")
    for words in (ask, (*ask[:-2], "--dry-run", *ask[-2:])):
        called = listening.call(*words)
        assert called.code == 2
        assert called.first == 'duly: --when: its end would start it again: "build2" → "build2"'


def test_a_store_that_is_not_there_is_not_made_by_an_event(scene: Scene) -> None:
    called = scene.call("emit", "deploy")
    assert called.code == 5
    assert not scene.is_made()
