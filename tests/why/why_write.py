"""Writes the screens of all scenes to their files: `python tests/why/why_write.py`, then read what has changed."""

import sys
import tempfile
from pathlib import Path

import pytest
from why_scene import Stage
from why_screens import SCENES, Ask

GOLDEN = Path(__file__).parent / "golden"
COLUMNS = 80


def shown(stage: Stage, ask: Ask, columns: int = COLUMNS) -> str:
    """Give a screen as it is kept: what was typed, then what was answered."""
    typed = " ".join(f"'{word}'" if " " in word else word for word in ask)
    return stage.normal(f"$ duly {typed}\n{stage.call(*ask, columns=columns)}")


def main() -> int:
    """Write every screen anew."""
    for name, build in SCENES.items():
        with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
            stage = Stage(Path(folder), patch)
            try:
                (GOLDEN / f"{name}.txt").write_text(shown(stage, build(stage)), encoding="utf-8")
            finally:
                stage.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
