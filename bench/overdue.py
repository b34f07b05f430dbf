"""2,000 tasks that were due while nobody served, then one server: who runs them, and of which nothing is left.

`python -m bench.overdue`. Both parties have their defaults. Duly gives each occurrence its run or, where it is too late
for one, its entry in the ledger; APScheduler 3 drops a job that is more than a second late, with a line in its log.
"""

import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

from bench import rig

JOBS = 2_000
LATE_S = 600.0
WITHIN_S = 120.0
APSCHEDULER = "apscheduler 3 by default"


def measure() -> dict[str, int]:
    """Give for each party how many of the jobs it ran, and how many it neither ran nor keeps anything of."""
    found = {}
    for name, word in (("duly 4", "duly"), (APSCHEDULER, "apscheduler")):
        with tempfile.TemporaryDirectory(prefix="duly-bench-") as folder:
            ran, kept = _one(name, Path(folder))
        found[f"{word}_ran"] = ran
        found[f"{word}_dropped"] = JOBS - ran - kept
    return found


def _one(name: str, folder: Path) -> tuple[int, int]:
    due = time.time() - LATE_S
    if _party(name, "prepare", folder, due).wait():
        raise RuntimeError(f"{name} could not be prepared")
    child = _party(name, "run", folder, due)
    left = _left_in_duly if name.startswith("duly") else _left_in_apscheduler
    try:
        until = time.monotonic() + WITHIN_S
        while left(folder):
            if time.monotonic() > until or child.poll() is not None:
                raise RuntimeError(f"{name} left {left(folder)} jobs untouched")
            time.sleep(0.1)
    finally:
        child.terminate()
        child.wait()
    ran = len(rig.read_marks(folder / "marks"))
    return ran, _ledgered(folder) if name.startswith("duly") else 0


def _party(name: str, verb: str, folder: Path, due: float) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "bench.parties", name, verb, str(folder), str(JOBS), repr(due)]
    return subprocess.Popen(command, env=rig.environment(folder), cwd=rig.ROOT, stderr=subprocess.DEVNULL)


def _left_in_duly(folder: Path) -> int:
    """Tasks whose time has come and that nobody has planned, and runs that have not ended."""
    with closing(sqlite3.connect(f"file:{folder / 'duly.db'}?mode=ro", uri=True)) as line:
        planned = line.execute("SELECT count(*) FROM tasks WHERE next_due_us IS NOT NULL").fetchone()[0]
        return int(planned) + int(line.execute("SELECT count(*) FROM runs WHERE state != 'ended'").fetchone()[0])


def _ledgered(folder: Path) -> int:
    """Occurrences that did not run, each with an entry that says why."""
    with closing(sqlite3.connect(f"file:{folder / 'duly.db'}?mode=ro", uri=True)) as line:
        missed = line.execute("SELECT coalesce(sum(count), 0) FROM ledger WHERE kind IN ('missed', 'stretch')")
        skipped = line.execute("SELECT count(*) FROM ledger WHERE kind = 'skipped'")
        return int(missed.fetchone()[0]) + int(skipped.fetchone()[0])


def _left_in_apscheduler(folder: Path) -> int:
    with closing(sqlite3.connect(f"file:{folder / 'jobs.db'}?mode=ro", uri=True)) as line:
        return int(line.execute("SELECT count(*) FROM apscheduler_jobs").fetchone()[0])


def main() -> None:
    for name, number in measure().items():
        print(f"{name:<22}{number:>8}")


if __name__ == "__main__":
    main()
