"""Storms over a PostgreSQL server: its connections are cut and it is started anew while holders are killed."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from chaos_scene import Arena
from chaos_storm import seed_of_now
from test_chaos_storm import ROUND_S, SEED, SHORT_S, rounds, weather

from databases import Server
from duly.store.address import ServerAddress


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.remove()


def storm(arena: Arena, server: Server, seed: int, seconds: float) -> None:
    try:
        weather(arena, seed, seconds, server)
    finally:
        arena.close()


@pytest.mark.parametrize("hosts", [1, 2])
def test_four_servers_over_a_database_that_is_cut_off_and_started_anew_keep_every_promise(
    tmp_path: Path, server: Server, hosts: int
) -> None:
    arena = Arena(tmp_path, ServerAddress(url=server.url), hosts)
    storm(arena, server, int(os.environ.get("DULY_CHAOS_SEED", SEED)) + hosts, SHORT_S)


@pytest.mark.slow
@pytest.mark.skipif(rounds == 0, reason="a long storm is asked for by DULY_CHAOS_SECONDS")
@pytest.mark.parametrize("number", range(max(1, rounds)))
def test_a_long_storm_over_a_database_keeps_every_promise_whether_on_one_host_or_on_two(
    tmp_path: Path, server: Server, number: int
) -> None:
    given = os.environ.get("DULY_CHAOS_SEED")
    arena = Arena(tmp_path, ServerAddress(url=server.url), 1 + number % 2)
    storm(arena, server, seed_of_now() if given is None else int(given) + number, ROUND_S)
