"""What the tests of the file share: entries to write, another process with the lock, the bytes as they are."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from store_scene import NINE, Scene

from by_hand import dump_of
from databases import given
from duly.core.run import Entry
from duly.store import Store
from duly.store.address import Place, ServerAddress
from duly.store.postgres import LOCK

HOLD_THE_LOCK = """
import sys, time
if sys.argv[1].startswith("postgresql:"):
    import psycopg
    raw = psycopg.connect(sys.argv[1], autocommit=True)
    raw.execute("BEGIN")
    raw.execute("SELECT pg_advisory_xact_lock(%s)", [int(sys.argv[3])])
else:
    import sqlite3
    raw = sqlite3.connect(sys.argv[1], isolation_level=None)
    raw.execute("BEGIN IMMEDIATE")
raw.execute("INSERT INTO meta VALUES ('held', 'by another')")
print("held", flush=True)
seconds = sys.argv[2]
time.sleep(float(seconds)) if seconds else sys.stdin.readline()
raw.execute("ROLLBACK")
"""


@contextmanager
def locked(place: Place, seconds: float | None = None) -> Iterator[subprocess.Popen[str]]:
    """Another process holds the write lock, for so long or until it is told."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD_THE_LOCK, given(place), "" if seconds is None else str(seconds), str(LOCK)],
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


def snapshot(s: Scene) -> object:
    """All that a store is made of: the bytes and the time of change of a file and its log, or a database's rows."""
    if isinstance(s.address, ServerAddress):
        return dump_of(s.address)
    return {
        name: (path.read_bytes(), path.stat().st_mtime_ns)
        for name in ("duly.db", "duly.db-wal")
        if (path := s.folder / name).exists() and path.stat().st_size
    }
