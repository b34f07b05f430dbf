"""What a success is, as people write it: read whole, written back as it is, refused by its own part."""

from datetime import UTC, datetime
from typing import Any

import pytest

from duly import zones
from duly.core.contradictions import refuse_contradictions
from duly.core.definition_json import definition_from_json, definition_to_json
from duly.core.successes import Success
from duly.core.task import Definition
from duly.definitions import json_schema, read_definition
from duly.errors import Invalid

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
COMMAND = {"kind": "command", "argv": ["true"], "cwd": "/"}
AGENT = {"kind": "agent", "agent": "claude", "prompt": "Do it.", "cwd": "/"}
CALL = {"kind": "call", "function": "os.path:exists", "args": ["/"], "cwd": "/"}


def read(action: dict[str, Any], rule: object) -> Definition:
    rules = {"success_when": rule}
    whole = {"name": "one", "triggers": ["daily 08:00"], "zone": "UTC", "action": action, "rules": rules}
    return read_definition(whole, now=NOW, default_zone="UTC").definition


@pytest.mark.parametrize(
    ("written", "meant", "again"),
    [
        ({"exit": 3}, Success(exit=(3,)), {"exit": 3}),
        ({"exit": [2, 0, 2]}, Success(exit=(0, 2)), {"exit": [0, 2]}),
        ({"matches": "^ok$", "exit": None}, Success(matches="^ok$"), {"matches": "^ok$"}),
        ({"file": "out/a.md", "exit": 0}, Success(exit=(0,), file="out/a.md"), {"exit": 0, "file": "out/a.md"}),
    ],
)
def test_a_success_is_read_exactly_and_reads_the_same_when_it_is_written_back(
    written: dict[str, Any], meant: Success, again: dict[str, Any]
) -> None:
    found = read(COMMAND, written)
    assert found.rules.success_when == meant
    stored = definition_to_json(found)
    assert stored["rules"] == {"success_when": again}
    assert definition_from_json(stored) == found


@pytest.mark.parametrize(
    ("written", "field"),
    [
        ("ok", "rules.success_when"),
        ([], "rules.success_when"),
        ({}, "rules.success_when"),
        ({"exit": None}, "rules.success_when"),
        ({"exits": 0}, "rules.success_when.exits"),
        ({"exit": True}, "rules.success_when.exit"),
        ({"exit": "0"}, "rules.success_when.exit"),
        ({"exit": 256}, "rules.success_when.exit"),
        ({"exit": -1}, "rules.success_when.exit"),
        ({"exit": []}, "rules.success_when.exit"),
        ({"matches": ""}, "rules.success_when.matches"),
        ({"matches": 5}, "rules.success_when.matches"),
        ({"matches": "("}, "rules.success_when.matches"),
        ({"matches": "a(?=b)"}, "rules.success_when.matches"),
        ({"file": " "}, "rules.success_when.file"),
        ({"file": "a\0b"}, "rules.success_when.file"),
        ({"file": "x" * 5_000}, "rules.success_when.file"),
    ],
)
def test_what_is_no_success_is_refused_by_its_own_part(written: object, field: str) -> None:
    with pytest.raises(Invalid) as refused:
        read(COMMAND, written)
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("action", "rule", "said"),
    [
        (AGENT, {"exit": 0}, "an agent does not leave"),
        (CALL, {"file": "x"}, "a call does not leave"),
    ],
)
def test_what_a_kind_of_action_does_not_leave_cannot_be_asked_of_it(
    action: dict[str, Any], rule: dict[str, Any], said: str
) -> None:
    with pytest.raises(Invalid, match=said) as refused:
        refuse_contradictions(read(action, rule), zones.zone("UTC"), NOW)
    assert refused.value.field == "rules.success_when"


def test_the_schema_names_the_parts_of_a_success() -> None:
    rules = json_schema()["$defs"]["Rules"]["properties"]["success_when"]
    assert set(rules["properties"]) == {"exit", "matches", "file"}
