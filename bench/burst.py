"""2,000 tasks due at one instant, no-op work: Duly at 4 and 64 slots beside the floor, Huey and APScheduler 3.

`python -m bench.burst [server] [ROUNDS]`. The parties run one after the other in each round, each in a process of its
own on a store of its own that was filled before. A rate is the number of jobs by the time from their due instant to
the start of the last; `from the first start` leaves out what a party waited before it began (Huey looks once a second).
"""

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from bench import parties, rig
from bench.server import Server
from duly.store import Store
from duly.store.address import Address, ServerAddress

JOBS = 2_000
ROUNDS = 3
LEADS = {"duly 4": 4.0, "duly 64": 4.0, "duly 64 spinning": 5.0, "floor": 2.5, "huey": 5.0, "apscheduler 3": 10.0}
ON_SERVER = {"duly 256": 8.0, "duly 256 twice": 8.0, "pgqueuer 100": 5.0, "pgqueuer 10": 5.0, "apscheduler 3": 12.0}
"""Seconds from the beginning of the preparation to the due instant; doubled where they did not suffice."""
SETTLE_S = 1.5
"""Before the due instant the party must have been running for so long."""
WITHIN_S = 120.0
BARS = (("duly 4", "huey", 0.8), ("duly 4", "apscheduler 3", 1.4))
WIDE = (("duly 64", "huey", 3.5), ("duly 64", "apscheduler 3", 6.0), ("duly 64", "floor", 0.12))
SPINNING = (("duly 64 spinning", "duly 64", 0.15),)
SERVER_BARS = (
    ("duly 256", "apscheduler 3", 5.0),
    ("duly 256", "pgqueuer 100", 0.6),
    ("duly 256", "pgqueuer 10", 0.0),
    ("duly 256 twice", "duly 256", 1.3),
)
CPU_BARS_US = {"duly 64": 220, "duly 256": 130}


@dataclass(frozen=True, slots=True, kw_only=True)
class Burst:
    """What one party did in one round."""

    rate: float
    rate_from_first: float
    cpu_us: float
    busy: float
    """The part of all cores that the party and its server used, from the due instant to the last start."""
    gap_s: float
    """The longest between two beats, from the due instant to the last start; 0 where they were not noted."""


def measure(rounds: int = ROUNDS, names: tuple[str, ...] = tuple(LEADS)) -> dict[str, object]:
    """Give each party's median rates and client CPU a job, and the medians of the ratios within each round."""
    seen: dict[str, list[Burst]] = {name: [] for name in names}
    for _ in range(rounds):
        for name in names:
            seen[name].append(_one(name, LEADS[name], None))
    return _told(seen)


def measure_on_server(rounds: int = ROUNDS, names: tuple[str, ...] = tuple(ON_SERVER)) -> dict[str, object]:
    """Give the same of parties that keep their jobs in PostgreSQL."""
    seen: dict[str, list[Burst]] = {name: [] for name in names}
    server = Server()
    try:
        for _ in range(rounds):
            for name in names:
                seen[name].append(_one(name, ON_SERVER[name], server))
    finally:
        server.close()
    return _told(seen)


