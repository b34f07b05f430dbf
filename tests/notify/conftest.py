import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "store"))
sys.path.insert(0, str(Path(__file__).parents[1] / "web"))

from notify_scene import Post, Told
from store_scene import Scene, scene


@pytest.fixture
def s(tmp_path: Path) -> Iterator[Scene]:
    with scene(tmp_path) as made:
        yield made


@pytest.fixture
def post() -> Iterator[Post]:
    made = Post()
    yield made
    made.close()


@pytest.fixture
def told(s: Scene, post: Post) -> Iterator[Told]:
    made = Told(s, post)
    yield made
    made.close()
