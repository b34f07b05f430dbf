from collections.abc import Iterator
from pathlib import Path

import pytest
from process_scene import Place
from prompting_scene import Agents
from server_scene import Hosts


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    yield made
    made.close()


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[Hosts]:
    made = Hosts(tmp_path)
    yield made
    made.close()


@pytest.fixture
def agents(place: Place) -> Agents:
    return Agents(place)
