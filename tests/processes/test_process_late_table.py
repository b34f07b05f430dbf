"""Rows of the late table through real processes: the store was left so late, and a server is started on it."""

import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from process_scene import Place

from duly import clock
from duly.clock import Clock
from duly.core.task import Definition, Rules
from duly.core.triggers import Every, Once
from duly.operations import missed as missed_operations
from duly.operations.audit import verify
from duly.operations.runs import run_now
from duly.operations.tasks import add
from duly.store import Store
from duly.store.address import Address
from duly.store.plans import write_plans

sys.path.insert(0, str(Path(__file__).parent.parent))
from late_table import Row, rows

ROWS = [row for row in rows() if row.processes]
HOUR = timedelta(hours=1)


class Past(Clock):
    """The machine's clocks, but for a civil time of the past at which the store was used before."""

    def __init__(self) -> None:
        self.moment = clock.now()

    def now(self) -> datetime:
        return self.moment


def leave(store: Store, past: Past, row: Row, due: datetime) -> str:
    """Leave the store as it was when this occurrence was due; gives the task's name."""
    name = str(row)
    rules: dict[str, Any] = {"on_missed": row.policy, "max_age": row.max_age}
    if row.grace is not None:
        rules["grace"] = row.grace
    trigger = Once(at=due) if row.period is None else Every(span=row.period, anchor=due)
    action = {"kind": "command", "argv": ("true",), "cwd": "/"}
    past.moment = due - HOUR
    triggers = () if row.road == "manual" else (trigger,)
    made = Definition(name=name, triggers=triggers, action=action, rules=Rules(**rules), own_rules=frozenset(rules))
    task = add(store, made, by="test", source={"kind": "cli"})
    past.moment = due
    if row.road == "manual":
        run_now(store, name, by="test")
    if row.road == "waited":
        with store.write() as session:
            assert len(write_plans(session, [task], holder=None)) == 1
    if row.road == "offer":
        past.moment = due + HOUR
        with store.write() as session:
            assert write_plans(session, [task], holder=None) == []
        with store.read() as session:
            (offer,) = session.missed.listed(task=task.id)
        missed_operations.accept(store, offer.id, by="test")
    return name


def fate(place: Place, row: Row, name: str) -> tuple[str, str | None]:
    """What became of it, in the words of the table, as the command line tells."""
    runs = place.json("runs", "--task", name)["items"]
    if not runs:
        [one] = place.json("missed", "--task", name)["items"]
        return ("offered" if one["state"] == "open" else "missed"), one["reason"]
    [run] = runs
    assert run["state"] == "ended"
    if run["outcome"] == "succeeded":
        return ("opened", run["opened_by"]) if row.road == "opening" else ("starts", None)
    return run["outcome"], run["reason"]


def test_rows_of_the_late_table_come_true_for_a_server_that_finds_them_so_late(place: Place) -> None:
    assert len(ROWS) >= 20
    past = Past()
    store = Store.open(Address(path=place.store), place.env, create=True, clock=past)
    try:
        began = clock.now().replace(microsecond=0)
        names = {row: leave(store, past, row, began - row.lateness) for row in ROWS}
    finally:
        store.close()
    assert place.serve("--until-idle").wait(120) == 0, place.errors()
    took = clock.now() - began
    assert took < timedelta(minutes=9), "the machine was slower than the rows have room for"
    found = {str(row): fate(place, row, name) for row, name in names.items()}
    assert found == {str(row): (row.fate, row.reason) for row in ROWS}
    store = Store.open(Address(path=place.store), place.env)
    try:
        assert verify(store) == []
    finally:
        store.close()
