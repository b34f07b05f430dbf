import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duly.core.action_fields import ACTION, FIELDS_OF
from duly.core.definition_json import definition_from_json, definition_to_json
from duly.core.fields import DESCRIPTION_MOST, FIELDS, NAME_MOST
from duly.core.reading import read_name
from duly.core.rule_fields import QUEUE_MOST, RULES
from duly.core.task import DEFAULT_TIMEOUT, Definition, Rules
from duly.definitions import json_schema, read_definition
from duly.errors import Invalid

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
WORK = {"kind": "command", "argv": ["true"], "cwd": "/tmp"}


def read(**fields: Any) -> Definition:
    given = {"name": "x", "triggers": ["daily 09:00"], "zone": "UTC", "action": WORK} | fields
    return read_definition(given, now=NOW, default_zone=None).definition


def refused(**fields: Any) -> Invalid:
    with pytest.raises(Invalid) as caught:
        read(**fields)
    return caught.value


SPANS = st.integers(1, 10_000).map(lambda n: timedelta(seconds=n))
RULE_VALUES = st.fixed_dictionaries(
    {},
    optional={
        "on_missed": st.sampled_from(["run", "skip"]),
        "max_age": SPANS,
        "grace": SPANS,
        "overlap": st.sampled_from(["skip", "queue"]),
        "queue": st.integers(1, QUEUE_MOST),
        "on_interrupt": st.sampled_from(["fail", "retry"]),
        "timeout": SPANS,
    },
)
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)
NAMES = st.text(
    st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"], exclude_characters="/"), min_size=1, max_size=NAME_MOST
)


@given(rules=RULE_VALUES, argv=st.lists(TEXT, min_size=1, max_size=4), env=st.dictionaries(st.just("K"), TEXT))
def test_what_is_stored_reads_back_as_it_was(rules: Mapping[str, Any], argv: list[str], env: dict[str, str]) -> None:
    argv[0] = argv[0] or "true"
    definition = Definition(
        name="x",
        description="d",
        labels={"k": "v"},
        triggers=read(triggers=["daily 09:00", "*/5 * * * *", "every 15m"]).triggers,
        zone="Europe/Berlin",
        action={"kind": "command", "argv": tuple(argv), "env": env, "cwd": "/tmp"},
        rules=Rules(**rules),
        own_rules=frozenset(rules),
    )
    stored = json.loads(json.dumps(definition_to_json(definition)))
    assert definition_from_json(stored) == definition


@given(name=NAMES)
def test_a_name_that_is_taken_is_taken_again_as_it_was_kept(name: str) -> None:
    try:
        kept = read_name(name)
    except Invalid:
        return
    assert read_name(kept) == kept
    assert 1 <= len(kept) <= NAME_MOST


@pytest.mark.parametrize(
    "name", ["日本", "🚀", "a" * NAME_MOST, "x.y", "-x"[1:], "%", "o'clock", "<b>", "nul\u00a0space"]
)
def test_any_script_is_a_name(name: str) -> None:
    assert read(name=name).name == name


@pytest.mark.parametrize(
    "name", ["", " ", "a" * (NAME_MOST + 1), "a/b", "-x", "@x", "a\0b", "a\x7fb", "a\u2028b", " x", "x "]
)
def test_what_is_no_name_is_refused_with_its_field(name: str) -> None:
    assert refused(name=name).field == "name"


def test_an_unknown_field_is_refused_with_the_nearest() -> None:
    assert (refused(zon="UTC").field, refused(zon="UTC").hint) == ("zon", "zone")
    fault = refused(rules={"overlaps": "skip"})
    assert (fault.field, fault.hint) == ("rules.overlaps", "rules.overlap")
    assert refused(action={**WORK, "arg": 1}).field == "action.arg"


