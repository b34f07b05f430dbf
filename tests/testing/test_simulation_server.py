"""Hosts that share a PostgreSQL server, in one simulated world: their promises, and what breaks without each guard."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest
from server_bugs import SERVER_BUGS, ServerBug, controlled, planted

import databases
from duly.testing import BrokenPromise, World
from duly.testing.servers import server_shelf
from duly.testing.shelves import Shelf
from duly.testing.storm import play

HOSTS = 3
SEEDS = 4
WITHIN = 200
CONTROLLED = 1


@contextmanager
def a_server() -> Iterator[str]:
    if (url := os.environ.get(databases.SERVER)) is not None:
        yield url
        return
    server = databases.Server()
    try:
        yield server.url
    finally:
        server.remove()


@pytest.fixture(scope="module")
def shelf() -> Iterator[Shelf]:
    with a_server() as url, server_shelf(url) as made:
        yield made


@pytest.mark.parametrize("seed", range(SEEDS))
def test_hosts_that_share_a_server_keep_every_promise_whatever_befalls_them(seed: int, shelf: Shelf) -> None:
    assert play(seed, places=HOSTS, opening=shelf).steps > 0


def test_a_seed_is_one_history_on_a_server_too(shelf: Shelf) -> None:
    assert play(1, places=HOSTS, opening=shelf) == play(1, places=HOSTS, opening=shelf)


@pytest.mark.parametrize("hosts", [1, 2])
@pytest.mark.parametrize("ahead", [timedelta(seconds=15), timedelta(hours=2)])
def test_a_server_that_takes_over_with_its_clock_ahead_ends_no_work_and_nobody(
    shelf: Shelf, ahead: timedelta, hosts: int
) -> None:
    with World(opening=shelf) as world:
        places = [world.flow.places[0], *[world.host() for _ in range(hosts - 1)]]
        lives = [world.serve(place=places[number % hosts]) for number in range(3)]
        world.add("long", "once in 15s", on_interrupt="retry")
        world.work("long", lasts=timedelta(seconds=30))
        world.let_pass(timedelta(seconds=25))
        world.move_store_clock(ahead)
        world.let_pass(timedelta(seconds=25))
        assert [(run.outcome, run.attempt) for run in world.runs("long")] == [("succeeded", 1)]
        assert world.lives == tuple(lives)


def test_a_host_that_is_cut_off_has_ended_its_work_before_another_begins_it_again(shelf: Shelf) -> None:
    with World(opening=shelf) as world:
        world.add("long", "once in 15s", on_interrupt="retry")
        world.work("long", lasts=timedelta(seconds=30), deaf=True)
        world.serve()
        world.let_pass(timedelta(seconds=16))
        world.serve(place=world.host())
        world.cut_off(world.flow.places[0], timedelta(minutes=5))
        world.let_pass(timedelta(seconds=60))
        first, second = world.children()
        assert first.exit == {"ended_by": "deadline"}
        assert first.ended_us is not None
        assert first.ended_us < second.begun_us
        assert [(run.outcome, run.attempt) for run in world.runs("long")] == [("succeeded", 2)]


def test_what_is_due_is_due_by_the_clock_of_the_database_whatever_the_hosts_say(shelf: Shelf) -> None:
    with World(opening=shelf) as world:
        world.add("soon", "once in 60s")
        for minutes in (-5, 0, 5):
            world.serve(place=world.host(), off=timedelta(minutes=minutes))
        world.let_pass(timedelta(seconds=59))
        assert world.children() == []
        world.let_pass(timedelta(seconds=3))
        assert len(world.children()) == 1


@pytest.mark.parametrize("name", list(SERVER_BUGS))
def test_a_guard_of_hosts_that_is_taken_away_is_found_within_two_hundred_seeds(name: str, shelf: Shelf) -> None:
    bug = SERVER_BUGS[name]
    with planted(bug):
        assert any(is_found(bug, seed, shelf) for seed in range(bug.first, bug.first + WITHIN))


def is_found(bug: ServerBug, seed: int, shelf: Shelf) -> bool:
    try:
        play(seed, places=HOSTS, opening=shelf, troubles=bug.troubles)
    except BrokenPromise as broken:
        return bool(broken.faults)
    return False


@pytest.mark.parametrize("name", [name for name, bug in SERVER_BUGS.items() if bug.control is not None])
def test_what_befalls_hosts_more_often_breaks_nothing_as_long_as_the_guard_is_there(name: str, shelf: Shelf) -> None:
    bug = SERVER_BUGS[name]
    with controlled(bug):
        for seed in range(bug.first, bug.first + CONTROLLED):
            assert play(seed, places=HOSTS, opening=shelf, troubles=bug.troubles).steps > 0
