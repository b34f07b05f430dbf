"""The tools over a store in this process, called by the official client."""

import logging
from typing import Any

import pytest
from door_scene import DESK, Door

from duly.mcp.making import make_server

READING = {
    "schedule_list",
    "schedule_get",
    "schedule_preview",
    "schedule_why",
    "run_list",
    "run_get",
    "run_log",
    "missed_list",
    "scheduler_status",
}
WRITING = {
    "schedule_create",
    "schedule_update",
    "schedule_pause",
    "schedule_resume",
    "schedule_delete",
    "run_now",
    "run_cancel",
    "missed_resolve",
}


def test_each_tool_says_what_it_does_to_the_world_and_what_it_answers(door: Door) -> None:
    tools = {tool.name: tool for tool in door.talk(lambda client: client.list_tools()).tools}
    assert set(tools) == READING | WRITING
    for name, tool in tools.items():
        hints = tool.annotations
        assert hints is not None, name
        told = (hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint, hints.open_world_hint)
        assert None not in told, name
        assert hints.read_only_hint is (name in READING), name
        assert tool.title, name
        assert tool.output_schema is not None, name
        assert tool.input_schema["additionalProperties"] is False, name
    destroying = {name for name, tool in tools.items() if tool.annotations and tool.annotations.destructive_hint}
    assert destroying == {"schedule_update", "schedule_delete", "run_cancel"}
    run_now = tools["run_now"].annotations
    assert run_now is not None
    assert (run_now.idempotent_hint, run_now.open_world_hint) == (False, True)


def test_making_a_server_leaves_the_logging_of_its_process_alone() -> None:
    root = logging.getLogger()
    before = (root.level, list(root.handlers))
    make_server(DESK)
    assert (root.level, list(root.handlers)) == before


def test_where_there_is_no_store_reading_finds_nothing_and_makes_none(door: Door) -> None:
    assert "no store yet" in door.call("schedule_list").text
    assert door.call("run_list").shape == {"items": [], "next": None}
    assert door.call("missed_list").shape["items"] == []
    assert door.call("scheduler_status").shape["served"] is False
    assert door.call("schedule_get", task="one").reason == "unknown_id"
    assert door.make(dry_run=True).shape["state"] == "on"
    with door.opening.reading() as store:
        assert store is None


def test_a_preview_says_words_and_instants_in_the_zone_and_schedules_nothing(door: Door) -> None:
    after = "2026-12-01T00:00:00Z"
    seen = door.call("schedule_preview", when=["daily 09:00"], zone="Europe/Berlin", after=after, limit=2)
    assert seen.shape["words"] == "every day at 09:00"
    assert [one["due_at"] for one in seen.shape["items"]] == ["2026-12-01T08:00:00Z", "2026-12-02T08:00:00Z"]
    assert "2026-12-01 09:00:00 Europe/Berlin" in seen.text
    assert door.call("schedule_list").shape["items"] == []


def test_a_task_is_made_answered_with_its_next_three_instants_and_that_nobody_serves(door: Door) -> None:
    made = door.make()
    assert (made.is_no, made.shape["state"], made.shape["zone"]) == (False, "on", "Europe/Berlin")
    assert len(made.shape["upcoming"]) == 3
    assert made.shape["served"] is False
    assert "Nobody serves" in made.text
    task = door.task("one")
    assert (task.created_by, task.source["kind"]) == ("ann over mcp", "mcp")
    assert [one["name"] for one in door.call("schedule_list").shape["items"]] == ["one"]


def test_the_same_key_makes_no_second_task_and_another_task_under_it_is_refused(door: Door) -> None:
    first = door.make(key="k", when=["every 1h"])
    again = door.make(key="k", when=["every 1h"])
    assert (again.is_no, again.shape["id"]) == (False, first.shape["id"])
    assert door.make(key="k", command=["echo", "other"]).reason == "key_reused"
    assert door.make().reason == "already_exists"
    assert len(door.call("schedule_list").shape["items"]) == 1


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"when": ["never"]}, "triggers[0]"),
        ({"command": None}, "one of command, shell and agent"),
        ({"shell": "true"}, "both command and shell"),
        ({"cwd": None}, "action.cwd"),
        ({"rules": {"timeot": "1m"}}, "timeout"),
        ({"zone": "CST"}, "zone"),
        ({"promt": "x"}, "promt"),
        ({"name": "a/b"}, "name"),
    ],
)
def test_what_cannot_be_made_is_told_with_its_field_and_nothing_is_kept(
    door: Door, given: dict[str, Any], told: str
) -> None:
    no = door.make(**given)
    assert no.is_no
    assert told in no.text
    assert door.call("schedule_list").shape["items"] == []


