"""For all tests: Hypothesis draws without a deadline, since the machines are small and noisy; a database to be in."""

import os
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings

import databases

settings.register_profile("house", deadline=None)
settings.load_profile("house")
OWN_SERVER = pytest.StashKey[databases.Server]()
TOGETHER = (
    ("tests/real_agents/", "real agents"),
    ("tests/processes/test_process_late_table.py", "late table"),
    ("tests/testing/test_simulation_server.py", "simulated server"),
)
"""What one process runs after the other, by the begin of the path: they share a server, or are too much at once."""


def pytest_configure(config: pytest.Config) -> None:
    if databases.ON_SERVER and not os.environ.get(databases.SERVER):
        config.stash[OWN_SERVER] = databases.Server()
        os.environ[databases.SERVER] = config.stash[OWN_SERVER].url


def pytest_unconfigure(config: pytest.Config) -> None:
    if (server := config.stash.get(OWN_SERVER, None)) is not None:
        server.remove()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """On PostgreSQL, leave out what asks about a SQLite file; each says by one of the words why it does."""
    for item in items:
        for mark in item.iter_markers("file"):
            assert len(mark.args) == 1, f"{item.nodeid}: the mark `file` says why, by one word of ASKS_A_FILE"
            assert mark.args[0] in databases.ASKS_A_FILE, f"{item.nodeid}: {mark.args[0]} is no word of ASKS_A_FILE"
    if databases.ON_SERVER:
        ours = [item for item in items if item.get_closest_marker("file") is None]
        config.hook.pytest_deselected(items=[item for item in items if item not in ours])
        items[:] = ours


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Keep together what is to be; the marks of the plugin do not reach its scheduler with this version of pytest."""
    from xdist.scheduler import LoadGroupScheduling

    class Together(LoadGroupScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return next((name for path, name in TOGETHER if nodeid.startswith(path)), nodeid)

    return Together(config, log)


@pytest.fixture(scope="session", autouse=True)
def _databases_of_all() -> Iterator[None]:
    with databases.dropped():
        yield


@pytest.fixture(scope="module", autouse=True)
def _databases_of_a_module() -> Iterator[None]:
    with databases.dropped():
        yield


@pytest.fixture(autouse=True)
def _databases() -> Iterator[None]:
    """Drop what a test made when it is over; what its module made is there for the others of it."""
    with databases.dropped():
        yield
