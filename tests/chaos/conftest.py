from collections.abc import Iterator
from pathlib import Path

import pytest
from chaos_scene import Arena


@pytest.fixture
def arena(tmp_path: Path) -> Iterator[Arena]:
    made = Arena(tmp_path)
    yield made
    made.close()
