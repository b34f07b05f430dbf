from collections.abc import Iterator
from pathlib import Path

import pytest
from web_scene import Web, web_over


@pytest.fixture
def web(tmp_path: Path) -> Iterator[Web]:
    with web_over(tmp_path) as made:
        yield made
