"""The rails for agents: what waits for a person, what is refused, and what a run of ours may do."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from door_scene import Door

from duly.mcp.rails import Rails
from duly.operations import tasks

GITHUB = "ghp_" + "a1B2" * 9
SECRETS = [
    GITHUB,
    "sk-" + "x9" * 20,
    "AKIA" + "ABCDEFGH12345678",
    "-----BEGIN RSA PRIVATE KEY-----",
    "postgresql://ann:hunter2@db/shop",
]


@pytest.fixture
def strict(door: Door) -> Door:
    door.rails = Rails()
    return door


def prompt(door: Door, name: str = "ask", **given: Any) -> Any:
    return door.make(name, command=None, agent="claude", prompt="What changed?", **given)


def test_a_command_that_an_agent_schedules_waits_for_a_person_and_no_tool_says_yes_for_them(strict: Door) -> None:
    made = strict.make()
    assert (made.shape["state"], "duly unpause one" in made.text) == ("waits_for_a_person", True)
    assert strict.call("schedule_resume", task="one").reason == "not_allowed"
    # A hold of one's own would take the place of that one, and could be lifted.
    assert strict.call("schedule_pause", task="one", note="mine").reason == "not_allowed"
    assert strict.call("run_now", task="one").reason == "paused"
    assert strict.task("one").next_start_at is None
    with strict.opening.changing() as store:
        tasks.unpause(store, "task", "one", by="ben")
    assert strict.call("schedule_get", task="one").shape["state"] == "on"
    assert strict.call("run_now", task="one").shape["state"] == "waiting"


def test_a_prompt_for_an_agent_starts_without_asking_but_not_with_what_others_are_asked_for(
    strict: Door,
) -> None:
    assert prompt(strict).shape["state"] == "on"
    for name, rules in {
        "allow": {"unattended": "allow"},
        "some": {"permissions": [{"tool": "bash", "action": "allow"}]},
        "gate": {"gate": "true"},
        "store": {"store_access": "run"},
    }.items():
        assert prompt(strict, name, rules=rules).shape["state"] == "waits_for_a_person", name


def test_a_task_that_an_agent_turns_into_a_command_waits_for_a_person_at_once(strict: Door) -> None:
    prompt(strict)
    other = {"kind": "command", "argv": ["true"], "agent": None, "prompt": None}
    assert strict.call("schedule_update", task="ask", changes={"description": "new"}).shape["state"] == "on"
    assert strict.call("schedule_update", task="ask", changes={"action": other}).shape["state"] == "waits_for_a_person"
    assert strict.task("ask").next_start_at is None


def test_describing_a_command_that_a_person_let_start_does_not_hold_it_again(strict: Door) -> None:
    strict.add("one", action={"kind": "command", "argv": ["true"]})
    assert strict.call("schedule_update", task="one", changes={"description": "new"}).shape["state"] == "on"
    changed = strict.call("schedule_update", task="one", changes={"action": {"argv": ["false"]}})
    assert changed.shape["state"] == "waits_for_a_person"


def test_starts_that_are_too_close_are_refused_with_the_figures(strict: Door) -> None:
    no = prompt(strict, when=["every 30s"])
    assert (no.reason, no.shape["details"]["apart_s"]) == ("not_allowed", 30.0)
    assert prompt(strict, when=["every 1m"]).shape["state"] == "on"
    close = strict.call("schedule_update", task="ask", when=["daily 09:00,09:01", "0 30 9 * * *", "1 30 9 * * *"])
    assert close.reason == "not_allowed"


def test_agents_make_no_more_tasks_than_they_may_and_others_are_not_counted(door: Door) -> None:
    door.rails = replace(door.rails, tasks_most=2)
    door.add("by a person")
    assert not door.make("a").is_no
    assert not door.make("b").is_no
    no = door.make("c")
    assert (no.reason, no.shape["details"]) == ("not_allowed", {"tasks": 2, "most": 2})


@pytest.mark.parametrize("secret", SECRETS)
def test_a_secret_in_what_an_agent_writes_is_refused_and_not_repeated(door: Door, secret: str) -> None:
    made = [
        door.make("a", command=["curl", "-H", f"Authorization: {secret}"]),
        prompt(door, "b", description=f"key {secret}"),
        door.make("c", command=None, shell=f"X={secret} run"),
    ]
    door.make("d")
    made += [
        door.call("schedule_update", task="d", changes={"action": {"env": {"KEY": secret}}}),
        door.call("run_now", task="d", input=secret),
    ]
    for no in made:
        assert no.reason == "invalid", no.text
        assert secret not in no.text
    assert [one["name"] for one in door.call("schedule_list").shape["items"]] == ["d"]
    assert door.call("run_list").shape["items"] == []


def test_a_named_secret_is_none(door: Door) -> None:
    door.make()
    given = {"action": {"env": {"KEY": "${GITHUB}", "URL": "postgresql://ann:${PASSWORD}@db/shop"}}}
    assert not door.call("schedule_update", task="one", changes=given).is_no


def test_who_may_only_look_changes_nothing(door: Door) -> None:
    door.make()
    door.may("read")
    changing: list[tuple[str, dict[str, Any]]] = [
        ("schedule_create", {"name": "two", "when": ["manual"], "shell": "true", "cwd": "/tmp"}),
        ("schedule_update", {"task": "one", "changes": {"description": "x"}}),
        ("schedule_pause", {"task": "one", "note": "x"}),
        ("schedule_resume", {"task": "one"}),
        ("schedule_delete", {"task": "one"}),
        ("run_now", {"task": "one"}),
        ("run_cancel", {"run": "one"}),
        ("missed_resolve", {"id": "mis_x", "decision": "accept"}),
    ]
    for tool, given in changing:
        assert door.call(tool, **given).reason == "not_allowed", tool
    assert len(door.call("schedule_list").shape["items"]) == 1
    door.may()
    for tool, given in [("schedule_list", {}), ("schedule_preview", {"when": ["manual"]}), ("scheduler_status", {})]:
        assert door.call(tool, **given).reason == "not_allowed", tool


def test_who_is_held_to_projects_sees_and_touches_no_others(door: Door) -> None:
    door.make("here", project="shop")
    door.make("there")
    run = door.call("run_now", task="there").shape["id"]
    door.call("run_now", task="shop/here")
    door.may("read", "run", "write", projects=frozenset({"shop"}))
    assert [one["name"] for one in door.call("schedule_list").shape["items"]] == ["shop/here"]
    assert [one["task_name"] for one in door.call("run_list").shape["items"]] == ["here"]
    refused: list[tuple[str, dict[str, Any]]] = [
        ("schedule_get", {"task": "there"}),
        ("schedule_why", {"of": "there"}),
        ("schedule_why", {"of": run}),
        ("schedule_update", {"task": "there", "changes": {"description": "x"}}),
        ("schedule_update", {"task": "here", "changes": {"project": "default"}}),
        ("schedule_update", {"task": "here", "changes": {"project": None}}),
        ("schedule_pause", {"task": "there", "note": "x"}),
        ("schedule_delete", {"task": "there"}),
        ("run_now", {"task": "there"}),
        ("run_get", {"run": run}),
        ("run_log", {"run": run}),
        ("run_cancel", {"run": run}),
        ("missed_list", {"task": "there"}),
    ]
    for tool, given in refused:
        assert door.call(tool, **given).reason == "not_allowed", tool
    assert door.make("more").reason == "not_allowed"
    assert "there" not in door.call("scheduler_status").text
    assert set(door.call("scheduler_status").shape) == {"served", "holders_alive", "version"}


def test_a_word_that_means_nothing_tells_who_is_held_to_projects_no_names_that_are_like_it(door: Door) -> None:
    door.make("here", project="shop")
    door.make("kept-quiet")
    for project in ("one", "two"):
        door.make("in both", project=project)
    asks: list[tuple[str, dict[str, Any]]] = [
        (tool, {field: word})
        for tool, field in (("schedule_get", "task"), ("schedule_why", "of"), ("run_get", "run"), ("run_now", "task"))
        for word in ("kept-quie", "in both")
    ]
    told = [door.call(tool, **given).text for tool, given in asks]
    assert all("kept-quiet" in text or "one/in both" in text for text in told)
    door.may("read", "run", projects=frozenset({"shop"}))
    for tool, given in asks:
        no = door.call(tool, **given)
        assert no.reason in {"unknown_task", "unknown_id"}, (tool, given, no.text)
        assert not [word for word in ("kept-quiet", "one/", "two/") if word in f"{no.text}{no.shape}"], (tool, given)


def test_what_a_run_creates_waits_for_a_person_and_it_changes_nothing_that_is_there(door: Door) -> None:
    door.make()
    door.may("read", "run", run="run_" + "0" * 26)
    made = prompt(door)
    assert (made.shape["state"], "duly unpause ask" in made.text) == ("waits_for_a_person", True)
    assert door.call("schedule_update", task="one", changes={"description": "x"}).reason == "not_allowed"
    assert door.call("schedule_resume", task="ask").reason == "not_allowed"
    assert door.call("schedule_delete", task="one").reason == "not_allowed"
    assert door.call("run_now", task="one").shape["state"] == "waiting"


def test_a_run_that_may_only_look_creates_nothing(door: Door) -> None:
    door.may("read", run="run_" + "0" * 26)
    assert prompt(door).reason == "not_allowed"


def test_the_rails_are_settings_of_the_host() -> None:
    from pathlib import Path

    from duly.app.agents_door import rails_of
    from duly.config import Config

    found = Config(path=Path("c"), exists=True, values={"mcp.shortest": "10m", "mcp.commands": "allow"})
    assert rails_of(found, {"DULY_MCP_TASKS_MOST": "7"}, {"commands": "ask"}) == Rails(
        commands="ask", shortest=timedelta(minutes=10), tasks_most=7
    )
