"""Webhooks as people define them."""

from datetime import UTC, datetime
from typing import Any

import pytest

from duly.core.definition_json import action_from_json, action_to_json
from duly.definitions import read_definition
from duly.errors import Invalid

NOW = datetime(2026, 12, 1, tzinfo=UTC)
URL = "https://example.com/hook"


def read(**action: Any) -> Any:
    given = {"name": "tell", "action": {"kind": "http", "url": URL, **action}}
    return read_definition(given, now=NOW, default_zone="UTC").definition.action


def test_a_webhook_reads_back_as_it_was_written() -> None:
    action = read(method="put", headers={"X-Kind": "a", "Authorization": "Bearer ${TOKEN}"}, body="{}", sign="${KEY}")
    assert action_from_json(action_to_json(action)) == action
    assert (action["method"], action["sign"], action["headers"]["X-Kind"]) == ("PUT", "KEY", "a")


@pytest.mark.parametrize(
    "url", ["${HOOK}", "http://127.0.0.1:8080/a?b=c", "https://x.example/${TOKEN}", "http://[::1]/"]
)
def test_addresses_that_are_taken(url: str) -> None:
    assert read(url=url)["url"] == url


@pytest.mark.parametrize(
    ("action", "field", "told"),
    [
        ({"url": "ftp://example.com/"}, "action.url", "neither http"),
        ({"url": "example.com"}, "action.url", "neither http"),
        ({"url": "http://"}, "action.url", "no host"),
        ({"url": "http://user:hunter2@example.com/"}, "action.url", "user and password"),
        ({"url": "http://example.com/a b"}, "action.url", "blank"),
        ({"url": "http://example.com/\r\nX: y"}, "action.url", "blank or a control"),
        ({"url": "http://example.com:99999/"}, "action.url", "no address"),
        ({"url": "http://example.com/#part"}, "action.url", "never sent"),
        ({"url": 7}, "action.url", "is not text"),
        ({"method": "TRACE"}, "action.method", "not one of"),
        ({"method": "GET", "body": "x"}, "action.body", "carries no body"),
        ({"headers": ["X: y"]}, "action.headers", "not an object"),
        ({"headers": {"X Y": "z"}}, "action.headers", "not the name of a header"),
        ({"headers": {"X": "a\r\nY: b"}}, "action.headers.X", "printable"),
        ({"headers": {"X": "ä"}}, "action.headers.X", "printable"),
        ({"headers": {"Host": "a"}}, "action.headers.Host", "itself"),
        ({"headers": {"duly-run": "a"}}, "action.headers.duly-run", "itself"),
        ({"headers": {"A": "1", "a": "2"}}, "action.headers.a", "twice"),
        ({"sign": "not a name"}, "action.sign", "only named"),
        ({"body": "x" * (256 * 1024 + 1)}, "action.body", "are allowed"),
        ({"cwd": "/tmp"}, "action.cwd", "no such field"),
    ],
)
def test_what_cannot_be_sent_is_refused_by_the_field_that_is_wrong(
    action: dict[str, Any], field: str, told: str
) -> None:
    with pytest.raises(Invalid) as bad:
        read(**action)
    assert bad.value.field == field
    assert told in bad.value.message
    assert "hunter2" not in str(bad.value.message) + str(bad.value.text) + str(bad.value.hint)


def test_a_webhook_without_an_address_is_refused() -> None:
    with pytest.raises(Invalid) as bad:
        read_definition({"name": "tell", "action": {"kind": "http"}}, now=NOW, default_zone="UTC")
    assert bad.value.field == "action.url"


def test_what_only_a_command_leaves_cannot_be_asked_of_an_answer() -> None:
    from duly.core.contradictions import refuse_contradictions
    from duly.zones import zone

    given = {"name": "t", "action": {"kind": "http", "url": URL}, "rules": {"success_when": {"exit": 0}}}
    definition = read_definition(given, now=NOW, default_zone="UTC").definition
    with pytest.raises(Invalid, match="asks for exit"):
        refuse_contradictions(definition, zone("UTC"), NOW)
