"""A run by hand from another process: from the commit of `run_now` to the first instant of the command's own work.

`python -m bench.hand_run`; the runs are asked for at changing distances, so that they meet every phase of the loop.
"""

import tempfile
import time
from pathlib import Path

from bench import rig
from duly import ids
from duly.core.task import Definition
from duly.operations import tasks
from duly.operations.runs import run_now
from duly.store import Store

RUNS = 20
BAR_S = 0.5
APART_S = 0.137
WITHIN_S = 10.0


def measure(runs: int = RUNS) -> dict[str, float]:
    """Give the median and the maximum of the delays, in seconds."""
    with tempfile.TemporaryDirectory(prefix="duly-bench-") as name:
        folder = Path(name)
        store = rig.new_store(folder / "duly.db")
        child, _ = rig.serve(folder)
        try:
            delays = [_delay(store, folder, number) for number in range(runs)]
        finally:
            rig.end(child)
            store.close()
    return {"median_s": round(rig.middle(delays), 4), "max_s": round(max(delays), 4), "bar_s": BAR_S}


def _delay(store: Store, folder: Path, number: int) -> float:
    witness = folder / f"{ids.new('evt')}.began"
    line = f"date +%s.%N > '{witness}.new' && mv '{witness}.new' '{witness}'"
    action = {"kind": "command", "shell": line, "cwd": str(folder)}
    task = tasks.add(store, Definition(name=f"by-hand-{number}", action=action), by="bench", source={"kind": "bench"})
    time.sleep(0.5 + number * APART_S % 0.4)
    run_now(store, task.id, by="bench")
    committed = time.time()
    until = time.monotonic() + WITHIN_S
    while not witness.exists():
        if time.monotonic() > until:
            raise RuntimeError("the run did not start")
        time.sleep(0.002)
    return float(witness.read_text()) - committed


def main() -> None:
    found = measure()
    print(f"median {found['median_s']:.3f} s, maximum {found['max_s']:.3f} s, target below {BAR_S} s")


if __name__ == "__main__":
    main()
