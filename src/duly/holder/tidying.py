"""Clearing up after the dead: a holder that died between the commit of an end and its clearing left the traces."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from duly.errors import StoreAway
from duly.runners import folders
from duly.store import Store

TRACES = frozenset(
    {"begun", "lock", "exit", "end", "adopt", "swept", "input", "line", "call", "event.json", folders.GATE}
)
FOLDERS_MOST = 10_000
"""Attempts' folders that one step looks at."""


class Tidier:
    """Looks through the run folder once for each death; what has a log keeps it."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def step(self) -> int:
        """Clear the folders of attempts that are over; gives how many. A store that is away is left alone."""
        cleared = 0
        with contextlib.suppress(StoreAway, OSError):
            found = dict(self._untidy())
            if not found:
                return 0
            with self._store.another_once() as store, store.read() as session:
                runs = session.runs.by_ids(sorted({run for run, _ in found.values()}))
            over = {run.id: run.fence + (run.state == "ended") for run in runs}
            for path, (run, fence) in found.items():
                if fence < over.get(run, 0):
                    folders.remove_traces(path)
                    cleared += 1
        return cleared

    def _untidy(self) -> Iterator[tuple[Path, tuple[str, int]]]:
        attempts = self._store.address.run_folder / "attempts"
        with os.scandir(attempts) as entries:
            for _, entry in zip(range(FOLDERS_MOST), entries, strict=False):
                run, _, fence = entry.name.rpartition(".")
                if fence.isdecimal() and TRACES.intersection(os.listdir(entry.path)):  # noqa: PTH208 - names suffice
                    yield Path(entry.path), (run, int(fence))
