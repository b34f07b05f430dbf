import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duly.core.action_fields import ARGUMENTS_MOST, FUNCTION_MOST
from duly.core.definition_json import definition_from_json, definition_to_json
from duly.core.task import Definition
from duly.definitions import json_schema, read_definition
from duly.errors import Invalid
from duly.operations import shapes

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | FLOATS | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
NAMES = st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True)


def read(**action: Any) -> Definition:
    return read_definition(
        {"name": "x", "zone": "UTC", "action": {"kind": "call", **action}}, now=NOW, default_zone=None
    ).definition


@given(args=st.lists(JSON, max_size=4) | st.dictionaries(NAMES, JSON, max_size=4))
def test_a_call_is_kept_with_its_arguments_as_they_are(args: Any) -> None:
    definition = read(function="shop.jobs:Shelf.tidy", args=args)
    stored = json.loads(json.dumps(definition_to_json(definition)))
    assert definition_from_json(stored) == definition
    assert stored["action"] == {"kind": "call", "function": "shop.jobs:Shelf.tidy", "args": args}


def test_what_is_shown_of_a_call_reads_back_and_means_the_same() -> None:
    for where in ("child", "thread"):
        shown = shapes.action(read(**{"function": "a:b", "in": where}).action)
        assert shown == {"kind": "call", "function": "a:b", "in": where, "args": [], "cwd": None, "env": {}}
        assert shapes.action(read(**{key: value for key, value in shown.items() if key != "kind"}).action) == shown


BAD: dict[str, tuple[dict[str, Any], str, str]] = {
    "nothing": ({}, "action.function", "which function is called is missing"),
    "not a text": ({"function": 3}, "action.function", "3 is not text"),
    "no colon": ({"function": "shop.jobs.nightly"}, "action.function", '"shop.jobs.nightly" has no colon'),
    "no module": ({"function": ":f"}, "action.function", '"" is not the name of a module'),
    "no function": ({"function": "shop:"}, "action.function", '"" is not the name of a function'),
    "a path": ({"function": "shop/jobs.py:f"}, "action.function", '"shop/jobs.py" is not the name of a module'),
    "two colons": ({"function": "a:b:c"}, "action.function", '"b:c" is not the name of a function'),
    "a call": ({"function": "a:b()"}, "action.function", '"b()" is not the name of a function'),
    "relative": ({"function": ".a:b"}, "action.function", '".a" is not the name of a module'),
    "NUL": ({"function": "a:b\0"}, "action.function", "a NUL character cannot be kept"),
    "long": ({"function": "a:" + "b" * FUNCTION_MOST}, "action.function", "it has 502 characters"),
    "args a text": ({"function": "a:b", "args": "one"}, "action.args", '"one" is neither a list nor an object'),
    "args a number": ({"function": "a:b", "args": 1}, "action.args", "1 is neither a list nor an object"),
    "args no JSON": ({"function": "a:b", "args": [{1}]}, "action.args[0]", "{1} is not JSON"),
    "args bytes": ({"function": "a:b", "args": {"x": b"y"}}, "action.args.x", "b'y' is not JSON"),
    "args endless": ({"function": "a:b", "args": [float("inf")]}, "action.args[0]", "inf is not JSON"),
    "args huge": ({"function": "a:b", "args": [2**63]}, "action.args[0]", "a whole number has 64 bits at most"),
    "args long": ({"function": "a:b", "args": ["x" * ARGUMENTS_MOST]}, "action.args", "as JSON it has 1,048,580"),
    "args deep": ({"function": "a:b", "args": [json.loads("[" * 60 + "]" * 60)]}, "action.args", ""),
    "args names": ({"function": "a:b", "args": {"not a name": 1}}, "action.args", '"not a name" is not the name of'),
    "args key": ({"function": "a:b", "args": {1: 1}}, "action.args", "1 is not text"),
    "where": ({"function": "a:b", "in": "process"}, "action.in", '"process" is not one of child, thread'),
    "thread and cwd": ({"function": "a:b", "in": "thread", "cwd": "/"}, "action.cwd", "a function in a thread shares"),
    "thread and env": ({"function": "a:b", "in": "thread", "env": {"A": "b"}}, "action.env", "a function in a thread"),
    "argv": ({"function": "a:b", "argv": ["true"]}, "action.argv", "a call has no such field"),
    "shell": ({"function": "a:b", "shell": "true"}, "action.shell", "a call has no such field"),
    "relative folder": ({"function": "a:b", "cwd": "here"}, "action.cwd", '"here" is not an absolute path'),
}


@pytest.mark.parametrize("name", BAD)
def test_a_call_that_means_nothing_is_refused_with_its_field(name: str) -> None:
    action, field, message = BAD[name]
    with pytest.raises(Invalid) as caught:
        read(**action)
    assert (caught.value.field or "").startswith(field)
    assert caught.value.message.startswith(message)


def test_the_schema_of_a_definition_tells_of_calls() -> None:
    action = json_schema()["$defs"]["Action"]["properties"]
    assert set(action["kind"]["enum"]) == {"command", "call", "agent", "http"}
    assert action["function"]["anyOf"][0]["pattern"]
    assert action["in"]["anyOf"][0]["enum"] == ["child", "thread"]
