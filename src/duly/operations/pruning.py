"""`prune`: what is older than anybody needs is taken away, a batch at a time, and the watermark says how far."""

import contextlib
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from duly.core.names import key_of
from duly.core.occurrences import instant_of, is_of_time
from duly.core.task import Task
from duly.operations import shapes
from duly.operations.lookup import told
from duly.runners import keeping
from duly.store import Session, Store
from duly.store.pruning import (
    DELETE_ENTRIES,
    DELETE_EVENTS,
    DELETE_MISSED,
    DELETE_SKIPS,
    Ages,
    OldTask,
    Pruning,
)
from duly.store.rows import Written

KEEP = timedelta(days=90)
OTHERS_KEEP = timedelta(days=90)
"""For so long at least events with their keys, and the tombstones of removed tasks, are kept."""
BATCH = 500
"""Rows that one transaction takes away, so that nobody waits long for the lock."""
PAGE = 1_000
KINDS = ("runs", "entries", "missed", "tasks", "events", "holders", "skips", "notices", "logs", "log_bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What shall be kept, and what that comes to: nothing younger than any task's `max_age` ever goes."""

    keep: timedelta
    ages: Ages
    raised_by: Task | None
    """The task whose `max_age` is longer than what was asked for."""


def wish(session: Session, keep: timedelta) -> Wish:
    """Say what a span to keep comes to in this store, now."""
    longest = max(_tasks(session), key=lambda task: task.definition.rules.max_age, default=None)
    raised = longest if longest is not None and longest.definition.rules.max_age > keep else None
    kept = keep if raised is None else raised.definition.rules.max_age
    now = session.now
    return Wish(keep=kept, ages=Ages(cutoff=now - kept, oldest=now - max(kept, OTHERS_KEEP)), raised_by=raised)


def prune(store: Store, wanted: Wish, *, take: bool) -> dict[str, int]:
    """Take away what is old enough, or only count it; gives how many of each kind.

    What was interrupted goes on where it is asked for again: rows first, and what is left of their logs after them.
    """
    sweep = _Sweep(store, wanted.ages, take=take)
    for task in sweep.tasks():
        sweep.task(task)
    sweep.others()
    sweep.logs()
    return {kind: sweep.count[kind] for kind in KINDS}


def shape(wanted: Wish, count: dict[str, int], *, dry_run: bool) -> dict[str, object]:
    """Show what a prune took away, or would."""
    from duly.core.spans import write_span

    raised = wanted.raised_by
    return {
        "dry_run": dry_run,
        "keep": write_span(wanted.keep),
        "until": shapes.instant(wanted.ages.cutoff),
        "raised_by": None if raised is None else told(raised),
        **count,
    }


class _Sweep:
    """One look through the whole store, page by page; each page that is taken away is one transaction."""

    def __init__(self, store: Store, ages: Ages, *, take: bool) -> None:
        self._store = store
        self._ages = ages
        self._take = take
        self._runs: set[str] = set()
        self.count: Counter[str] = Counter()

    def tasks(self) -> list[OldTask]:
        """Every task, removed ones too."""
        with self._store.read() as session:
            old = self._old(session)
            return list(_all(old.tasks, "", lambda task: task.id))

    def task(self, task: OldTask) -> None:
        """Look through one task; the watermark is left in the transaction that first takes something away."""
        going: set[str] = set()

        def missed(old: Pruning, found: Sequence[str]) -> None:
            going.update(found)
            self.count["missed"] += len(found)
            if self._take:
                old.mark(task)
                old.delete(DELETE_MISSED, found)

        def runs(old: Pruning, found: Sequence[str]) -> None:
            self._runs.update(found)
            self.count["runs"] += len(found)
            self.count["entries"] += old.told(found)
            if self._take:
                old.mark(task)
                old.delete_runs(found)

        def entries(old: Pruning, found: Sequence[Written]) -> None:
            free = _free(old, task, found, going)
            self.count["entries"] += len(free)
            if self._take and free:
                old.mark(task)
                old.delete(DELETE_ENTRIES, [one.seq for one in free])

        self._each(lambda old, after: old.missed(task, after), "", missed)
        self._each(lambda old, after: old.runs(task, after), "", runs)
        self._each(lambda old, after: old.entries(task, after), 0, entries, key=lambda one: one.seq)

    def others(self) -> None:
        """Look through what belongs to no task, and the tasks that were removed long ago."""

        def counted(kind: str, delete: Callable[[Pruning, Sequence[Any]], None]) -> Callable[..., None]:
            def taken(old: Pruning, found: Sequence[Any]) -> None:
                self.count[kind] += len(found)
                if self._take:
                    delete(old, found)

            return taken

        def taking(what: Any) -> Callable[[Pruning, Sequence[Any]], None]:
            return lambda old, found: old.delete(what, found)

        self._each(Pruning.taskless, 0, counted("entries", taking(DELETE_ENTRIES)))
        self._each(Pruning.skips, "", counted("skips", taking(DELETE_SKIPS)))
        self._each(Pruning.events, "", counted("events", taking(DELETE_EVENTS)))
        self._each(Pruning.holders, "", counted("holders", Pruning.delete_holders))
        self._each(Pruning.tombs, "", counted("tasks", Pruning.delete_tombs))
        with self._session() as session:
            self.count["notices"] += session.notices.forget(self._ages.cutoff, take=self._take)
        if self._take:
            with self._store.write() as session:
                self._old(session).close_windows()

    def logs(self) -> None:
        """Remove the folders of attempts whose run is gone, also those that an interrupted prune left."""
        folders = list(_old_folders(self._store.run_folder / "attempts", self._runs, self._ages))
        for start in range(0, len(folders), PAGE):
            page = folders[start : start + PAGE]
            with self._store.read() as session:
                there = self._old(session).runs_there(sorted({run for _, run in page}))
            if not self._take:
                there -= self._runs
            for folder, run in page:
                if run in there or keeping.lock_held(folder):
                    continue
                self.count["logs"] += 1
                self.count["log_bytes"] += _bytes_of(folder)
                if self._take:
                    shutil.rmtree(folder, ignore_errors=True)

    def _each(
        self,
        select: Callable[[Pruning, Any], Sequence[Any]],
        after: Any,
        seen: Callable[[Pruning, Sequence[Any]], None],
        *,
        key: Callable[[Any], Any] = lambda one: one,
    ) -> None:
        while True:
            with self._session() as session:
                old = self._old(session)
                found = select(old, after)
                if found:
                    seen(old, found)
                    after = key(found[-1])
            if len(found) < BATCH:
                return

    def _session(self) -> AbstractContextManager[Session]:
        return self._store.write() if self._take else self._store.read()

    def _old(self, session: Session) -> Pruning:
        return Pruning(session.line, self._ages, BATCH)


def _free(old: Pruning, task: OldTask, found: Sequence[Written], going: set[str]) -> list[Written]:
    """Those of a task's entries that may go: below the watermark, and of no missed occurrence that stays."""
    named = {str(one.entry.details["missed"]) for one in found if "missed" in one.entry.details}
    stays = old.missed_there(sorted(named)) - going
    free = []
    for one in found:
        key = one.entry.occurrence or ""
        if is_of_time(key) and instant_of(key) > task.until:
            continue
        if str(one.entry.details.get("missed")) not in stays:
            free.append(one)
    return free


def _old_folders(attempts: Path, gone: set[str], ages: Ages) -> Iterator[tuple[Path, str]]:
    """Give attempts' folders that may be of runs that are gone: those known to be, and those untouched for long."""
    try:
        entries = list(os.scandir(attempts))
    except OSError:
        return
    for entry in entries:
        run, dot, fence = entry.name.rpartition(".")
        if not dot or not fence.isdecimal() or not entry.is_dir(follow_symlinks=False):
            continue
        with contextlib.suppress(OSError):
            if run in gone or entry.stat(follow_symlinks=False).st_mtime < ages.cutoff.timestamp():
                yield Path(entry.path), run


def _bytes_of(folder: Path) -> int:
    """Count what all files in a folder hold, also those of a gate that was asked in a folder of its own."""
    total = 0
    for above, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(above, name)).st_size  # noqa: PTH118 - a name each, no more
    return total


def _tasks(session: Session) -> Iterator[Task]:
    after = ("", "")
    while page := session.tasks.page(after=after, most=PAGE):
        yield from page
        last = page[-1].definition
        after = (key_of(last.project), key_of(last.name))


def _all(page: Callable[[Any], Sequence[Any]], after: Any, key: Callable[[Any], Any]) -> Iterator[Any]:
    while found := page(after):
        yield from found
        after = key(found[-1])
