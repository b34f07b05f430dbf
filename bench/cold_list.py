"""`duly list` from a cold start, against what Python needs to import SQLAlchemy alone."""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROUNDS = 20
TASKS = 5
BAR = 1.25


def measure(rounds: int = ROUNDS) -> dict[str, float]:
    """Measure both in turns; the minimum of each, in seconds, and their ratio."""
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "HOME": folder, "DULY_STORE": str(Path(folder) / "duly.db")}
        duly = [str(Path(sys.executable).with_name("duly"))]
        for number in range(TASKS):
            add = [*duly, "add", f"task-{number}", "--when", f"daily 0{number}:00", "--zone", "UTC", "--", "true"]
            subprocess.run(add, env=env, check=True, capture_output=True)
        floor = [sys.executable, "-c", "import sqlalchemy"]
        cold, bare = [], []
        for _ in range(rounds):
            bare.append(_timed(floor, env))
            cold.append(_timed([*duly, "list"], env))
    return {"list_s": min(cold), "sqlalchemy_s": min(bare), "ratio": min(cold) / min(bare), "bar": BAR}


def _timed(command: list[str], env: dict[str, str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, env=env, check=True, capture_output=True)
    return time.perf_counter() - began


if __name__ == "__main__":
    print(json.dumps(measure()))
