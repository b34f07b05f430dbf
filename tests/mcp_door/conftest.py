from pathlib import Path

import pytest
from door_scene import Door


@pytest.fixture
def door(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Door:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TZ", "UTC")
    for name in ("DULY_STORE", "DULY_CONFIG", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "DULY_RUN"):
        monkeypatch.delenv(name, raising=False)
    return Door(tmp_path)
