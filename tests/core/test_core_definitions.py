"""Definitions as JSON and back, whole; and what a refusal of contradicting rules says."""

from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from core_values import HOUR, MINUTE, NINE, every

from duly.core.contradictions import check_defaults, refuse_contradictions
from duly.core.definition_json import (
    action_from_json,
    action_to_json,
    definition_from_json,
    definition_to_json,
    own_rules_to_json,
    rule_to_json,
    rules_from_json,
    triggers_from_json,
)
from duly.core.task import Definition, Gate, Rules, timeout_of
from duly.core.triggers import Daily
from duly.errors import Invalid

UTC_ZONE = ZoneInfo("UTC")
WHOLE = Definition(
    name="backup",
    project="ops",
    description="nightly",
    labels={"k": "v"},
    enabled=False,
    triggers=(Daily(times=(time(9),)), every(HOUR)),
    zone="Europe/Berlin",
    action={"kind": "command", "argv": ("true", "x"), "cwd": "/tmp", "env": {"A": "b"}},
    rules=Rules(
        max_age=2 * HOUR,
        needs=("a", "b"),
        limits={"db": 2},
        gate=Gate(argv=("test", "-f", "x"), timeout=MINUTE, on_error="go"),
        start=NINE,
        queue=5,
        remove_when_done=True,
    ),
    own_rules=frozenset({"max_age", "needs", "limits", "gate", "start", "queue", "remove_when_done"}),
)
SHOWN: dict[str, Any] = {
    "name": "backup",
    "project": "ops",
    "description": "nightly",
    "labels": {"k": "v"},
    "enabled": False,
    "triggers": [
        {"kind": "daily", "times": ["09:00"]},
        {"kind": "every", "span": "1h", "anchor": "2026-03-02T09:00:00Z"},
    ],
    "zone": "Europe/Berlin",
    "action": {"kind": "command", "argv": ["true", "x"], "cwd": "/tmp", "env": {"A": "b"}},
    "rules": {
        "max_age": "2h",
        "queue": 5,
        "limits": {"db": 2},
        "needs": ["a", "b"],
        "gate": {"argv": ["test", "-f", "x"], "timeout": "1m", "on_error": "go"},
        "start": "2026-03-02T09:00:00Z",
        "remove_when_done": True,
    },
}


def test_a_definition_is_written_as_this_json_and_read_back_as_itself() -> None:
    assert definition_to_json(WHOLE) == SHOWN
    assert definition_from_json(SHOWN) == WHOLE


def test_what_was_not_written_reads_as_its_default() -> None:
    read = definition_from_json({"name": "x", "action": {"kind": "command", "shell": "true"}})
    assert read == Definition(name="x", action={"kind": "command", "shell": "true"})
    assert definition_to_json(read)["rules"] == {}


def test_of_the_rules_those_are_written_that_the_author_wrote_in_the_order_of_the_table() -> None:
    assert list(own_rules_to_json(WHOLE)) == list(SHOWN["rules"])
    inherited = replace(WHOLE, inherited={"queue": "store", "max_age": "project", "cwd": "project"})
    assert set(own_rules_to_json(inherited)) == set(SHOWN["rules"]) - {"queue", "max_age"}
    assert definition_to_json(inherited)["action"] == {"kind": "command", "argv": ["true", "x"], "env": {"A": "b"}}
    unwritten = replace(WHOLE, own_rules=frozenset())
    assert set(own_rules_to_json(unwritten)) == set(SHOWN["rules"]) - {"queue"}, "a default that nobody wrote is none"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (90 * MINUTE, "90m"),
        (datetime(2026, 3, 2, 9, tzinfo=UTC), "2026-03-02T09:00:00Z"),
        (("a",), ["a"]),
        ({"a": 1}, {"a": 1}),
        (Gate(argv=("true",)), {"argv": ["true"], "timeout": "1m", "on_error": "closed"}),
        (7, 7),
        ("skip", "skip"),
        (None, None),
        (True, True),
    ],
)
def test_a_rule_is_written_as_its_kind_of_value_is(value: object, shown: object) -> None:
    assert rule_to_json(value) == shown
    assert type(rule_to_json(value)) is type(shown)


def test_an_action_is_written_with_lists_and_plain_objects() -> None:
    shown = action_to_json({"kind": "call", "args": (1, 2), "env": {"A": "b"}, "in": "child"})
    assert shown == {"kind": "call", "args": [1, 2], "env": {"A": "b"}, "in": "child"}
    assert type(shown["args"]) is list


def test_parts_of_a_definition_are_read_by_themselves() -> None:
    rules, own = rules_from_json({"queue": 3, "max_age": "2h"})
    assert (rules, own) == (Rules(queue=3, max_age=2 * HOUR), frozenset({"queue", "max_age"}))
    assert triggers_from_json([{"kind": "daily", "times": ["9:00"]}]) == (Daily(times=(time(9),)),)
    assert triggers_from_json(()) == ()
    action = action_from_json({"kind": "call", "function": "a:b", "args": [1], "cwd": None, "in": "thread", "env": {}})
    assert action == {"kind": "call", "function": "a:b", "args": (1,), "in": "thread", "env": {}}
    assert list(action) == ["kind", "function", "args", "in", "env"]


