"""`export`: what it writes is read back, by the strict model, as the same definitions."""

from datetime import UTC, datetime
from typing import Any

import pytest
from cli_scene import Scene
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from duly.cli.yaml_text import yaml_lines
from duly.core.task import Definition
from duly.definitions import read_definition
from duly.operations.exporting import written

NOW = datetime(2026, 11, 1, tzinfo=UTC)
ODD = (
    'it\'s "quoted" \\ here',
    "two\nlines\n",
    "# no comment",
    "- no list",
    "yes",
    "007",
    "1e3",
    "ünï 日次 🎉",
    "",
    " x ",
)

TASKS: dict[str, tuple[str, ...]] = {
    "plain": ("--when", "daily 09:00", "--", "true"),
    "many triggers": (
        *("--when", "every 15m from 2026-12-01T08:00:00Z", "--when", "cron 0 9 * * mon-fri", "--when", "@hourly"),
        *("--when", "once 2099-01-01 09:00", "--when", "weekly mon,fri 08:00,12:00:30", "--", "true"),
    ),
    "an event": ("--when", 'on mail.in where a.b="x y" and c=d throttle 5m by a.b, c', "--", "true"),
    "odd words": ("--when", "manual", "--description", "two\nlines: # x", "--label", "a=yes", "--", "echo", *ODD),
    "a script": ("--when", "manual", "--shell", "set -e\n\nif true; then\n    echo 'x'\nfi\n", "--env", "K=${SECRET}"),
    "every rule": (
        *("--when", "daily 09:00", "--on-missed", "run_all", "--at-most", "3", "--max-age", "12h", "--grace", "90s"),
        *("--overlap", "queue", "--queue", "2", "--seats", "1", "--limit", "db", "--priority", "-5", "--needs", "gpu"),
        *("--timeout", "90m", "--idle-timeout", "5m", "--leftovers", "leave", "--retries", "2", "--retry-after", "5s"),
        *("--retry-up-to", "1m", "--on-interrupt", "retry", "--pause-after", "3"),
        *("--spread", "10m", "--gap", "skip", "--fold", "both", "--start", "2026-12-01T00:00:00Z"),
        *(
            "--until",
            "2027-12-01T00:00:00Z",
            "--times",
            "9",
            "--remove-when-done",
            "--gate",
            "test -e go",
            "--",
            "true",
        ),
    ),
    "off": (
        "--when",
        "daily 09:00",
        "--disabled",
        "--project",
        "Other Project",
        "--zone",
        "America/New_York",
        "--",
        "x",
    ),
}


def new(text: str) -> Any:
    return YAML(typ="safe", pure=True).load(text)


def old(text: str) -> Any:
    """Read as the first readers of YAML did, for whom `yes` is no text."""
    reader = YAML(typ="safe", pure=True)
    reader.version = (1, 1)
    return reader.load(text)


def definitions(scene: Scene) -> dict[str, Definition]:
    with scene.opened() as store, store.read() as session:
        return {task.definition.name: task.definition for task in session.tasks.page()}


def read(item: Any) -> Definition:
    return read_definition(item, now=NOW, default_zone="UTC").definition


def test_what_is_exported_is_read_back_by_the_strict_model_as_the_same_definition(scene: Scene) -> None:
    for name, words in TASKS.items():
        scene.ok("add", name, *words)
    whole = definitions(scene)
    text = scene.ok("export").out
    for found in (scene.ok("export", "--json").json, old(text), new(text)):
        assert list(found) == ["tasks"]
        assert {item["name"]: read(item) for item in found["tasks"]} == whole
        assert len(found["tasks"]) == len(TASKS)


def test_an_export_brought_to_another_store_exports_as_the_same_text(scene: Scene) -> None:
    for name, words in TASKS.items():
        scene.ok("add", name, *words)
    text = scene.ok("export").out
    items = old(text)["tasks"]
    again = {"tasks": [written(read(item)) for item in items]}
    assert yaml_lines(again) == text.splitlines()[1:]


def test_only_what_was_written_is_exported_and_nothing_of_what_has_happened(scene: Scene) -> None:
    scene.add("hello")
    scene.ok("pause", "hello")
    assert scene.ok("export").out == (
        "# 1 task, as duly export wrote them\n"
        "tasks:\n"
        "  - name: hello\n"
        "    triggers:\n"
        '      - "daily 09:00"\n'
        "    zone: Europe/Berlin\n"
        "    action:\n"
        "      kind: command\n"
        "      argv:\n"
        '        - "true"\n'
        f"      cwd: {scene.ok('show', 'hello', '--json').json['action']['cwd']}\n"
    )


def test_only_the_named_tasks_are_exported_each_once_in_the_order_of_asking(scene: Scene) -> None:
    for name in ("a", "b", "c"):
        scene.add(name)
    found = scene.ok("export", "c", "a", "C", "--json").json["tasks"]
    assert [item["name"] for item in found] == ["c", "a"]


def test_a_broken_task_is_left_out_and_named_and_the_exit_code_says_so(scene: Scene) -> None:
    broken = scene.add("broken")["id"]
    scene.add("sound")
    scene.sql("UPDATE tasks SET definition = '{}' WHERE id = ?", broken)
    called = scene.call("export")
    assert called.code == 1
    assert [item["name"] for item in old(called.out)["tasks"]] == ["sound"]
    assert called.first == "warning: broken is left out: name: it is missing"
    told = scene.call("export", "--json")
    assert (told.code, told.err) == (1, "")
    assert [(one["task"], one["broken"]["field"]) for one in told.json["broken"]] == [(broken, "name")]


@pytest.mark.parametrize(
    ("args", "code", "first"),
    [
        (("export", "nobody"), 4, 'duly: there is no task "nobody"'),
        (("export", "hello", "nobody"), 4, 'duly: there is no task "nobody"'),
        (("export", "--yaml"), 2, "duly: there is no option --yaml"),
    ],
)
def test_an_export_of_what_is_not_there_prints_nothing(
    scene: Scene, args: tuple[str, ...], code: int, first: str
) -> None:
    scene.add("hello")
    called = scene.call(*args)
    assert (called.code, called.out) == (code, "")
    assert called.first.startswith(first)


def test_a_store_without_tasks_exports_none(scene: Scene) -> None:
    for args in ((), ("--json",)):
        assert old(scene.ok("export", *args).out) == {"tasks": []}
    scene.ok("init")
    assert scene.ok("export", "--json").json == {"tasks": []}


texts = st.text() | st.sampled_from(ODD) | st.text(alphabet="ab \n\t:#-'\"|>", max_size=20)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


def test_the_two_readers_of_these_tests_differ() -> None:
    assert (old("yes"), new("yes")) == (True, "yes")


@given(st.dictionaries(texts, values, min_size=1, max_size=4))
def test_whatever_is_written_as_yaml_is_read_as_the_same_by_old_and_new_readers(value: dict[str, Any]) -> None:
    text = "\n".join(yaml_lines(value)) + "\n"
    assert old(text) == value
    assert new(text) == value
