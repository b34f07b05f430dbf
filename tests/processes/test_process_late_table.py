"""Rows of the late table through real processes: what was due before anybody served, and what serving makes of it.

The tasks are added, and what shall have waited is opened, by the house itself at a store whose clock stands at that
moment; `duly serve` then serves it by the real clock until nothing is left to do, and `duly` is asked what came of it.
"""

import tempfile
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from process_scene import Place

from duly import clock
from duly.clock import Clock
from duly.core.task import Definition, Rules
from duly.core.triggers import Every, Once, Trigger
from duly.operations import runs as run_operations
from duly.operations import tasks as task_operations
from duly.store import Store
from duly.store.plans import write_plans
from late_rows import Row, counted, rows

REAL = [row for row in rows() if row.real]
SECOND = timedelta(seconds=1)
WITHIN_S = 120
ACTIONS: Mapping[str, Mapping[str, object]] = {
    "retry": {"kind": "command", "argv": ["false"], "cwd": "/"},
    # Its parent is its keeper: without that it is interrupted, and nobody can say how it ended.
    "interrupted": {"kind": "command", "shell": "kill -9 $PPID; sleep 60", "cwd": "/"},
}
WORKS = {"kind": "command", "argv": ["true"], "cwd": "/"}


class Then(Clock):
    """The civil clock as it stood at a moment."""

    def __init__(self, moment: datetime) -> None:
        self.moment = moment

    def now(self) -> datetime:
        return self.moment


class Lived:
    """A store whose rows were served, and what the command line tells of it."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.now = clock.now()
        for number, row in enumerate(REAL):
            self._prepare(f"row {number}", row)
        served = place.serve("--until-idle", "--slots", "60")
        served.wait(timeout=WITHIN_S)
        assert served.returncode == 0, place.errors()
        self.runs: list[Any] = place.json("runs", "-n", "500")["items"]
        self.missed: list[Any] = place.json("missed", "-n", "500")["items"]
        self.tasks = {task["name"]: task["id"] for task in place.json("list", "-n", "500")["items"]}
        self.verified = place.duly("verify", check=False)

    def _prepare(self, name: str, row: Row) -> None:
        newest = self.newest(row)
        older = row.older * (row.distance or timedelta(0))
        trigger: Trigger = Once(at=newest) if row.distance is None else Every(span=row.distance, anchor=newest - older)
        rules = dict(row.rules)
        if row.road == "retry":
            rules |= {"retries": 1, "retry_after": SECOND}
        if row.road == "interrupted":
            rules |= {"on_interrupt": "retry"}
        definition = Definition(
            name=name,
            triggers=(trigger,),
            action=ACTIONS.get(row.road, WORKS),
            rules=Rules(**rules),
            own_rules=frozenset(rules),
        )
        with self._at(newest - older - SECOND) as store:
            added = task_operations.add(store, definition, by="ann", source={"kind": "cli"})
        if row.road in {"waited", "interrupted"}:
            with self._at(newest) as store, store.write() as session:
                assert len(write_plans(session, [added], holder=None)) == 1
        if row.road == "asked for":
            with self._at(newest - SECOND / 2) as store:
                run_operations.run_now(store, name, by="ann")

    def newest(self, row: Row) -> datetime:
        return self.now.astimezone(UTC) - row.lateness

    def _at(self, moment: datetime) -> "Opened":
        return Opened(self.place, moment)


class Opened:
    """The store, opened while the clock stands at a moment."""

    def __init__(self, place: Place, moment: datetime) -> None:
        address, environ = place.address, {"HOME": str(place.home)}
        self._store = Store.open(address, environ, create=True, clock=Then(moment))

    def __enter__(self) -> Store:
        return self._store

    def __exit__(self, *_: object) -> None:
        self._store.close()


@pytest.fixture(scope="module")
def lived() -> Iterator[Lived]:
    with tempfile.TemporaryDirectory() as folder:
        place = Place(Path(folder))
        try:
            yield Lived(place)
        finally:
            place.close()


@pytest.mark.parametrize("number", range(len(REAL)), ids=[row.title for row in REAL])
def test_what_serving_makes_of_late_work_is_what_its_row_says(lived: Lived, number: int) -> None:
    row = REAL[number]
    task = lived.tasks[f"row {number}"]
    runs = [run for run in lived.runs if run["task"] == task]
    missed = [one for one in lived.missed if one["task"] == task]
    if row.road != "opening":
        chosen = [run for run in runs if (run["opened_by"] == "manual") == (row.road == "asked for")]
        assert [fate_of_run(run) for run in chosen] == [(row.fate, row.reason)]
        offers = [one for one in missed if one["run"] is not None]
        wanted = [("open", chosen[0]["id"])] if row.reason == "missed_offer" else []
        assert [(one["state"], one["run"]) for one in offers] == wanted
        return
    newest = lived.newest(row)
    older = [newest - place * row.distance for place in range(row.older, 0, -1)] if row.distance else []
    found = [fate_of(due, runs, missed) for due in older]
    assert counted([reason or fate for fate, reason in found]) == row.older_fates
    assert fate_of(newest, runs, missed) == (row.fate, row.reason)
    # What is caught up together waits for its turn, the punctual one too: each runs.
    assert {run["outcome"] for run in runs} <= {"succeeded"}
    assert all(one["state"] == ("open" if one["reason"] == "missed_offer" else "closed") for one in missed)


def fate_of(due: datetime, runs: list[Any], missed: list[Any]) -> tuple[str, str]:
    """The fate of one occurrence as runs and missed ones tell it, in the words of the table."""
    found = [(run["opened_by"], "") for run in runs if instant(run["due_at"]) == due]
    found += [
        ("offered" if one["state"] == "open" else "missed", one["reason"])
        for one in missed
        if instant(one["due_at"]) <= due <= instant(one["until_at"])
    ]
    assert len(found) == 1, "one occurrence, one fate"
    return found[0]


def fate_of_run(run: Any) -> tuple[str, str]:
    """What became of a run that waited, failed or was interrupted."""
    if run["attempt"] > 1:
        return "tried again", ""
    if run["attempt"] == 1 and run["outcome"] == "succeeded":
        return "starts", ""
    return f"ended {run['outcome']}", run["reason"]


def instant(text: str) -> datetime:
    return datetime.fromisoformat(text)


def test_after_all_that_verify_finds_every_promise_kept(lived: Lived) -> None:
    assert (lived.verified.returncode, len(REAL) >= 20) == (0, True), lived.verified.stdout
