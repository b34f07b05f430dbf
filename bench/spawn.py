"""Commands (`true`) through keepers, four at a time, against Popen one at a time in the same run."""

import json
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from itertools import count
from pathlib import Path
from statistics import median

from duly.ports import Assignment
from duly.runners import folders
from duly.runners.command import Command
from duly.runners.nurseries import Nursery

COMMANDS = 400
ROUNDS = 5
AT_A_TIME = 4
BALLAST_BYTES = 1024**3
BAR, BALLAST_BAR = 0.35, 0.3
TRUE = "/bin/true"


def measure(*, ballast: bool = False) -> dict[str, object]:
    """Give commands a second both ways and their ratio, each the median of the rounds."""
    numbers = count()
    held = bytearray(b"\1") * BALLAST_BYTES if ballast else bytearray()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(AT_A_TIME) as carriers:
        nursery = Nursery()
        try:
            _keep(nursery, Path(folder), next(numbers))  # the nursery is there before the first round
            rounds = []
            for _ in range(ROUNDS):
                began = time.perf_counter()
                for _ in range(COMMANDS):
                    subprocess.Popen([TRUE]).wait()
                alone = COMMANDS / (time.perf_counter() - began)
                began = time.perf_counter()
                names = [next(numbers) for _ in range(COMMANDS)]
                list(carriers.map(lambda number: _keep(nursery, Path(folder), number), names))
                kept = COMMANDS / (time.perf_counter() - began)
                rounds.append((kept, alone, kept / alone))
        finally:
            nursery.close()
    kept_all, alone_all, ratios = zip(*rounds, strict=True)
    return {
        "keepers_per_s": round(median(kept_all)),
        "popen_per_s": round(median(alone_all)),
        "ratio": round(median(ratios), 3),
        "ratios": [round(ratio, 3) for ratio in ratios],
        "holder_bytes": len(held),
    }


def _keep(nursery: Nursery, folder: Path, number: int) -> None:
    attempt = folder / f"run_{number}.1"
    assignment = Assignment(
        run=f"run_{number}",
        attempt=1,
        fence=1,
        holder="hld_bench",
        task="tsk_bench",
        task_name="bench",
        project="default",
        occurrence=f"manual:{number}",
        due_at=None,
        opened_by="manual",
        action={"kind": "command", "argv": [TRUE], "cwd": "/"},
        input=None,
        timeout=timedelta(minutes=1),
        folder=attempt,
    )
    outcome = Command(nursery).perform(assignment, None)
    assert getattr(outcome, "word", None) == "succeeded", outcome
    folders.remove_traces(attempt)


if __name__ == "__main__":
    print(
        json.dumps({"small": measure(), "holder of 1 GiB": measure(ballast=True)} if "--all" in sys.argv else measure())
    )
