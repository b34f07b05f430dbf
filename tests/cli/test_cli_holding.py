"""`holders` and `fence`."""

import fcntl
import os
from datetime import timedelta
from pathlib import Path

import pytest
from cli_scene import Scene
from test_cli_shapes import HOLDER, fields

from by_hand import statements
from duly import clock
from duly.core.task import Task
from duly.operations import holding
from duly.store.rows import HolderRow
from duly.store.waiting import Claim

FENCE = """task task_name project fence current reason highest run attempt state outcome holder lease_left_s"""


def register(scene: Scene, *states: str) -> list[str]:
    """Enter holders into the store; those whose state is a life's get a lock that this process holds."""
    folder = scene.run_folder / "holders"
    folder.mkdir(parents=True, exist_ok=True)
    with scene.opened() as store, store.write() as session:
        for number, state in enumerate(states):
            row = HolderRow(
                id=f"hld_{number}",
                place="p",
                boot=clock.boot_id(),
                host="here",
                pid=100 + number,
                ticks=1,
                started_at=session.now - timedelta(hours=1),
                last_beat_at=session.now - timedelta(seconds=9),
                beat_lease_us=0 if state == "dead" else session.lease_us,
                lease_for=timedelta(seconds=100),
                state="alive" if state == "dead" else state,
                slots=4,
                labels=["gpu"],
                version="0.1.0",
                zone_data="2026a",
                claims=7,
                claims_lost=2,
            )
            session.holders.insert(row)
            if state != "dead":
                descriptor = os.open(folder / f"{row.id}.lock", os.O_RDWR | os.O_CREAT, 0o600)
                fcntl.flock(descriptor, fcntl.LOCK_EX)
    return [f"hld_{number}" for number in range(len(states))]


def test_holders_are_told_newest_first_and_dead_ones_are_gone_whatever_their_row_says(scene: Scene) -> None:
    scene.add("hello")
    register(scene, "gone", "dead", "draining", "alive")
    items = scene.ok("holders", "--json").json["items"]
    assert [(one["id"], one["state"]) for one in items] == [
        ("hld_3", "alive"),
        ("hld_2", "draining"),
        ("hld_1", "gone"),
        ("hld_0", "gone"),
    ]
    assert all(set(one) == fields(HOLDER) for one in items)
    table = scene.ok("holders").out.splitlines()
    assert table[0].split()[:6] == ["HOLDER", "HOST", "PID", "STATE", "SLOTS", "BEAT"]
    assert "7 (2 lost)" in table[1]
    assert len(table) == 5


def test_holders_are_asked_for_by_state_and_go_on_where_a_page_ended(scene: Scene) -> None:
    scene.add("hello")
    register(scene, "alive", "dead", "alive", "gone", "alive")
    alive = scene.ok("holders", "--state", "alive", "-n", "2", "--json").json
    assert ([one["id"] for one in alive["items"]], alive["next"]) == (["hld_4", "hld_2"], "hld_2")
    rest = scene.ok("holders", "--state", "alive", "--cursor", "hld_2", "--json").json
    assert ([one["id"] for one in rest["items"]], rest["next"]) == (["hld_0"], None)


def claimed(scene: Scene, name: str = "hello") -> Task:
    """A task whose run was claimed: its first fence is given."""
    scene.add(name)
    scene.ok("run", name)
    with scene.opened() as store, store.write() as session:
        (run,) = session.waiting.claimable(session.now, 10, holder="hld_a")
        session.tasks.raise_fences([(run.task, 1)])
        session.waiting.claim(
            [
                Claim(
                    run=run,
                    holder="hld_1",
                    token="t",
                    lease_end_us=session.lease_us + 60_000_000,
                    lease_boot=clock.boot_id(),
                    seat=1,
                    definition_version=1,
                    started_at=session.now,
                )
            ]
        )
        task = session.tasks.by_id(run.task)
    assert task is not None
    return task


def test_the_fence_of_the_attempt_that_holds_its_run_is_current(scene: Scene) -> None:
    task = claimed(scene)
    called = scene.ok("fence", "hello", str(task.fence), "--json")
    assert set(called.json) == fields(FENCE)
    assert (called.json["current"], called.json["reason"], called.json["state"]) == (True, None, "running")
    assert 50 < called.json["lease_left_s"] <= 60
    assert scene.ok("fence", "hello", "1").out.startswith("fence 1 of hello is current: run_")


@pytest.mark.parametrize(
    ("change", "fence", "reason", "text"),
    [
        ("UPDATE tasks SET fence = 5", "1", None, "is current"),
        ("UPDATE runs SET fence = 2; UPDATE tasks SET fence = 2", "1", "fence_lost", "is over; the highest is 2"),
        ("UPDATE runs SET state = 'waiting'", "1", "fence_lost", "is over; the highest is 1"),
        ("UPDATE runs SET state = 'ended', outcome = 'timed_out'", "1", "already_ended", "timed out"),
        ("", "9", "unknown_id", "fence 9 of hello was never given; the highest is 1"),
        ("", "0", "unknown_id", "fence 0 of hello was never given"),
        ("", "-3", "invalid", ""),
    ],
)
def test_a_fence_that_does_not_hold_its_run_is_answered_no_with_the_reason(
    scene: Scene, change: str, fence: str, reason: str | None, text: str
) -> None:
    claimed(scene)
    for statement in filter(None, change.split(";")):
        scene.sql(statement)
    if reason == "invalid":
        assert scene.call("fence", "hello", fence).code == 2
        return
    called = scene.call("fence", "hello", fence, "--json")
    assert (called.code, called.json["reason"], called.json["current"]) == (3 if reason else 0, reason, not reason)
    told = scene.call("fence", "hello", fence)
    assert (told.code, told.err) == (called.code, "")
    assert text in told.out


def test_a_work_asks_about_itself_by_what_it_was_told_and_a_new_name_does_not_matter(scene: Scene) -> None:
    task = claimed(scene)
    run = scene.ok("runs", "--json").json["items"][0]["id"]
    scene.monkeypatch.setenv("DULY_TASK", "an old name")
    scene.monkeypatch.setenv("DULY_FENCE", str(task.fence))
    assert scene.call("fence").code == 4
    scene.monkeypatch.setenv("DULY_RUN", run)
    assert scene.ok("fence", "--json").json["current"] is True
    scene.monkeypatch.setenv("DULY_FENCE", "12")
    assert scene.call("fence").code == 3
    assert scene.ok("fence", "hello", "1", "--json").json["current"] is True, "words win over variables"


def test_the_project_a_work_was_told_parts_tasks_of_one_name(scene: Scene) -> None:
    claimed(scene)
    scene.add("hello", "--project", "other")
    scene.monkeypatch.setenv("DULY_TASK", "hello")
    scene.monkeypatch.setenv("DULY_FENCE", "1")
    assert scene.call("fence").code == 2, "two tasks have the name"
    scene.monkeypatch.setenv("DULY_PROJECT", "default")
    assert scene.ok("fence", "--json").json["current"] is True
    scene.monkeypatch.setenv("DULY_PROJECT", "other")
    assert scene.call("fence").code == 3


def test_asking_for_a_fence_costs_no_more_than_a_task_and_its_live_runs(scene: Scene, tmp_path: Path) -> None:
    claimed(scene)
    with scene.opened() as store, store.read() as session:
        task = session.tasks.named("hello")[0]
        with statements(session.line) as seen:
            assert holding.fence(session, task, 1)["current"]
    assert len(seen) == 1
