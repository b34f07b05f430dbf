import subprocess
import sys
from pathlib import Path

import pytest
from cli_scene import Scene

TESTS = Path(__file__).parents[1]


@pytest.mark.slow
def test_all_time_cases_hold_through_preview(scene: Scene) -> None:
    done = subprocess.run(
        [sys.executable, TESTS / "tools" / "time_cases.py", TESTS / "data" / "time-cases.json"],
        env=scene.env,
        check=False,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout
    held, _, of, *_ = done.stdout.split()
    assert held == of
    assert int(of) > 100
