from collections.abc import Iterator
from pathlib import Path

import pytest
from why_scene import Stage


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    made = Stage(tmp_path, monkeypatch)
    yield made
    made.close()