def _told(seen: dict[str, list[Burst]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for name, bursts in seen.items():
        found[name] = {
            "jobs_s": round(rig.middle([one.rate for one in bursts])),
            "from_first_jobs_s": round(rig.middle([one.rate_from_first for one in bursts])),
            "cpu_us": round(rig.middle([one.cpu_us for one in bursts])),
            "gap_s": round(max(one.gap_s for one in bursts), 3),
            "busy_percent": round(100 * rig.middle([one.busy for one in bursts])),
        }
    for ours, theirs, _ in (*BARS, *WIDE, *SPINNING, *SERVER_BARS):
        if ours in seen and theirs in seen:
            pairs = list(zip(seen[ours], seen[theirs], strict=True))
            found[f"{ours} / {theirs}"] = round(rig.middle([a.rate / b.rate for a, b in pairs]), 3)
            strict = rig.middle([a.rate / b.rate_from_first for a, b in pairs])
            found[f"{ours} / {theirs}, from the first start"] = round(strict, 3)
    return found


def _one(name: str, lead: float, server: Server | None) -> Burst:
    while True:
        with tempfile.TemporaryDirectory(prefix="duly-bench-") as folder:
            due = time.time() + lead
            env = rig.environment(Path(folder))
            if server is not None:
                env[rig.DATABASE] = server.database()
            if _party(name, "prepare", Path(folder), due, env).wait():
                raise RuntimeError(f"{name} could not be prepared")
            if time.time() < due - SETTLE_S:
                return _burst(name, Path(folder), due, env, server)
        lead *= 2


def _burst(name: str, folder: Path, due: float, env: dict[str, str], server: Server | None) -> Burst:
    children = [_party(name, "run", folder, due, env) for _ in range(2 if name.endswith("twice") else 1)]
    try:
        time.sleep(max(0.0, due - 0.1 - time.time()))
        before = sum(rig.cpu_s(child.pid) for child in children)
        served = 0.0 if server is None else -rig.family_cpu_s(server.pid)
        _wait_for(folder / "marks", children)
        served += 0.0 if server is None else rig.family_cpu_s(server.pid)
        cpu = sum(rig.cpu_s(child.pid) for child in children) if all(c.poll() is None for c in children) else before
        time.sleep(0.5)
    finally:
        for child in children:
            child.terminate()
        for child in children:
            child.wait()
    marks = sorted(rig.read_marks(folder / "marks"))
    assert len(marks) == JOBS, f"{name}: {len(marks)} starts of {JOBS} jobs"
    assert marks[0] >= due - 0.002, f"{name}: a start {due - marks[0]:.3f} s too early"
    if name.startswith("duly"):
        _check_ledger(folder, env)
    return Burst(
        rate=JOBS / (marks[-1] - due),
        rate_from_first=JOBS / (marks[-1] - marks[0]),
        cpu_us=(cpu - before) / JOBS * 1e6,
        gap_s=_longest_gap([at for at in rig.read_marks(folder / parties.BEATS) if due <= at <= marks[-1]]),
        busy=(cpu - before + served) / (marks[-1] - due) / (os.cpu_count() or 1),
    )


def _longest_gap(beats: list[float]) -> float:
    return max((after - before for before, after in pairwise(beats)), default=0.0)


def _party(name: str, verb: str, folder: Path, due: float, env: dict[str, str]) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "bench.parties", name, verb, str(folder), str(JOBS), repr(due)]
    return subprocess.Popen(command, env=env, cwd=rig.ROOT, stderr=subprocess.DEVNULL)


def _wait_for(marks: Path, children: list[subprocess.Popen[bytes]]) -> None:
    until = time.monotonic() + WITHIN_S
    while time.monotonic() < until:
        if marks.exists() and marks.stat().st_size >= JOBS * rig.MARK.size:
            return
        if any(child.poll() is not None for child in children):
            return
        time.sleep(0.002)


def _check_ledger(folder: Path, env: dict[str, str]) -> None:
    """Every task has one run, ended and in the ledger with its three entries."""
    place = ServerAddress(url=env[rig.DATABASE]) if rig.DATABASE in env else Address(path=folder / "duly.db")
    store = Store.open(place, env)
    try:
        with store.read() as session:
            for column in ("id", "task"):
                text = f"SELECT count(DISTINCT {column}) FROM runs WHERE outcome = 'succeeded'"
                assert session.line.scalar(text) == JOBS, column
            for kind in ("opened", "claimed", "ended"):
                assert session.line.scalar(f"SELECT count(*) FROM ledger WHERE kind = '{kind}'") == JOBS, kind
    finally:
        store.close()


def main() -> None:
    on_server = sys.argv[1:2] == ["server"]
    rounds = int(sys.argv[-1]) if sys.argv[-1].isdigit() else ROUNDS
    found = measure_on_server(rounds) if on_server else measure(rounds)
    print(f"{'party':<18}{'jobs/s':>10}{'from first':>12}{'CPU µs/job':>12}{'cores busy':>12}")
    for name, told in found.items():
        if isinstance(told, dict):
            figures = f"{told['jobs_s']:>10}{told['from_first_jobs_s']:>12}{told['cpu_us']:>12}"
            print(f"{name:<18}{figures}{told['busy_percent']:>10} %")
    for name, told in found.items():
        if not isinstance(told, dict):
            print(f"{name:<52}{told:>8}")


if __name__ == "__main__":
    main()