BAD: dict[str, tuple[Any, str]] = {
    "": ([], "definition: [] is not an object"),
    "no name": ({}, "name: it is missing"),
    "rules": ({"name": "x", "rules": 5}, "rules: 5 is not an object"),
    "a rule": ({"name": "x", "rules": {"queu": 5}}, "rules.queu: there is no such field"),
    "a field": ({"name": "x", "zon": 5}, "zon: there is no such field"),
    "triggers": ({"name": "x", "triggers": "daily 09:00"}, 'triggers: "daily 09:00" is not a list'),
    "no list": ({"name": "x", "triggers": {"a": 1}}, "triggers: {'a': 1} is not a list"),
    "too many": ({"name": "x", "triggers": [{}] * 21}, "triggers: there are 21, and 20 are allowed"),
    "a trigger": ({"name": "x", "triggers": [5]}, "triggers[0]: 5 is not an object"),
    "no action": ({"name": "x"}, "action: what to do is missing"),
    "a kind": (
        {"name": "x", "action": {"kind": "agents"}},
        'action.kind: "agents" is not one of command, call, agent, http',
    ),
    "a part": ({"name": "x", "action": {"kind": "call", "arg": 1}}, "action.arg: there is no such field"),
    "of another": ({"name": "x", "action": {"kind": "call", "argv": ["x"]}}, "action.argv: a call has no such field"),
    "nothing": ({"name": "x", "action": {"kind": "command"}}, "action.argv: neither argv nor shell says what to run"),
    "both": (
        {"name": "x", "action": {"kind": "command", "argv": ["x"], "shell": "x"}},
        "action.shell: argv and shell exclude each other",
    ),
    "no function": ({"name": "x", "action": {"kind": "call"}}, "action.function: which function is called is missing"),
    "a thread": (
        {"name": "x", "action": {"kind": "call", "function": "a:b", "in": "thread", "cwd": "/"}},
        "action.cwd: a function in a thread shares folder and variables with all of its process",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_definition_that_does_not_hold_says_which_part_and_why(name: str) -> None:
    given, told = BAD[name]
    with pytest.raises(Invalid) as refused:
        definition_from_json(given)
    assert f"{refused.value.field}: {refused.value.message}" == told


def test_a_trigger_that_does_not_read_keeps_its_column_and_its_hint() -> None:
    with pytest.raises(Invalid) as refused:
        triggers_from_json([{"kind": "daily", "times": ["9:00"]}, {"kind": "cron", "expression": "61 * * * *"}])
    told = refused.value
    assert (told.field, told.text, told.at, told.hint) == ("triggers[1]", "61 * * * *", 0, "0 to 59")


def one(**rules: Any) -> Definition:
    action = {"kind": "command", "argv": ("true",)}
    return Definition(
        name="x", triggers=(every(HOUR),), action=action, rules=Rules(**rules), own_rules=frozenset(rules)
    )


def test_a_contradiction_is_refused_with_its_rule_its_figures_and_what_to_write() -> None:
    with pytest.raises(Invalid) as refused:
        refuse_contradictions(one(queue=3), UTC_ZONE, NINE)
    told = refused.value
    assert told.message == "it counts with overlap queue only, and here overlap is skip"
    assert (told.field, told.hint) == ("rules.queue", "overlap queue, or without this rule")
    assert told.details == {"overlap": "skip", "wanted": "queue"}


def test_what_contradicted_before_in_the_same_way_is_no_reason_to_refuse() -> None:
    refuse_contradictions(one(queue=3, retries=1), UTC_ZONE, NINE, before=one(queue=3))
    with pytest.raises(Invalid) as refused:
        refuse_contradictions(one(queue=3, overlap="kill_running"), UTC_ZONE, NINE, before=one(queue=3))
    assert refused.value.details["overlap"] == "kill_running"
    with pytest.raises(Invalid):
        refuse_contradictions(one(queue=3), UTC_ZONE, NINE, before=one())


def test_defaults_alone_may_not_contradict_each_other() -> None:
    check_defaults({"retry_after": MINUTE, "retry_up_to": HOUR, "queue": 3, "idle_timeout": HOUR})
    for values, field in (
        ({"retry_after": 2 * HOUR}, "rules.retry_after"),
        ({"idle_timeout": timedelta(hours=24)}, "rules.idle_timeout"),
        ({"idle_timeout": HOUR, "timeout": HOUR}, "rules.idle_timeout"),
    ):
        with pytest.raises(Invalid) as refused:
            check_defaults(values)
        assert refused.value.field == field


def test_an_attempt_may_run_for_its_own_timeout_or_for_a_day() -> None:
    assert timeout_of(one()) == timedelta(hours=24)
    assert timeout_of(one(timeout=MINUTE)) == MINUTE
