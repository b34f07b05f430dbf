"""`skip` and `retry` as people and scripts use them."""

from datetime import datetime, timedelta

import pytest
from cli_scene import Scene, ended

from duly.core.spans import write_instant
from duly.zones import zone

SKIP = "task task_name count first last runs already"


def next_of(scene: Scene, task: str, count: int = 3) -> list[datetime]:
    items = scene.ok("next", task, "-n", str(count), "--json").json["items"]
    return [datetime.fromisoformat(item["due_at"]) for item in items]


def test_skip_next_answers_with_what_it_left_out_and_every_list_shows_it(scene: Scene) -> None:
    scene.add("hello", when="daily 09:00")
    first, second, _ = next_of(scene, "hello")
    done = scene.ok("skip", "hello", "--next", "--note", "away", "--json").json
    assert set(done) == set(SKIP.split())
    assert (done["count"], done["first"], done["runs"], done["already"]) == (1, write_instant(first), [], False)
    items = scene.ok("next", "hello", "--json").json["items"]
    assert items[0]["skipped"]["note"] == "away"
    assert [item["skipped"] for item in items[1:3]] == [None, None]
    assert "skipped by" in scene.ok("next").out
    assert "(skipped by" in scene.ok("show", "hello").out
    assert scene.ok("show", "hello", "--json").json["upcoming"][0]["skipped"]["note"] == "away"
    (listed,) = scene.ok("list", "--json").json["items"]
    assert listed["next_skipped"]["note"] == "away"
    assert listed["next_due_at"] == write_instant(first)
    assert "after skipped ones" in scene.ok("list").out
    assert scene.ok("skip", "hello", "--next", "--json").json["first"] == write_instant(second)


def test_skip_before_counts_and_where_all_shown_are_skipped_the_first_that_runs_is_told_too(scene: Scene) -> None:
    scene.add("hello", "--zone", "UTC", when="daily 09:00")
    ten = next_of(scene, "hello", 10)
    end = write_instant(ten[8] + timedelta(minutes=1))
    done = scene.ok("skip", "hello", "--before", end, "--json").json
    assert (done["count"], done["first"], done["last"]) == (9, write_instant(ten[0]), write_instant(ten[8]))
    assert f"{ten[9]:%Y-%m-%d}" in scene.ok("show", "hello").out
    assert f"{ten[9]:%a}" in scene.ok("list").out or f"{ten[9]:%Y-%m-%d}" in scene.ok("list").out
    again = scene.ok("skip", "hello", "--before", end)
    assert (again.out, again.err) == ("", "hint: nothing is left there to skip\n")


def test_skip_at_reads_local_times_on_this_machines_wall(scene: Scene) -> None:
    scene.add("hello", "--zone", "Europe/Berlin", when="daily 09:00")
    (first,) = next_of(scene, "hello", 1)
    there = first.astimezone(zone("Europe/Berlin"))
    called = scene.ok("skip", "hello", "--at", f"{there:%Y-%m-%d %H:%M}")
    assert called.out.startswith(f"skipped hello of {there:%a %Y-%m-%d} 09:00:00")
    assert scene.ok("skip", "hello", "--at", f"{there:%Y-%m-%d %H:%M}").err == "hint: it had been skipped before\n"


def test_retry_answers_with_the_new_run_that_names_the_old_one(scene: Scene) -> None:
    task = scene.add("hello")["id"]
    old = ended(scene, task)
    run = scene.ok("retry", old, "--json").json
    assert (run["retry_of"], run["due_at"], run["opened_by"]) == (old, "2026-11-01T08:00:00Z", "manual")
    assert run["occurrence"].startswith("manual:")
    text = scene.call("retry", old)
    assert text.code == 3
    assert text.first.startswith("duly: a run of hello is waiting already")
    assert scene.ok("retry", old, "--queue").out.startswith("run_")
    shown = scene.ok("show", run["id"]).out
    assert "again" in shown
    assert old[-8:] in shown


BAD = {
    "skip nothing": (("skip", "hello"), 2, "duly: --next: one of --next, --at INSTANT and --before INSTANT is needed"),
    "skip two ways": (("skip", "hello", "--next", "--at", "2h"), 2, "duly: --next: one of --next, --at INSTANT and"),
    "skip three ways": (("skip", "hello", "--next", "--at", "1h", "--before", "2h"), 2, "duly: --next: one of"),
    "skip at no instant": (("skip", "hello", "--at", "soon"), 2, "duly: --at: `soon` is not an instant"),
    "skip at no occurrence": (("skip", "hello", "--at", "1h"), 2, "duly: --at: hello is not due at"),
    "skip at in the past": (("skip", "hello", "--at", "2020-01-01 09:00"), 2, "duly: --at: hello is not due at"),
    "skip before no instant": (("skip", "hello", "--before", "24:00"), 2, "duly: --before: "),
    "skip of a task by hand only": (("skip", "hand", "--next"), 2, "duly: hand has no times of its own"),
    "skip of no task": (("skip", "nobody", "--next"), 4, 'duly: there is no task "nobody"'),
    "skip of a removed task": (("skip", "GONE", "--next"), 4, "duly: the task gone was removed"),
    "skip with a note of two lines": (("skip", "hello", "--next", "--note", "a\nb"), 2, 'duly: --note: "a\\nb" is not'),
    "skip with a long note": (("skip", "hello", "--next", "--note", "x" * 501), 2, "duly: --note: it has 501"),
    "retry nothing": (("retry",), 2, "duly: RUN is missing"),
    "retry of no run": (("retry", "run_zzz"), 4, 'duly: there is no run "run_zzz"'),
    "retry of a task": (("retry", "hello"), 4, 'duly: there is no run "hello"'),
    "retry of a waiting run": (("retry", "WAITING"), 3, "duly: run_"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_skipped_or_done_again_is_refused_and_nothing_is_lost(scene: Scene, name: str) -> None:
    scene.add("hello", when="daily 09:00")
    scene.add("hand", when="manual")
    words = {"WAITING": scene.ok("run", "hand", "--json").json["id"], "GONE": scene.add("gone")["id"]}
    scene.ok("remove", "gone", "--yes")
    args, code, first = BAD[name]
    before = scene.dump()
    called = scene.call(*(words.get(arg, arg) for arg in args))
    assert (called.code, called.first[: len(first)]) == (code, first), called
    assert scene.dump() == before
    asked = scene.call(*(words.get(arg, arg) for arg in args), "--json")
    assert asked.code == code
    assert set(asked.fault) == {"reason", "message", "details"}
