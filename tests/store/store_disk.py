"""What the tests of the file share: entries to write, another process with the lock, the bytes as they are."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from store_scene import NINE, Scene

from duly.core.run import Entry
from duly.store import Store

HOLD_THE_LOCK = """
import sqlite3, sys, time
raw = sqlite3.connect(sys.argv[1], isolation_level=None)
raw.execute("BEGIN IMMEDIATE")
raw.execute("INSERT INTO meta VALUES ('held', 'by another')")
print("held", flush=True)
seconds = sys.argv[2]
time.sleep(float(seconds)) if seconds else sys.stdin.readline()
raw.execute("ROLLBACK")
"""


@contextmanager
def locked(path: Path, seconds: float | None = None) -> Iterator[subprocess.Popen[str]]:
    """Another process holds the write lock, for so long or until it is told."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD_THE_LOCK, str(path), "" if seconds is None else str(seconds)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "held\n"
            yield process
        finally:
            process.kill()


def entry(kind: str = "defined") -> Entry:
    return Entry(kind=kind, at=NINE)


def write_one(store: Store, **told: float) -> None:
    with store.write(**told) as session:  # type: ignore[arg-type]
        session.ledger.add([entry()])


def snapshot(s: Scene) -> dict[str, tuple[bytes, int]]:
    """The bytes and the time of change of the database and its log."""
    return {
        name: (path.read_bytes(), path.stat().st_mtime_ns)
        for name in ("duly.db", "duly.db-wal")
        if (path := s.folder / name).exists()
    }
