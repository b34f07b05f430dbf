from collections.abc import Iterator
from pathlib import Path

import pytest
from face_scene import Home


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    made = Home(tmp_path, monkeypatch)
    yield made
    made.close()