@pytest.mark.parametrize(
    ("field", "fields"),
    [
        ("name", {"name": 5}),
        ("enabled", {"enabled": "yes"}),
        ("labels", {"labels": ["a"]}),
        ("labels.k", {"labels": {"k": 1}}),
        ("description", {"description": "d" * (DESCRIPTION_MOST + 1)}),
        ("triggers", {"triggers": "daily 09:00"}),
        ("triggers[1]", {"triggers": ["daily 09:00", 5]}),
        ("triggers[1]", {"triggers": ["daily 09:00", "daily 9"]}),
        ("triggers[0]", {"triggers": [{"kind": "daily", "times": ["25:00"]}]}),
        ("triggers[0]", {"triggers": [{"kind": "once", "at": "2020-01-01T00:00:00Z"}]}),
        ("zone", {"zone": "CST"}),
        ("rules.max_age", {"rules": {"max_age": 6}}),
        ("rules.max_age", {"rules": {"max_age": "6"}}),
        ("rules.queue", {"rules": {"queue": True}}),
        ("rules.queue", {"rules": {"queue": 1.5}}),
        ("rules.overlap", {"rules": {"overlap": "often"}}),
        ("rules", {"rules": []}),
        ("action", {"action": "true"}),
        ("action.kind", {"action": {"kind": "mail", "url": "u"}}),
        ("action.url", {"action": {"kind": "http", "url": "u"}}),
        ("action.agent", {"action": {"kind": "agent", "prompt": "p"}}),
        ("action.prompt", {"action": {"kind": "agent", "agent": "a"}}),
        ("rules.permissions[0].action", {"rules": {"permissions": [{"tool": "x", "action": "ask"}]}}),
        ("action.argv", {"action": {"kind": "command"}}),
        ("action.argv", {"action": {"kind": "command", "argv": "true"}}),
        ("action.argv[1]", {"action": {"kind": "command", "argv": ["echo", "a\0b"]}}),
        ("action.shell", {"action": {"kind": "command", "argv": ["true"], "shell": "true"}}),
        ("action.cwd", {"action": {"kind": "command", "argv": ["true"], "cwd": "here"}}),
    ],
)
def test_a_fault_names_its_field(field: str, fields: Any) -> None:
    fault = refused(**fields)
    assert fault.field == field
    assert fault.message


def test_all_faults_are_told_at_once() -> None:
    fault = refused(name="a/b", zone=5, rules={"queue": 0})
    errors = fault.details["errors"]
    assert isinstance(errors, list)
    assert [error["pointer"] for error in errors] == ["/name", "/zone", "/rules/queue"]


def test_a_trigger_is_read_as_text_and_as_an_object_alike() -> None:
    assert read(triggers=["daily 9:00"]).triggers == read(triggers=[{"kind": "daily", "times": ["09:00"]}]).triggers
    assert read(triggers=[]).triggers == read(triggers=["manual"]).triggers == ()


def test_the_rules_an_author_wrote_are_told_from_defaults() -> None:
    definition = read(rules={"max_age": "6h"})
    assert definition.own_rules == {"max_age"}
    assert definition_to_json(definition)["rules"] == {"max_age": "6h"}


def test_the_zone_is_spelt_as_the_database_spells_it() -> None:
    assert read(zone="europe/berlin").zone == "Europe/Berlin"
    with pytest.raises(Invalid) as caught:
        read_definition({"name": "x", "triggers": [], "action": WORK}, now=NOW, default_zone=None)
    assert caught.value.field == "zone"


def test_the_schema_has_every_field_of_the_table() -> None:
    schema = json_schema()
    assert schema["additionalProperties"] is False
    for field in FIELDS:
        part = schema
        for step in field.place[:-1]:
            part = schema["$defs"][step.capitalize()]
        assert part["properties"][field.place[-1]]["description"] == field.help
    assert set(schema["required"]) == {"name", "action"}


def test_every_rule_and_every_part_of_an_action_has_a_field() -> None:
    assert {field.name for field in RULES} == set(Rules.__dataclass_fields__)
    for field in RULES:
        default = getattr(Rules(), field.name)
        assert (field.default is None) == (default is None)
    assert {field.name for field in ACTION} == {name for names in FIELDS_OF.values() for name in names}
    assert set(FIELDS_OF) <= set(DEFAULT_TIMEOUT)


@pytest.mark.parametrize(
    "stored",
    [{}, {"name": "x"}, {"name": "x", "action": None}, {"name": "x", "action": WORK, "later": 1}, [], None, "x", 5],
)
def test_what_does_not_read_back_says_which_field(stored: Any) -> None:
    with pytest.raises(Invalid) as caught:
        definition_from_json(stored)
    assert caught.value.field
