"""Listening to a server: what could not be begun leaves no connection behind."""

import gc
import os
import sys
from collections.abc import Iterator

import pytest

import databases
from duly.store import server_engine
from duly.store.address import ServerAddress


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    if (url := os.environ.get(databases.SERVER)) is not None:
        yield url
        return
    made = databases.Server()
    yield made.url
    made.remove()


def test_a_connection_that_may_not_listen_is_closed_and_not_left_to_chance(
    server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    left: list[str] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda told: left.append(str(told.exc_value)))
    monkeypatch.setattr(server_engine, "CHANNEL", "no name of a channel")
    ear = server_engine.Ear(ServerAddress(url=server))
    assert ear.descriptor is None
    ear.close()
    gc.collect()
    assert [told for told in left if "Connection" in told] == []
