"""`verify` over what people decided: silent over what the house did, and naming what a hand did to it."""

from collections.abc import Callable
from pathlib import Path

import pytest
from store_offers import accept, closed, decline, offered
from store_scene import DAY, HOUR, MINUTE, NINE, Scene, hourly, scene

from duly.holder.settling import Interrupted
from duly.operations import filling, skipping
from duly.operations import retry as again


def decided(s: Scene) -> None:
    """A store in which everything was decided that can be."""
    accept(s, offered(s, "accepted", count=3))
    decline(s, offered(s, "declined", count=2), note="no")
    offered(s, "expired", count=2, lasts=2 * HOUR)
    filling.backfill(s.store, "accepted", filling.Ask(first=NINE - DAY, last=NINE + 2 * HOUR), by="bob")
    closed(s, "filled", count=3)
    filling.backfill(s.store, "filled", filling.Ask(first=NINE, last=s.clock.moment), by="bob")
    skipping.skip(s.store, "filled", skipping.Ask(what=skipping.NEXT), by="bob")
    s.add("cut", hourly(s.clock.moment), on_interrupt="retry", on_missed="offer", max_age=DAY)
    s.at(s.clock.moment + HOUR)
    s.plan()
    began, claimed = s.clock.moment, s.claim()
    (won,) = [one for one in claimed if one.definition.name == "cut"]
    for one in claimed:
        if one is not won:
            s.settle(one)
    s.at(began + HOUR - MINUTE)
    s.settle(won, Interrupted(why="holder_died", ended_at=began))
    s.at(s.clock.moment + 3 * HOUR)
    s.plan()
    for _ in range(30):
        for one in s.claim():
            s.settle(one)
    run = next(run for run in s.runs() if run.opened_by == "backfill")
    again.retry(s.store, run.id, by="bob", queue=True)
    s.settle(s.claim()[0])
    with s.store.read() as session:
        cut = next(one for one in session.missed.listed() if one.run == won.run.id)
    accept(s, cut)
    for one in s.claim():
        s.settle(one)


def test_a_store_in_which_people_decided_is_clean_before_and_after(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        decided(s)
        assert s.faults() == []
        kinds = set(s.kinds())
        assert kinds >= {"accepted", "declined", "expired", "skipped", "stretch", "missed", "swept"}
        assert {run.opened_by for run in s.runs()} >= {"offer", "backfill", "manual", "schedule"}


def by_sql(text: str) -> Callable[[Scene], None]:
    def plant(s: Scene) -> None:
        assert s.sql(f"{text} RETURNING 1"), "the plant found nothing to change"

    return plant


PLANTED: dict[str, tuple[str, str, Callable[[Scene], None]]] = {
    "an acceptance of which the ledger knows nothing": (
        "P6",
        "is accepted, and the ledger tells of no answer",
        by_sql("DELETE FROM ledger WHERE seq = (SELECT min(seq) FROM ledger WHERE kind = 'accepted')"),
    ),
    "an answer that the record does not show": (
        "P6",
        "is open, and the ledger tells declined",
        by_sql("UPDATE missed SET state = 'open' WHERE state = 'declined'"),
    ),
    "a second answer": (
        "P6",
        "and the ledger tells declined and accepted",
        by_sql(
            "INSERT INTO ledger (at_us, kind, task, occurrence, details) "
            "SELECT at_us, 'accepted', task, occurrence, details FROM ledger WHERE kind = 'declined'"
        ),
    ),
    "an offer over without an entry": (
        "P6",
        "is expired, and the ledger tells of no answer",
        by_sql("DELETE FROM ledger WHERE kind = 'expired'"),
    ),
    "a backfill of what was no occurrence": (
        "P6",
        "(opened by backfill) is no occurrence of the task",
        by_sql(
            "UPDATE ledger SET occurrence = replace(occurrence, ':00:00Z', ':07:00Z') WHERE seq = "
            "(SELECT min(seq) FROM ledger WHERE kind = 'opened' AND reason = 'backfill')"
        ),
    ),
    "a backfill of what is to come": (
        "P6",
        "lies beyond the cursor",
        by_sql(
            "UPDATE ledger SET occurrence = 'at:2027-03-02T10:00:00Z' WHERE seq = "
            "(SELECT min(seq) FROM ledger WHERE kind = 'opened' AND reason = 'backfill')"
        ),
    ),
    "an occurrence that time and a backfill opened": (
        "P1",
        "opened",
        by_sql(
            "INSERT INTO ledger (at_us, kind, task, occurrence, run, reason, details) "
            "SELECT at_us, kind, task, occurrence, run, 'backfill', details FROM ledger "
            "WHERE kind = 'opened' AND reason = 'schedule' LIMIT 1"
        ),
    ),
    "a run brought back to waiting without an answer": (
        "P4",
        "while ended",
        by_sql("UPDATE ledger SET details = '{}' WHERE kind = 'accepted' AND details LIKE '%goes_on%'"),
    ),
}


@pytest.mark.parametrize("name", PLANTED)
def test_what_a_hand_did_to_a_decision_is_named_with_its_promise(tmp_path: Path, name: str) -> None:
    with scene(tmp_path) as s:
        decided(s)
        promise, text, plant = PLANTED[name]
        plant(s)
        found = s.faults()
        assert any(one == promise and text in said for one, said in found), found
