"""Four servers in a storm drawn from a seed: nothing twice, nothing at once, nothing lost, nothing left."""

import os

import pytest
from chaos_checks import (
    check_ends,
    check_every_second,
    check_idle,
    check_nothing_left,
    check_records,
    check_verified,
    check_witness,
    untidy,
)
from chaos_scene import Arena, wait_for
from chaos_storm import RETRYING, STEADY, Storm, seed_of_now

from databases import Server

SEED = 20261129
SHORT_S = 12.0
ROUND_S = 60.0


def weather(arena: Arena, seed: int, seconds: float, server: Server | None = None) -> None:
    storm = Storm(arena, seed, server=server)
    storm.prepare()
    storm.blow(seconds)
    storm.calm()
    check_idle(arena)
    if arena.hosts > 1:
        # What another host has ended is cleared where it was begun by the next holder there: one a host.
        for _ in range(arena.hosts):
            arena.serve()
        wait_for(lambda: not untidy(arena), told=lambda: untidy(arena))
    arena.stop()
    check_ends(arena)
    check_witness(arena, RETRYING)
    check_records(arena)
    for task in STEADY:
        check_every_second(arena, task)
    check_verified(arena)
    check_nothing_left(arena)


def test_four_servers_in_a_short_storm_keep_every_promise_by_the_works_own_witness(arena: Arena) -> None:
    weather(arena, int(os.environ.get("DULY_CHAOS_SEED", SEED)), SHORT_S)


rounds = max(0, int(float(os.environ.get("DULY_CHAOS_SECONDS", "0")) / ROUND_S))


@pytest.mark.slow
@pytest.mark.skipif(rounds == 0, reason="a long storm is asked for by DULY_CHAOS_SECONDS")
@pytest.mark.parametrize("number", range(max(1, rounds)))
def test_four_servers_in_a_long_storm_keep_every_promise_by_the_works_own_witness(arena: Arena, number: int) -> None:
    given = os.environ.get("DULY_CHAOS_SEED")
    weather(arena, seed_of_now() if given is None else int(given) + number, ROUND_S)
