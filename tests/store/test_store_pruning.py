"""Pruning takes what is old, and nothing that anybody may still ask for; what went never comes back."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from store_pruned import WEEK, prune, ran
from store_scene import DAY, HOUR, MINUTE, NINE, Scene, hourly, scene

from duly import ids
from duly.core.triggers import On
from duly.operations import events, missed, pruning, skipping, tasks
from duly.operations import runs as run_operations


@pytest.fixture
def s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    """A scene whose ids are made by its own clock, as on a machine that has lived through all of it."""
    with scene(tmp_path) as made:
        monkeypatch.setattr("duly.clock.now", lambda: made.clock.moment)
        yield made


def table(s: Scene, name: str) -> set[tuple[object, ...]]:
    return set(s.sql(f"SELECT * FROM {name}"))


def test_old_runs_go_with_all_that_the_ledger_tells_of_them_and_young_ones_stay(s: Scene) -> None:
    task = s.add("one", hourly())
    ran(s, 24)
    s.at(s.clock.moment + WEEK - 12 * HOUR - MINUTE)
    before = s.runs()
    counted = prune(s, take=False)
    assert len(s.runs()) == 24, "counting takes nothing"
    done = prune(s)
    assert done == counted
    assert (done["runs"], done["entries"]) == (11, 33)
    assert s.runs() == before[11:]
    assert {entry.run for entry in s.entries(task.id) if entry.run} == {run.id for run in before[11:]}
    assert s.task(task.id).pruned_until == s.clock.moment - WEEK
    assert s.faults() == []
    assert prune(s)["runs"] == 0, "the second time there is nothing left to take"


def test_nothing_that_was_pruned_is_opened_again_and_the_counters_stay(s: Scene) -> None:
    task = s.add("one", hourly(), on_missed="run", max_age=DAY)
    ran(s, 24)
    s.at(s.clock.moment + 4 * WEEK)
    s.plan()
    for won in s.claim():
        s.settle(won)
    before = s.task(task.id)
    s.at(s.clock.moment + WEEK + DAY)
    s.plan()
    s.settle(s.claim()[0])
    prune(s)
    after = s.task(task.id)
    assert (after.runs, after.scheduled_runs, after.fence) == (before.runs + 1, before.scheduled_runs + 1, 26)
    assert after.planned_until > before.planned_until
    known = {run.due_at for run in s.runs()}
    assert s.plan() == []
    ran(s, 3)
    assert {run.due_at for run in s.runs()} - known == {s.clock.moment - hours * HOUR for hours in (0, 1, 2)}
    assert s.faults() == []


@pytest.mark.parametrize("state", ["waiting", "held"])
def test_what_is_live_stays_whatever_its_age(s: Scene, state: str) -> None:
    s.add("one", hourly(), overlap="queue")
    s.at(NINE + HOUR)
    s.plan()
    if state == "held":
        s.claim()
    s.at(NINE + 10 * WEEK)
    assert prune(s)["runs"] == 0
    assert [run.state for run in s.runs()] == [state]
    assert s.faults() == []


def test_a_tasks_newest_run_stays_whatever_its_age(s: Scene) -> None:
    task = s.add("one", hourly())
    ran(s, 3)
    tasks.pause(s.store, "store", "", until=None, note=None, by="ann")
    s.at(NINE + 10 * WEEK)
    assert prune(s)["runs"] == 2
    (left,) = s.runs()
    assert s.task(task.id).last_run == left.id
    assert s.faults() == []


def test_nothing_younger_than_any_tasks_max_age_goes_and_the_task_is_named(s: Scene) -> None:
    s.add("one", hourly())
    s.add("patient", hourly(), max_age=30 * DAY)
    ran(s, 3)
    s.at(NINE + 20 * DAY)
    with s.store.read() as session:
        wanted = pruning.wish(session, DAY)
    assert wanted.keep == 30 * DAY
    assert wanted.raised_by is not None
    assert wanted.raised_by.definition.name == "patient"
    assert pruning.prune(s.store, wanted, take=True) == dict.fromkeys(pruning.KINDS, 0)
    tasks.remove(s.store, "patient", by="ann")
    assert prune(s, DAY)["runs"] == 4 + 1


def test_a_row_that_is_exactly_as_old_as_what_is_kept_stays(s: Scene) -> None:
    s.add("one", hourly())
    ran(s, 3)
    s.at(NINE + HOUR + WEEK)
    assert prune(s)["runs"] == 0
    s.at(NINE + HOUR + WEEK + timedelta(milliseconds=1))
    assert prune(s)["runs"] == 1


def test_missed_occurrences_go_when_nobody_is_asked_about_them_any_more(s: Scene) -> None:
    s.add("skips", hourly(), on_missed="skip")
    s.add("offers", hourly(), on_missed="offer", offer_for=60 * DAY)
    s.at(NINE + 10 * HOUR)
    s.plan()
    s.at(NINE + 4 * WEEK)
    s.plan()
    done = prune(s)
    with s.store.read() as session:
        left = session.missed.listed(most=100)
    assert done["missed"] >= 1
    assert {one.state for one in left if one.noticed_at < s.clock.moment - WEEK} == {"open"}
    assert s.faults() == []
    (offer,) = [one for one in left if one.state == "open" and one.noticed_at < s.clock.moment - WEEK]
    assert offer.id in {entry.details.get("missed") for entry in s.entries()}, "its story stays with it"
    assert missed.accept(s.store, offer.id, by="ann").run.due_at == NINE + 9 * HOUR
    s.settle(s.claim()[0])
    assert s.faults() == []


def test_an_accepted_occurrence_is_not_accepted_again_because_its_run_was_pruned(s: Scene) -> None:
    """An offer that ran out may be accepted still; the run that it once became must be known as long as it is."""
    task = s.add("one", hourly(), on_missed="offer", offer_for=DAY)
    s.at(NINE + 10 * HOUR)
    s.plan()
    with s.store.read() as session:
        (offer,) = session.missed.listed(most=10)
    became = missed.accept(s.store, offer.id, by="ann").run
    for won in s.claim():
        s.settle(won)
    ran(s, 2)
    s.sql("UPDATE missed SET state = 'expired', decided_us = decided_us + ?", 8 * 24 * 3_600_000_000)
    s.at(NINE + 10 * DAY)
    assert prune(s)["runs"] > 0
    assert became.id in {run.id for run in s.runs(task.id)}
    assert s.faults() == []


def test_what_people_did_to_a_task_stays_as_long_as_the_task(s: Scene) -> None:
    task = s.add("one", hourly())
    tasks.disable(s.store, "one", by="ann")
    tasks.enable(s.store, "one", by="ann")
    tasks.pause(s.store, "task", "one", until=None, note="why", by="ann")
    tasks.unpause(s.store, "task", "one", by="ann")
    kinds = [kind for kind in s.kinds(task.id) if kind != "stretch"]
    ran(s, 5)
    s.at(NINE + 10 * WEEK)
    prune(s)
    assert [kind for kind in s.kinds(task.id) if kind not in {"opened", "claimed", "ended"}] == kinds
    assert s.sql("SELECT count(*) FROM definitions") == [(s.task(task.id).definition_version,)]
    assert s.faults() == []


def test_the_tombstone_of_a_removed_task_stays_for_ninety_days_and_then_goes_with_all_that_is_left(s: Scene) -> None:
    task = s.add("one", hourly(), limits={"db": 1}, needs=())
    ran(s, 3)
    tasks.remove(s.store, "one", by="ann")
    s.add("other", hourly(s.clock.moment))
    s.at(s.clock.moment + 80 * DAY)
    assert prune(s)["tasks"] == 0
    assert s.task(task.id).removed_at is not None
    assert s.runs(task.id) == []
    assert s.faults() == []
    s.at(s.clock.moment + 11 * DAY)
    counted = prune(s, take=False)
    assert counted["tasks"] == 1
    assert prune(s) == counted
    for name in ("tasks", "definitions", "ledger", "task_limits"):
        column = "id" if name == "tasks" else "task"
        assert s.sql(f"SELECT count(*) FROM {name} WHERE {column} = ?", task.id) == [(0,)], name
    assert s.faults() == []


def test_events_and_their_keys_stay_for_ninety_days_and_as_long_as_a_run_of_them(s: Scene) -> None:
    s.add("one", hourly())
    ran(s, 2)
    (first, second) = s.runs()
    for number, (run, at) in enumerate([(None, NINE), (second.id, NINE), (None, NINE + 50 * DAY)]):
        s.at(at)
        id_ = ids.new("evt")
        s.sql(
            "INSERT INTO events (id, source, key, body, at_us, by, through, after_seq)"
            " VALUES (?, 'x', ?, '{}', ?, 'ann', '[]', 0)",
            *(id_, f"k{number}", (at - datetime(1970, 1, 1, tzinfo=NINE.tzinfo)) // timedelta(microseconds=1)),
        )
        if run is not None:
            s.sql("UPDATE runs SET event = ? WHERE id = ?", id_, run)
    s.at(NINE + 80 * DAY)
    assert prune(s)["events"] == 0
    s.at(NINE + 100 * DAY)
    assert prune(s)["events"] == 1
    assert {row[0] for row in s.sql("SELECT key FROM events")} == {"k1", "k2"}, "k1 opened the run that stays"
    assert first.id != second.id


def test_holders_that_are_gone_and_what_no_task_tells_of_go_too(s: Scene) -> None:
    s.add("one", hourly())
    for number, state in enumerate(["gone", "alive"]):
        s.sql(
            "INSERT INTO holders VALUES (?, 'p', 'b', 'h', 1, 1, 0, 0, 0, 1, ?, 4, '[]', '0', '2026a', 0, 0)",
            *(f"hld_{number}", state),
        )
        s.sql("INSERT INTO holder_labels VALUES (?, 'gpu')", f"hld_{number}")
    s.sql("INSERT INTO ledger (at_us, kind, holder) VALUES (0, 'holder_ended', 'hld_0'), (0, 'paused', NULL)")
    done = prune(s)
    assert (done["holders"], done["entries"]) == (1, 1)
    assert {row[0] for row in s.sql("SELECT id FROM holders")} == {"hld_1"}
    assert {row[0] for row in s.sql("SELECT holder FROM holder_labels")} == {"hld_1"}
    assert "paused" in s.kinds()


def test_skips_go_when_planning_is_through_with_them_and_those_to_come_stay(s: Scene) -> None:
    s.add("one", hourly())
    skipping.skip(s.store, "one", skipping.Ask(what="at", at=NINE + HOUR), note=None, by="ann")
    skipping.skip(s.store, "one", skipping.Ask(what="at", at=NINE + 20 * WEEK), note=None, by="ann")
    ran(s, 3)
    s.at(NINE + 10 * WEEK)
    s.plan()
    assert prune(s)["skips"] == 1
    assert len(s.sql("SELECT 1 FROM skips")) == 1
    assert s.faults() == []


def test_a_stretch_that_reaches_over_the_watermark_stays_whole_and_verify_claims_what_lies_after_it(s: Scene) -> None:
    s.add("one", hourly())
    tasks.pause(s.store, "store", "", until=None, note=None, by="ann")
    s.at(NINE + 20 * DAY)
    tasks.unpause(s.store, "store", "", by="ann")
    ran(s, 2)
    assert prune(s, 10 * DAY)["entries"] == 0, "it was told young enough"
    s.sql("UPDATE ledger SET at_us = 0 WHERE kind = 'stretch'")
    prune(s, 10 * DAY)
    assert "stretch" in s.kinds()
    assert s.faults() == []
    s.sql("DELETE FROM ledger WHERE kind = 'opened' AND seq = (SELECT max(seq) FROM ledger WHERE kind = 'opened')")
    assert "P6" in {promise for promise, _ in s.faults()}


def test_verify_claims_nothing_below_the_watermark_and_everything_above_it(s: Scene) -> None:
    task = s.add("one", hourly(), on_missed="skip")
    ran(s, 24)
    s.at(s.clock.moment + WEEK - 12 * HOUR)
    prune(s)
    assert s.faults() == []
    s.sql("UPDATE tasks SET pruned_until_us = NULL")
    assert "P6" in {promise for promise, _ in s.faults()}, "without the watermark the gap is seen"
    s.sql(
        "UPDATE tasks SET pruned_until_us = ?",
        (NINE + 13 * HOUR - datetime(1970, 1, 1, tzinfo=NINE.tzinfo)) // timedelta(microseconds=1),
    )
    assert s.faults() == []
    run = s.runs(task.id)[-3].id
    s.sql("DELETE FROM ledger WHERE run = ?", run)
    s.sql("DELETE FROM runs WHERE id = ?", run)
    assert "P6" in {promise for promise, _ in s.faults()}


def test_the_watermark_never_goes_back(s: Scene) -> None:
    task = s.add("one", hourly())
    ran(s, 24)
    s.at(NINE + 10 * WEEK)
    prune(s)
    first = s.task(task.id).pruned_until
    assert first == NINE + 9 * WEEK
    prune(s, 8 * WEEK)
    assert s.task(task.id).pruned_until == first


@pytest.mark.parametrize("how", ["by hand only", "paused for long"])
def test_runs_by_hand_of_a_task_whose_cursor_stands_still_go_like_any_others(s: Scene, how: str) -> None:
    task = s.add("one") if how == "by hand only" else s.add("one", hourly())
    if how != "by hand only":
        ran(s, 2)
        tasks.pause(s.store, "task", "one", until=None, note=None, by="ann")
    for number in range(3):
        s.at(NINE + (20 + number) * DAY)
        run_operations.run_now(s.store, "one", by="ann", anyway=True)
        s.settle(s.claim()[0])
    s.at(NINE + 10 * WEEK)
    assert prune(s)["runs"] == (2 if how == "by hand only" else 4)
    assert [run.due_at for run in s.runs(task.id)] == [NINE + 22 * DAY]
    assert s.faults() == []
    if how != "by hand only":
        tasks.unpause(s.store, "task", "one", by="ann")
        ran(s, 2)
        assert s.faults() == []


def test_runs_of_events_go_and_their_events_stay_and_verify_claims_nothing_of_them(s: Scene) -> None:
    s.add("one", On(source="mail"))
    for number in range(3):
        s.at(NINE + number * HOUR)
        events.emit(s.store, "mail", key=f"k{number}", by="ann")
        for won in s.claim():
            s.settle(won)
    assert s.faults() == []
    s.at(NINE + 3 * WEEK)
    done = prune(s)
    assert (done["runs"], done["events"]) == (2, 0)
    assert s.faults() == []
    s.at(NINE + 100 * DAY)
    assert prune(s)["events"] == 2, "what opened the newest run stays with it"
    assert s.faults() == []
