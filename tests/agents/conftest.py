from collections.abc import Iterator
from pathlib import Path

import pytest
from agent_scene import Scene

from duly.runners.nurseries import Nursery


@pytest.fixture
def nursery() -> Iterator[Nursery]:
    one = Nursery()
    yield one
    one.close()


@pytest.fixture
def scene(tmp_path: Path, nursery: Nursery) -> Iterator[Scene]:
    one = Scene(tmp_path, nursery)
    yield one
    one.close()
