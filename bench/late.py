"""How late 50 schedules start that are due each second, in a SQLite file with FULL, beside the floor and APScheduler 3.

`python -m bench.late [ROUNDS]`. Each job leaves the instant of its start; how late that is, is counted from the last
whole second before it. A start that is later than a second counts for less than it is, which no party of ours gains by.
"""

import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bench import parties, rig
from duly.core.triggers import Every

JOBS = 50
SECONDS = 15
ROUNDS = 3
PARTIES = ("duly 64", "floor", "apscheduler 3")
WARM_S = 3
WITHIN_S = 60.0
FLOOR_BAR, APSCHEDULER_BAR = 3.0, 0.25
SECOND = timedelta(seconds=1)


def measure(rounds: int = ROUNDS) -> dict[str, float]:
    """Give each party's p99 in milliseconds, the ratios within each round, and how many starts of ours were lost."""
    seen: dict[str, list[float]] = {name: [] for name in PARTIES}
    lost = 0
    for _ in range(rounds):
        for name in PARTIES:
            late = _one(name)
            seen[name].append(late[int(len(late) * 0.99)] * 1e3)
            lost += JOBS * SECONDS - len(late) if name.startswith("duly") else 0
    found = {f"{name}, ms": round(rig.middle(values), 1) for name, values in seen.items()}
    for theirs in ("floor", "apscheduler 3"):
        pairs = zip(seen["duly 64"], seen[theirs], strict=True)
        found[f"duly 64 / {theirs}"] = round(rig.middle([ours / other for ours, other in pairs]), 3)
    return {**found, "lost": lost}


def _one(name: str) -> list[float]:
    """Let one party run; gives how late each of its starts was, sorted, some seconds after its first."""
    with tempfile.TemporaryDirectory(prefix="duly-bench-") as folder:
        marks = Path(folder) / "marks"
        command = [sys.executable, "-m", "bench.late", name, folder]
        child = subprocess.Popen(command, env=rig.environment(Path(folder)), cwd=rig.ROOT, stderr=subprocess.DEVNULL)
        try:
            until = time.monotonic() + WITHIN_S
            while not rig.read_marks(marks):
                assert time.monotonic() < until, f"{name} started nothing"
                time.sleep(0.05)
            first = int(time.time()) + WARM_S
            time.sleep(first + SECONDS + 1 - time.time())
        finally:
            child.terminate()
            child.wait()
        return sorted(mark - int(mark) for mark in rig.read_marks(marks) if first <= mark < first + SECONDS)


def run(name: str, folder: Path) -> None:
    """Be one of the parties, until it is ended."""
    parties.MARKS.append(rig.Marks(folder / "marks"))
    if name.startswith("duly"):
        at = datetime.now(UTC).replace(microsecond=0)
        store = rig.new_store(folder / "duly.db")
        rig.fill(store, [(Every(span=SECOND, anchor=at),) for _ in range(JOBS)])
        store.close()
        parties.run_duly(folder, int(name.split()[1]))
    elif name == "floor":
        second = int(time.time()) + 2
        parties.prepare_floor(folder, JOBS, second)
        while True:
            parties.run_floor(folder, second)
            second = int(time.time()) + 1
            parties.due_again(folder, second)
    else:
        parties.run_apscheduler_each_second(folder, JOBS)


def main() -> None:
    if len(sys.argv) > 2:
        run(sys.argv[1], Path(sys.argv[2]))
        return
    for name, figure in measure(int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS).items():
        print(f"{name:<28}{figure:>10}")


if __name__ == "__main__":
    main()
