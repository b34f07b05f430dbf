"""`verify`: silent over what the house did, and naming what a hand or a missing guard did."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from store_disk import snapshot
from store_scene import (
    DAY,
    HOUR,
    MINUTE,
    NINE,
    SUCCEEDED,
    Scene,
    hourly,
    minutely,
    scene,
    without,
)

from duly.holder.settling import Interrupted
from duly.operations import runs as run_operations
from duly.operations import tasks as task_operations
from duly.store import tasks
from duly.store.plans import write_plans


def lived(s: Scene) -> None:
    """A store with a past: runs that ended in several ways, missed ones, a retry, a pause, a run by hand."""
    s.add("one", minutely(), on_interrupt="retry", on_missed="skip", overlap="queue")
    s.at(NINE + 5 * MINUTE)
    s.plan()
    s.settle(s.claim()[0])
    s.at(NINE + 6 * MINUTE)
    s.plan()
    (won,) = s.claim()
    s.settle(won, Interrupted(why="holder_died", ended_at=s.clock.now()))
    (again,) = s.claim(holder="hld_b")
    s.settle(again, SUCCEEDED, holder="hld_b")
    task_operations.pause(s.store, "task", "one", until=None, note=None, by="ann")
    s.at(NINE + 9 * MINUTE)
    task_operations.unpause(s.store, "task", "one", by="ann")
    run_operations.run_now(s.store, "one", by="ann")
    s.settle(s.claim()[0])
    s.at(NINE + 10 * MINUTE)
    s.plan()


def test_a_store_that_the_house_has_kept_is_clean(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        assert s.faults() == []
        lived(s)
        assert s.faults() == []
        kinds = set(s.kinds())
        assert kinds >= {"opened", "missed", "claimed", "swept", "ended", "stretch", "paused", "unpaused"}


def first(s: Scene, where: str) -> int:
    return int(s.sql(f"SELECT seq FROM ledger WHERE {where} ORDER BY seq")[0][0])


def copied(s: Scene, where: str, **changes: object) -> None:
    """Write an entry like another one once more, changed."""
    columns = ["at_us", "kind", "task", "occurrence", "run", "attempt", "reason", "holder", '"by"', "count"]
    columns += ["until_us", "details"]
    taken = ", ".join("?" if column.strip('"') in changes else column for column in columns)
    values = [changes[column.strip('"')] for column in columns if column.strip('"') in changes]
    into = ", ".join(columns)
    s.sql(f"INSERT INTO ledger ({into}) SELECT {taken} FROM ledger WHERE seq = ?", *values, first(s, where))


def set_fence(s: Scene, where: str, fence: int) -> None:
    [(seq, details)] = s.sql(f"SELECT seq, details FROM ledger WHERE {where}")
    s.sql("UPDATE ledger SET details = ? WHERE seq = ?", json.dumps(json.loads(details) | {"fence": fence}), seq)


def set_entry(s: Scene, where: str, change: str) -> None:
    s.sql(f"UPDATE ledger SET {change} WHERE seq = ?", first(s, where))


def drop(s: Scene, where: str) -> None:
    s.sql("DELETE FROM ledger WHERE seq = ?", first(s, where))


def claimed_twice(s: Scene) -> None:
    for number in (1, 2):
        details = f'{{"fence": {98 + number}, "seat": 1}}'
        copied(s, "kind = 'claimed'", run=f"run_{number}", details=details)


def by_sql(text: str) -> Callable[[Scene], None]:
    def plant(s: Scene) -> None:
        s.sql(text)

    return plant


PLANTED: dict[str, tuple[str, Callable[[Scene], None]]] = {
    "an occurrence that opened two runs": ("P1", lambda s: copied(s, "kind = 'opened'", run="run_double")),
    "a seat claimed while another run had it": ("P2", claimed_twice),
    "a fence given twice": (
        "P2",
        lambda s: set_fence(s, "seq = (SELECT max(seq) FROM ledger WHERE kind = 'claimed')", 1),
    ),
    "an end by a holder that had lost the run": (
        "P4",
        lambda s: set_entry(s, "kind = 'ended' AND attempt = 2", "holder = 'hld_a'"),
    ),
    "an end with an old fence": (
        "P4",
        lambda s: set_fence(s, "kind = 'ended' AND attempt = 2", 2),
    ),
    "a run ended twice": ("P4", lambda s: copied(s, "kind = 'ended'")),
    "an outcome that the ledger does not tell": (
        "P4",
        by_sql("UPDATE runs SET outcome = 'failed' WHERE outcome = 'succeeded'"),
    ),
    "a fence on the row that the ledger does not tell": ("P4", by_sql("UPDATE runs SET fence = 50")),
    "a run brought back to waiting by hand": (
        "P4",
        by_sql("UPDATE runs SET state = 'waiting', outcome = NULL WHERE outcome = 'succeeded'"),
    ),
    "a run of which the ledger knows nothing": (
        "P4",
        by_sql("DELETE FROM ledger WHERE run = (SELECT min(id) FROM runs)"),
    ),
    "entries of a run that is not there": ("P6", by_sql("DELETE FROM runs WHERE attempt = 2")),
    "an occurrence without a fate": ("P6", lambda s: drop(s, "kind = 'missed'")),
    "an opened one without its entry": ("P6", lambda s: drop(s, "kind = 'opened' AND reason = 'schedule'")),
    "a stretch that counts too many": ("P6", lambda s: set_entry(s, "kind = 'missed'", "count = count + 1")),
    "a stretch that counts too few": ("P6", lambda s: set_entry(s, "kind = 'stretch'", "count = count - 1")),
    "a stretch that reaches over another fate": (
        "P6",
        lambda s: set_entry(s, "kind = 'missed'", "until_us = until_us + 60000000"),
    ),
    "two stretches of the same": ("P6", lambda s: copied(s, "kind = 'stretch'")),
    "a fate of an instant that is no occurrence": (
        "P6",
        lambda s: copied(s, "kind = 'missed'", occurrence="at:2026-03-02T09:03:30Z", count=1, until_us=None),
    ),
    "a fate beyond the cursor": (
        "P6",
        lambda s: copied(s, "kind = 'missed'", occurrence="at:2026-03-02T12:00:00Z", count=1, until_us=None),
    ),
    "a cursor moved on by hand": (
        "P6",
        by_sql("UPDATE tasks SET planned_until_us = planned_until_us + 600000000"),
    ),
    "a cursor moved back by hand": (
        "P6",
        by_sql("UPDATE tasks SET planned_until_us = planned_until_us - 600000000"),
    ),
    "a task without any version of its definition": ("P6", by_sql("DELETE FROM definitions")),
    "a task of which the ledger knows nothing": ("P6", by_sql("DELETE FROM ledger")),
}


@pytest.mark.parametrize("planted", PLANTED)
def test_a_violation_planted_by_hand_is_named_with_its_promise(tmp_path: Path, planted: str) -> None:
    with scene(tmp_path) as s:
        lived(s)
        assert s.faults() == []
        promise, plant = PLANTED[planted]
        plant(s)
        found = s.faults()
        assert promise in {one for one, _ in found}, found
        assert all(text for _, text in found)


def test_two_live_attempts_of_one_seat_in_the_rows_are_named(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.add("one", minutely(), grace=HOUR, overlap="queue")
        s.at(NINE + 2 * MINUTE)
        s.plan()
        s.claim()
        s.sql("DROP INDEX runs_seat")
        s.sql("UPDATE runs SET state = 'held', seat = 1, holder = 'hld_b', fence = 1, attempt = 1")
        assert {promise for promise, _ in s.faults()} & {"P2", "P4"}


def test_what_the_missing_guards_let_through_is_named(tmp_path: Path) -> None:
    """The double that the cursor and the index keep out, let in: verify sees it as P1."""
    with scene(tmp_path) as s:
        s.add("one", hourly())
        s.at(NINE + HOUR)
        with s.store.read() as session:
            stale = session.tasks.due(session.now, 10)
        s.plan()
        s.sql("DROP INDEX runs_occurrence")
        with without(tasks.PLANNED, "tasks.planned_until_us = v.was_planned_until_us"), s.connect().write() as session:
            assert len(write_plans(session, stale, holder="hld_b")) == 1
        assert "P1" in {promise for promise, _ in s.faults()}


def test_verify_reads_one_moment_and_changes_nothing(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        lived(s)
        before = snapshot(s)
        s.faults()
        assert snapshot(s) == before


def test_findings_have_an_end_however_broken_the_store(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.add("one", minutely(), grace=DAY)
        s.at(NINE + 1500 * MINUTE)
        for _ in range(16):
            s.plan()
        s.sql("UPDATE runs SET fence = 9")
        assert len(s.faults()) == 1000
