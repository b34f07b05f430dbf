"""Clearing up after the dead: a holder that died between the commit of an end and its clearing left the traces.

What lies there may also tell how an attempt ended that was given up meanwhile: then the ledger is told, and no more.
"""

import contextlib
import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from duly.core import lifecycle
from duly.core.run import Run
from duly.core.spans import write_instant
from duly.core.task import Broken
from duly.core.values import changed
from duly.errors import StoreAway
from duly.holder import presence
from duly.holder.assignments import assignment_of
from duly.ports import Outcome
from duly.runners import folders, keeping, success, turn_file, worktrees
from duly.store import Store

TRACES = frozenset(
    {
        "begun",
        "lock",
        "exit",
        "end",
        "adopt",
        "swept",
        "input",
        "line",
        "call",
        "event.json",
        turn_file.NAME,
        folders.GATE,
    }
)
FOLDERS_MOST = 10_000
"""Attempts' folders that one step looks at."""
WORKTREES_MOST = 500
"""Worktrees that one step looks at."""
TIDY_EVERY_US = 3_600_000_000


class Tidier:
    """Looks through the run folder at a life's start, after each death and every hour; what has a log keeps it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._deaths = 0
        self._next_us: int | None = None

    def is_due(self, deaths: int) -> bool:
        """Say whether to look again, where so many holders were found dead in this life so far."""
        now_us = self._store.clock.awake_us()
        # At the start: the last to serve may have died alone. And hourly: what began here another host may have ended.
        due = deaths != self._deaths or self._next_us is None or now_us >= self._next_us
        if due:
            self._deaths, self._next_us = deaths, now_us + TIDY_EVERY_US
        return due

    def step(self) -> int:
        """Clear the folders of attempts that are over; gives how many. A store that is away is left alone."""
        with contextlib.suppress(StoreAway, OSError):
            self._drop_locks()
        with contextlib.suppress(StoreAway, OSError):
            self._leave_worktrees()
        cleared = 0
        with contextlib.suppress(StoreAway, OSError):
            found = dict(self._untidy())
            if not found:
                return 0
            with self._store.another_once() as store:
                with store.read() as session:
                    runs = {run.id: run for run in session.runs.by_ids(sorted({id_ for id_, _ in found.values()}))}
                over = {run.id: run.fence + (run.state == "ended") for run in runs.values()}
                for path, (id_, fence) in found.items():
                    if fence < over.get(id_, 0):
                        _tell_late(store, runs[id_], fence, path)
                        folders.remove_traces(path)
                        cleared += 1
        return cleared

    def _leave_worktrees(self) -> None:
        """Remove worktrees of runs that are over, where nothing in them is changed and nobody was there to do it."""
        here = list(islice(worktrees.runs_of(self._store.run_folder), WORKTREES_MOST))
        if not here:
            return
        with self._store.another_once() as store, store.read() as session:
            live = {run.id for run in session.runs.by_ids(here) if run.state != "ended"}
        for run in here:
            if run not in live:
                worktrees.tidy(self._store.run_folder, run)

    def _drop_locks(self) -> None:
        """Take away the lock files of who died before it had entered the store, or after it had left."""
        left = presence.left_behind(self._store.run_folder)
        if not left:
            return
        with self._store.another_once() as store, store.read() as session:
            for holder in left:
                row = session.holders.by_id(holder)
                if row is None or row.state == "gone":
                    presence.drop_lock(self._store.run_folder, holder)

    def _untidy(self) -> Iterator[tuple[Path, tuple[str, int]]]:
        attempts = self._store.run_folder / "attempts"
        with os.scandir(attempts) as entries:
            for _, entry in zip(range(FOLDERS_MOST), entries, strict=False):
                run, _, fence = entry.name.rpartition(".")
                if fence.isdecimal() and TRACES.intersection(os.listdir(entry.path)):  # noqa: PTH208 - names suffice
                    yield Path(entry.path), (run, int(fence))


def _tell_late(store: Store, run: Run, fence: int, folder: Path) -> None:
    """Tell of an outcome that lies in the folder of an attempt which was given up, where nobody has told of it."""
    seen = keeping.look(folder)
    if not isinstance(seen, keeping.Ended):
        return
    found = _outcome(store, run, fence, folder, seen.exit)
    if found is None:
        return
    details: dict[str, object] = {"exit_code": found.exit_code, "error": found.error}
    if found.ended_at is not None:
        details["ended_at"] = write_instant(found.ended_at)
    with store.write() as session:
        entries = [one.entry for one in session.ledger.of_run(run.id)]
        told = lifecycle.outcome_late(run, entries, fence=fence, outcome=found.word, now=session.now, details=details)
        if told is not None:
            session.ledger.add([told])


def _outcome(store: Store, run: Run, fence: int, folder: Path, ended: keeping.Exit) -> Outcome | None:
    """Judge what was found as it would have been judged in time; None where an agent's turn had no end of its own."""
    with store.read() as session:
        definition = session.versions.read(run.task, run.definition_version)
    if definition is None or isinstance(definition, Broken):
        return keeping.outcome_from_exit(ended)
    if definition.action.get("kind") != "agent":
        late = assignment_of(changed(run, fence=fence), definition, run_folder=store.run_folder)
        return success.outcome_of(ended, late)
    left = turn_file.read(folder)
    return None if left is None or left.word is None else turn_file.outcome(left, keeping.outcome_from_exit(ended))
