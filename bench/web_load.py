"""The interface under load: forty-five missed runs caught up four at a time, and a hundred readers that never read.

`python -m bench.web_load`. Meanwhile the interface is asked, and so is how much memory its process takes.
"""

import socket
import tempfile
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import httpx2

from bench import rig
from duly.clock import Clock
from duly.core.run import Entry
from duly.core.task import Definition, Rules
from duly.core.triggers import Every
from duly.operations import limits, tasks, tokens
from duly.operations.audit import verify
from duly.store import Store

MISSED, AT_ONCE, READERS, ASKED, TOLD = 45, 4, 100, 300, 3_000
P99_BAR_S = 1.0
READERS_BAR = 2.0
MEMORY_BAR_MB = 20.0
WITHIN_S = 120.0
HOUR = timedelta(hours=1)
PATHS = ("/api/v1/status", "/api/v1/tasks", "/api/v1/runs")


def measure() -> dict[str, float]:
    """Give the slowest answers in seconds, the memory that readers took in megabytes, and what went wrong."""
    with tempfile.TemporaryDirectory(prefix="duly-bench-") as name:
        folder = Path(name)
        store = rig.new_store(folder / "duly.db")
        try:
            secret = tokens.create(store, "bench", rights=["read", "write"], projects=[], by="bench").secret
            last = _fill(folder / "duly.db")
            child, _ = rig.serve(folder, "--port", str(port := _free_port()), "--slots", "16", "--drain", "1s")
            try:
                url, headers = f"http://127.0.0.1:{port}", {"Authorization": f"Bearer {secret}"}
                with httpx2.Client(base_url=url, headers=headers, timeout=WITHIN_S) as client:
                    found = _caught_up(store, client, last)
                    found |= _deaf(store, client, port, secret, child.pid)
                found["findings"] = len(verify(store))
            finally:
                rig.end(child)
        finally:
            store.close()
    return found


class Past(Clock):
    """Some hours ago."""

    def now(self) -> datetime:
        return super().now() - 2.5 * HOUR


def _fill(path: Path) -> str:
    """Tasks that have missed hours, and share a limit; gives the last of them."""
    store = Store.open(rig.place(path), {"HOME": str(path.parent)}, clock=Past())
    limits.set_limit(store, "gpu", AT_ONCE, rate=None, rate_for=None, by="bench")
    for number in range(MISSED):
        definition = Definition(
            name=f"missed-{number:02}",
            triggers=(Every(span=HOUR, anchor=store.clock.now()),),
            action={"kind": "command", "argv": ["sleep", "0.5"], "cwd": "/"},
            rules=Rules(limits={"gpu": 1}),
        )
        tasks.add(store, definition, by="bench", source={"kind": "bench"})
    store.close()
    return f"missed-{MISSED - 1:02}"


def _caught_up(store: Store, client: httpx2.Client, last: str) -> dict[str, float]:
    """Ask while all of them catch up; one that waits is switched off meanwhile."""
    until, took, most = time.monotonic() + WITHIN_S, list[float](), 0
    _wait(lambda: _state(store, "waiting") > 0 and _state(store, "held") > 0, until)
    assert client.post(f"/api/v1/tasks/{last}/disable").status_code == 200
    while _state(store, "waiting") or _state(store, "held"):
        most = max(most, _state(store, "held"))
        took += [_timed(client, path) for path in PATHS]
        if time.monotonic() > until:
            raise RuntimeError("they were not caught up")
    with store.read() as session:
        runs = session.runs.listed(most=1_000)
    gone = [one for one in runs if one.reason == "disabled"]
    return {
        "asked": len(took),
        "p99_s": _part(took, 0.99),
        "most_at_once": most,
        "succeeded": sum(one.outcome == "succeeded" for one in runs),
        "taken_out": len(gone),
    }


def _deaf(store: Store, client: httpx2.Client, port: int, secret: str, pid: int) -> dict[str, float]:
    """Compare answers and memory with and without readers of the stream that never read, while it goes on."""

    def asked() -> float:
        took = []
        for number in range(ASKED):
            if number % 10 == 0:
                _tell(store, TOLD // (ASKED // 10))
            took.append(_timed(client, PATHS[0]))
        return _part(took, 0.95)

    asked()
    alone_s, alone = asked(), rig.rss_bytes(pid)
    readers = [_reader(port, secret) for _ in range(READERS)]
    try:
        beside_s, beside = asked(), rig.rss_bytes(pid)
    finally:
        for one in readers:
            one.close()
    return {
        "alone_p95_s": alone_s,
        "beside_p95_s": beside_s,
        "readers_ratio": beside_s / alone_s,
        "readers_mb": max(0.0, (beside - alone) / 1e6),
    }


def _tell(store: Store, count: int) -> None:
    with store.write() as session:
        details = {"text": "x" * 400}
        session.ledger.add(Entry(kind="paused", at=session.now, by="bench", details=details) for _ in range(count))


def _reader(port: int, secret: str) -> socket.socket:
    made = socket.create_connection(("127.0.0.1", port), timeout=WITHIN_S)
    asked = f"GET /api/v1/stream?after=0 HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {secret}\r\n\r\n"
    made.sendall(asked.encode())
    if made.recv(12) != b"HTTP/1.1 200":
        raise RuntimeError("a reader was refused")
    return made


def _timed(client: httpx2.Client, path: str) -> float:
    began = time.perf_counter()
    client.get(path).raise_for_status()
    return time.perf_counter() - began


def _state(store: Store, state: str) -> int:
    with store.read() as session:
        return session.runs.counts().get(state, 0)


def _wait(holds: Callable[[], bool], until: float) -> None:
    while not holds():
        if time.monotonic() > until:
            raise RuntimeError("they were not opened")
        time.sleep(0.01)


def _part(values: list[float], part: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * part))]


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as made:
        return int(made.getsockname()[1])


def main() -> None:
    for name, figure in measure().items():
        print(f"{name}: {figure:.4g}")


if __name__ == "__main__":
    main()
