"""A store with a long past, written at once: as many runs as wanted, of several kinds of tasks, as the house would.

`PYTHONPATH=tests python tests/store/long_ledger.py 1000000` makes one and says how long `verify` takes and what memory.
"""

import heapq
import json
import resource
import sys
import tempfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

from by_hand import by_hand
from duly import clock, ids, zones
from duly.clock import Clock, to_us
from duly.core.occurrences import at_key
from duly.core.run import Run
from duly.core.schedule import next_due
from duly.core.task import Task
from duly.definitions import read_definition
from duly.operations import tasks as task_operations
from duly.operations.audit import verify
from duly.store import Session, Store, ledger, making, missed, runs
from duly.store.address import Address
from duly.store.rows import LEDGER_COLUMNS, MISSED_COLUMNS, run_cells

BEGIN = datetime(2024, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
PAGE = 5_000
HOLDER = "hld_maker"
TASKS: dict[str, dict[str, Any]] = {
    "minutely": {"triggers": ["* * * * *"], "zone": "UTC"},
    "minutely-berlin": {"triggers": ["*/2 * * * *"], "zone": "Europe/Berlin"},
    "by-interval": {"triggers": ["every 90s"], "zone": "UTC"},
    "limited": {"triggers": ["*/3 * * * *"], "zone": "America/New_York", "rules": {"limits": {"gate": 1}}},
    "hourly": {"triggers": ["0 * * * *"], "zone": "Europe/Berlin"},
    "daily": {"triggers": ["daily 02:30"], "zone": "Europe/Berlin"},
    "twice": {"triggers": ["*/5 * * * *", "every 7m"], "zone": "UTC"},
}
MISSES_EVERY, LASTS = 997, 4
"""Every so many runs a task misses so many occurrences in a row."""


class Frozen(Clock):
    def __init__(self, moment: datetime) -> None:
        self.moment = moment

    def now(self) -> datetime:
        return self.moment


def make(address: Address, environ: dict[str, str], wanted: int) -> Store:
    """Make a store with so many runs, all ended, and as many fates as there were occurrences."""
    making.make(address, environ)
    frozen = Frozen(BEGIN)
    store = Store.open(address, environ, clock=frozen)
    for name, given in TASKS.items():
        whole = {"name": name, "action": {"kind": "command", "argv": ["true"]}, **given}
        read = read_definition(whole, now=BEGIN, default_zone="UTC")
        task_operations.add(store, read.definition, by="ann", source={"kind": "cli"})
    with store.read() as session:
        pasts = [_Past(task) for task in session.tasks.page(most=100)]
    by_task = {past.task.id: past for past in pasts}
    told = heapq.merge(*(past.told() for past in pasts), key=lambda one: one[0])
    left = wanted
    while left > 0:
        page = list(islice(told, min(PAGE, left)))
        left -= len(page)
        with store.write() as session:
            _write(session, [one[1] for one in page])
        for _, one in page:
            by_task[one.task].wrote(one)
        frozen.moment = page[-1][0] + timedelta(minutes=1)
    with store.write() as session:
        for past in pasts:
            past_of = "UPDATE tasks SET planned_until_us = ?, fence = ?, runs = ?, last_run = ? WHERE id = ?"
            by_hand(session.line, past_of, to_us(past.until), past.fence, past.fence, past.last, past.task.id)
    return store


class _Told:
    """What one occurrence comes to: its run's row if it has one, its missed record if it has one, its entries."""

    def __init__(self, task: str, last: datetime) -> None:
        self.task, self.last = task, last
        self.run: list[Any] | None = None
        self.missed: tuple[Any, ...] | None = None
        self.entries: list[tuple[Any, ...]] = []


class _Past:
    """The past of one task, occurrence by occurrence."""

    def __init__(self, task: Task) -> None:
        self.task, self.until, self.fence, self.last = task, task.planned_until, 0, ""
        self.zone = zones.zone(task.definition.zone)
        self._limits = dict(task.definition.rules.limits)

    def wrote(self, one: _Told) -> None:
        """What was made ahead of what was wanted is not written, and not counted."""
        self.until = one.last
        if one.run is not None:
            self.last = str(one.run[0])

    def told(self) -> Iterator[tuple[datetime, _Told]]:
        number = 0
        due = self._next(self.until)
        while True:
            number += 1
            if number % MISSES_EVERY == 0:
                dues = [due, *islice(self._after(due), LASTS - 1)]
                due = dues[-1]
                yield due, self._missed(dues)
            else:
                yield due, self._ran(due, tried_twice=number % 101 == 0, skipped=number % 89 == 0)
            due = self._next(due)

    def _after(self, due: datetime) -> Iterator[datetime]:
        while True:
            due = self._next(due)
            yield due

    def _next(self, after: datetime) -> datetime:
        found = next_due(self.task.definition, self.zone, after)
        assert found is not None
        return found

    def _ran(self, due: datetime, *, tried_twice: bool, skipped: bool) -> _Told:
        one = _Told(self.task.id, due)
        id_ = f"{ids.lowest('run', due)}{self.task.id[-16:]}"
        cells = {"task": self.task.id, "occurrence": at_key(due), "run": id_}
        one.entries.append(
            _entry("opened", due, **cells, reason="schedule", holder=HOLDER, details={"late_by_s": 0.01})
        )
        ended = due + 2 * SECOND
        attempts = 0
        if skipped:
            one.entries.append(_entry("skipped", ended, **cells, reason="already_running", details={}))
        else:
            for attempts in range(1, 3 if tried_twice else 2):
                self.fence += 1
                on = {**cells, "attempt": attempts, "holder": HOLDER}
                limits = {key: {"most": 1, "used": 1, "weight": 1} for key in self._limits}
                details = {"fence": self.fence, "seat": 1, **({"limits": limits} if limits else {})}
                one.entries.append(_entry("claimed", due, **on, details=details))
                if attempts == 1 and tried_twice:
                    swept = {"fence": self.fence, "next": "retry"}
                    one.entries.append(_entry("swept", ended, **on, reason="holder_died", details=swept))
            told = {"exit_code": 0, "fence": self.fence, "outcome": "succeeded"}
            one.entries.append(_entry("ended", ended, **on, details=told))
        run = Run(
            id=id_,
            task=self.task.id,
            occurrence=at_key(due),
            due_at=due,
            opened_at=due,
            opened_by="schedule",
            state="ended",
            outcome="skipped" if skipped else "succeeded",
            reason="already_running" if skipped else None,
            attempt=attempts,
            fence=0 if skipped else self.fence,
            holder=None if skipped else HOLDER,
            not_before=due,
            definition_version=1,
            ended_at=ended,
        )
        one.run = run_cells(run)
        return one

    def _missed(self, dues: Sequence[datetime]) -> _Told:
        one = _Told(self.task.id, dues[-1])
        id_ = f"{ids.lowest('mis', dues[-1])}{self.task.id[-16:]}"
        one.missed = tuple(
            {
                "id": id_,
                "task": self.task.id,
                "occurrence": at_key(dues[0]),
                "due_us": to_us(dues[0]),
                "until_us": to_us(dues[-1]),
                "count": len(dues),
                "reason": "missed_skip",
                "noticed_us": to_us(dues[-1]),
                "state": "closed",
            }.get(name)
            for name in MISSED_COLUMNS
        )
        told: dict[str, Any] = {"reason": "missed_skip", "count": len(dues), "until_us": to_us(dues[-1])}
        cells = {"task": self.task.id, "occurrence": at_key(dues[0]), **told}
        one.entries.append(_entry("missed", dues[-1], **cells, details={"missed": id_}))
        return one


def _entry(kind: str, at: datetime, *, details: dict[str, object], **cells: Any) -> tuple[Any, ...]:
    text = json.dumps(details, sort_keys=True, separators=(",", ":"))
    row = {"kind": kind, "at_us": to_us(at), "details": text, **cells}
    return tuple(row.get(name) for name in LEDGER_COLUMNS[1:])


def _write(session: Session, page: Sequence[_Told]) -> None:
    session.line.many(runs.INSERT, [one.run for one in page if one.run is not None])
    session.line.many(missed.INSERT, [one.missed for one in page if one.missed is not None])
    session.line.many(ledger.INSERT, [entry for one in page for entry in one.entries])


def main(wanted: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        path = Path(name)
        began = clock.monotonic_s()
        make(Address(path=path / "long.db"), {"HOME": name}, wanted).close()
        print(f"made {wanted:,} occurrences in {clock.monotonic_s() - began:.0f} s", flush=True)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        store = Store.find(Address(path=path / "long.db"), {"HOME": name})
        assert store is not None
        began = clock.monotonic_s()
        found = verify(store)
        took = clock.monotonic_s() - began
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        print(f"verify: {len(found)} findings, {took:.1f} s, {grown / 1024:.0f} MB more at most")
        for one in found[:5]:
            print(one)
        store.close()


if __name__ == "__main__":
    main(int(sys.argv[1]))
