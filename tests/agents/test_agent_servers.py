"""Servers of agents as the config names them: started here by a command, or elsewhere at an address."""

from typing import Any

import pytest

from duly.core.agent_config import read_agents


def read(**given: Any) -> Any:
    agents, faults = read_agents({"one": {"kind": "opencode", **given}}, "config.toml")
    return agents.get("one") or faults["one"]


def test_a_server_is_named_by_a_command_or_by_its_address_and_the_name_of_its_password() -> None:
    assert read(command=["opencode", "serve"], env={"A": "b"}).command == ("opencode", "serve")
    elsewhere = read(url="https://agents.example:4096/base", password="${PASSWORD}")
    assert (elsewhere.url, elsewhere.password) == ("https://agents.example:4096/base", "${PASSWORD}")
    assert read(url="http://127.0.0.1:4096").password is None


@pytest.mark.parametrize(
    ("given", "field", "words"),
    [
        ({}, "command", "it is missing"),
        ({"url": "http://a", "command": ["x"]}, "command", "exclude each other"),
        ({"url": "http://a", "env": {}}, "env", "exclude each other"),
        ({"url": "ftp://a"}, "url", "no address"),
        ({"url": "http://user:word@a"}, "url", "no address"),
        ({"url": 7}, "url", "7"),
        ({"url": "http://a", "password": "open"}, "password", "only named"),
        ({"command": ["x"], "password": "${P}"}, "password", "password of its own"),
        ({"kind": "acp", "command": ["x"], "url": "http://a"}, "url", "has no server"),
        ({"kind": "telepathy", "command": ["x"]}, "kind", "acp, opencode"),
    ],
)
def test_a_server_that_is_named_wrongly_is_refused_with_the_field(
    given: dict[str, Any], field: str, words: str
) -> None:
    fault = read(**given)
    assert fault.field == f"config.toml: agents.one.{field}"
    assert words in fault.message
