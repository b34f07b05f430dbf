"""Four processes on one SQLite file, due work for all: doubles, shares, and how long a beat waited.

`python -m bench.crowd`; every process has its 4 slots, beats five times a second, and says which tasks it ran.
"""

import json
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bench import rig
from duly.core.reasons import Refusal
from duly.core.triggers import Once
from duly.holder.heart import Beaten
from duly.holder.holder import Holder
from duly.holder.wish import wish
from duly.ports import Assignment, How, Outcome
from duly.runners.registry import Registry
from duly.store import Store

PROCESSES = 4
JOBS = 3_000
LEAD_S = 8.0
WITHIN_S = 120.0
BEAT = timedelta(seconds=0.2)
LEASE = timedelta(seconds=10)
SHARE_BAR, BEAT_BAR_S = 0.5, 0.5


class Telling:
    """No work but to say whose it was."""

    kept = False

    def __init__(self, told: list[str]) -> None:
        self._told = told

    def check(self, action: Mapping[str, object]) -> Refusal | None:  # noqa: ARG002 - the port's shape
        return None

    def perform(self, assignment: Assignment, checkpoint: Mapping[str, object] | None) -> Outcome:  # noqa: ARG002
        self._told.append(assignment.task)
        return Outcome(word="succeeded")

    def stop(self, how: How) -> None:
        """It has ended before anybody could ask."""


def measure(jobs: int = JOBS) -> dict[str, float]:
    """Give doubles, the worst process's part of a fair share, the longest beat in seconds, and the rate of all."""
    with tempfile.TemporaryDirectory(prefix="duly-bench-") as name:
        folder = Path(name)
        due = time.time() + LEAD_S
        store = rig.new_store(folder / "duly.db")
        rig.fill(store, [(Once(at=datetime.fromtimestamp(due, UTC)),) for _ in range(jobs)])
        command = [sys.executable, "-m", "bench.crowd", "hold", name]
        children = [
            subprocess.Popen(
                command, env=rig.environment(folder), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            for _ in range(PROCESSES)
        ]
        try:
            last = _wait_for_ends(store, jobs)
        finally:
            told = [json.loads(child.communicate("\n", timeout=60)[0]) for child in children]
            store.close()
    counts = Counter(task for one in told for task in one["tasks"])
    assert len(counts) == jobs, f"{len(counts)} of {jobs} tasks ran"
    return {
        "doubles": sum(counts.values()) - jobs,
        "worst_share": round(min(len(one["tasks"]) for one in told) / (jobs / PROCESSES), 3),
        "longest_beat_s": round(max(max(one["beats"]) for one in told), 4),
        "beats": sum(len(one["beats"]) for one in told),
        "jobs_s": round(jobs / (last - due)),
    }


def _wait_for_ends(store: Store, jobs: int) -> float:
    until = time.monotonic() + WITHIN_S
    while time.monotonic() < until:
        with store.read() as session:
            line = session.line
            ended = line.scalar("SELECT count(*) FROM runs WHERE outcome = 'succeeded'")
            if ended == jobs:
                return float(line.scalar("SELECT max(ended_us) FROM runs")) / 1e6
        time.sleep(0.05)
    raise RuntimeError("the work did not end")


def hold(folder: Path) -> None:
    """Be one of the processes until a line is read; then say what was done."""
    from duly.app.service import SWITCH_INTERVAL_S

    ran: list[str] = []
    beats: list[float] = []
    store = rig.open_store(folder / "duly.db")
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    registry = Registry({"command": lambda: Telling(ran)})
    holder = Holder(store, wish(beat=BEAT, lease=LEASE, drain=timedelta(0)), registry, tell=lambda _event, _told: None)
    step = holder.heart.step

    def timed() -> Beaten:
        began = time.perf_counter()
        try:
            return step()
        finally:
            beats.append(time.perf_counter() - began)

    holder.heart.step = timed  # type: ignore[method-assign]

    def stop_when_told() -> None:
        sys.stdin.readline()
        holder.stop()

    threading.Thread(target=stop_when_told, daemon=True).start()
    holder.start()
    holder.run()
    store.close()
    print(json.dumps({"tasks": ran, "beats": beats}))


def main() -> None:
    if sys.argv[1:2] == ["hold"]:
        hold(Path(sys.argv[2]))
        return
    found = measure()
    for name, figure in found.items():
        print(f"{name:<18}{figure:>10}")


if __name__ == "__main__":
    main()