def test_a_dry_run_of_a_change_says_what_would_change_and_writes_nothing(door: Door) -> None:
    door.make()
    seen = door.call("schedule_update", task="one", changes={"description": "new"}, dry_run=True)
    assert seen.shape["changes"] == ["description"]
    assert door.task("one").definition.description == ""


def test_a_task_is_changed_by_a_merge_patch_and_by_new_triggers_unless_another_was_there_first(door: Door) -> None:
    door.make()
    done = door.call(
        "schedule_update", task="one", when=["daily 10:00"], changes={"rules": {"retries": 2}}, if_version=1
    )
    assert set(done.shape["changes"]) == {"triggers", "rules.retries"}
    assert door.task("one").definition.rules.retries == 2
    assert door.call("schedule_update", task="one", changes={"zone": "UTC"}, if_version=1).reason == "version_conflict"
    assert door.call("schedule_update", task="one").reason == "invalid"


def test_a_task_is_held_with_a_note_let_go_and_removed(door: Door) -> None:
    door.make()
    assert door.call("schedule_pause", task="one", note="disk", until="2h").shape["state"] == "paused"
    assert "disk" in door.call("schedule_get", task="one").text
    assert door.call("schedule_list", state="on").shape["items"] == []
    assert door.call("schedule_resume", task="one").shape["state"] == "on"
    assert door.call("schedule_delete", task="one").shape["state"] == "removed"
    assert door.call("schedule_get", task="one").reason == "unknown_task"


def test_a_run_by_hand_is_opened_once_a_key_found_again_and_cancelled(door: Door) -> None:
    door.make()
    opened = door.call("run_now", task="one", key="k", input="x")
    assert (opened.shape["state"], opened.shape["opened_by_whom"]) == ("waiting", "ann over mcp")
    assert door.call("run_now", task="one", key="k", input="x").shape["id"] == opened.shape["id"]
    assert door.call("run_now", task="one").reason == "already_waiting"
    assert [one["id"] for one in door.call("run_list", state="waiting").shape["items"]] == [opened.shape["id"]]
    assert door.call("run_get", run="one").shape["id"] == opened.shape["id"]
    assert door.call("run_log", run="one").shape["text"] == ""
    why = door.call("schedule_why", of=opened.shape["id"])
    assert (why.shape["fate"], "Nobody serves" in why.text) == ("waiting", True)
    assert door.call("run_cancel", run="one").shape["outcome"] == "cancelled"
    assert door.call("run_cancel", run="one").reason == "already_ended"


def test_lists_go_on_where_their_page_ended(door: Door) -> None:
    for name in ("a", "b", "c"):
        door.add(name)
        door.call("run_now", task=name)
    first = door.call("schedule_list", limit=2).shape
    rest = door.call("schedule_list", limit=2, cursor=first["next"]).shape
    assert [one["name"] for one in (*first["items"], *rest["items"])] == ["a", "b", "c"]
    assert rest["next"] is None
    runs = door.call("run_list", limit=2).shape
    more = door.call("run_list", limit=2, cursor=runs["next"]).shape
    assert [one["task_name"] for one in (*runs["items"], *more["items"])] == ["c", "b", "a"]
    assert more["next"] is None
    assert [one["name"] for one in door.call("schedule_list", contains="B").shape["items"]] == ["b"]


def test_a_task_and_a_log_can_be_read_as_resources_and_what_is_not_there_is_not_found(door: Door) -> None:
    id_ = door.make().shape["id"]
    run = door.call("run_now", task="one").shape["id"]

    async def read(client: Any) -> tuple[str, str]:
        task = await client.read_resource(f"schedule://{id_}")
        log = await client.read_resource(f"run://{run}/log")
        with pytest.raises(Exception, match="unknown_task"):
            await client.read_resource("schedule://nothing")
        return task.contents[0].text, log.contents[0].text

    task, log = door.talk(read)
    assert '"name": "one"' in task
    assert "never instructions" in log


def test_prompts_ask_for_a_review_and_for_a_diagnosis_and_change_nothing_by_themselves(door: Door) -> None:
    async def asked(client: Any) -> list[str]:
        names = [one.name for one in (await client.list_prompts()).prompts]
        assert names == ["review_schedules", "diagnose_failure"]
        given = [("review_schedules", {}), ("diagnose_failure", {}), ("diagnose_failure", {"task": "one"})]
        return [(await client.get_prompt(name, words)).messages[0].content.text for name, words in given]

    review, newest, one = door.talk(asked)
    assert "wait for my yes" in review
    assert "the newest failed run" in newest
    assert "the task one" in one
