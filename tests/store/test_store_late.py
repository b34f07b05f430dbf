"""What planning finds late, as it is written: offers, counted stretches, skipped ranges, spread, a number of times."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from store_claims import B
from store_scene import DAY, HOUR, MINUTE, NINE, SECOND, TICK, Scene, hourly, minutely, scene, without

from by_hand import by_hand
from duly.core.run import Missed
from duly.core.skips import Range
from duly.core.spreading import share_of
from duly.core.triggers import Every
from duly.store import tasks
from duly.store.plans import write_plans


def missed(s: Scene) -> list[Missed]:
    with s.store.read() as session:
        return sorted(session.missed.listed(most=1000), key=lambda one: one.due_at)


def skip(s: Scene, task: str, first: timedelta, last: timedelta, note: str | None = None) -> None:
    with s.store.write() as session:
        range_ = Range(first=NINE + first, last=NINE + last, by="ann", note=note)
        session.skips.insert(f"skp_{task}_{first}", task, range_, session.now)


def test_what_is_missed_under_offer_is_one_open_offer_with_a_count_and_an_end(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", hourly(), on_missed="offer", offer_for=3 * DAY)
        s.at(NINE + 5 * HOUR + 10 * MINUTE)
        assert s.plan() == []
        (one,) = missed(s)
        assert (one.reason, one.state, one.count) == ("missed_offer", "open", 5)
        assert (one.due_at, one.until_at) == (NINE + HOUR, NINE + 5 * HOUR)
        assert one.expires_at == NINE + 5 * HOUR + 10 * MINUTE + 3 * DAY
        (told,) = [entry for entry in s.entries(task.id) if entry.kind == "missed"]
        assert told.details["missed"] == one.id
        assert told.details["late_by_s"] == 600.0
        assert told.details["grace_s"] == 60.0
        assert s.faults() == []


def test_an_offer_keeps_what_is_older_than_max_age_and_a_newer_offer_stands_beside_it(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.add("one", hourly(), on_missed="offer", max_age=MINUTE)
        s.at(NINE + 30 * DAY + 10 * MINUTE)
        s.plan()
        s.at(NINE + 31 * DAY + 10 * MINUTE)
        s.plan()
        assert [(one.count, one.state) for one in missed(s)] == [(720, "open"), (24, "open")]
        assert s.faults() == []


def test_an_offer_over_a_hole_that_a_person_skipped_is_one_offer_told_by_an_entry_on_each_side(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", hourly(), on_missed="offer")
        skip(s, task.id, 3 * HOUR, 4 * HOUR, note="holiday")
        s.at(NINE + 6 * HOUR + 10 * MINUTE)
        s.plan()
        (one,) = missed(s)
        assert (one.count, one.due_at, one.until_at) == (4, NINE + HOUR, NINE + 6 * HOUR)
        told = [(e.kind, e.reason, e.count, e.by) for e in s.entries(task.id) if e.kind in {"missed", "stretch"}]
        assert told == [
            ("missed", "missed_offer", 2, None),
            ("stretch", "skipped_by_hand", 2, "ann"),
            ("missed", "missed_offer", 2, None),
        ]
        assert s.faults() == []


def test_what_a_person_skipped_beforehand_never_opens_and_tells_who_and_why(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", hourly())
        skip(s, task.id, HOUR, HOUR, note="moving house")
        s.at(NINE + HOUR)
        assert s.plan() == []
        (told,) = [entry for entry in s.entries(task.id) if entry.kind == "stretch"]
        assert (told.reason, told.by, told.details, told.count) == (
            "skipped_by_hand",
            "ann",
            {"note": "moving house"},
            1,
        )
        assert missed(s) == []
        s.at(NINE + 2 * HOUR)
        assert [run.due_at for run in s.plan()] == [NINE + 2 * HOUR]
        assert s.faults() == []


def test_catching_up_all_leaves_runs_and_a_counted_row_for_each_reason(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.add("one", hourly(), on_missed="run_all", at_most=3, max_age=5 * HOUR)
        s.at(NINE + 12 * HOUR + 10 * MINUTE)
        runs = s.plan()
        assert [(run.due_at - NINE, run.opened_by) for run in runs] == [(n * HOUR, "catch_up") for n in (8, 9, 10)]
        assert [(one.reason, one.count, one.state) for one in missed(s)] == [
            ("stale", 7, "closed"),
            ("too_many", 2, "closed"),
        ]
        assert s.faults() == []


@pytest.mark.parametrize("policy", ["run", "run_all", "skip", "offer"])
def test_a_downtime_with_millions_of_occurrences_costs_a_handful_of_rows(tmp_path: Path, policy: str) -> None:
    with scene(tmp_path) as s:
        most: dict[str, Any] = {"at_most": 5} if policy == "run_all" else {}
        task = s.add("one", Every(span=SECOND, anchor=NINE), on_missed=policy, **most)
        s.at(NINE + 60 * DAY)
        s.plan()
        entries = s.entries(task.id)
        assert len(entries) <= 1 + 5 + 1 + 2
        counted = sum(entry.count or 1 for entry in entries if entry.kind in {"opened", "missed"})
        assert counted == 60 * 86_400
        assert s.faults() == []


def test_a_run_waits_for_its_share_of_the_spread_and_the_cursor_does_not(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", hourly(), spread=timedelta(hours=5))
        share = share_of(task.id, NINE + HOUR, spread=5 * HOUR, following=NINE + 2 * HOUR)
        assert timedelta(0) < share < HOUR, "cut to the distance to the next"
        assert s.task(task.id).next_due_at == NINE + HOUR
        assert s.task(task.id).next_start_at == NINE + HOUR + share
        s.at(NINE + HOUR)
        (run,) = s.plan()
        assert (run.opened_by, run.not_before, run.spread) == ("schedule", NINE + HOUR + share, share)
        assert run.occurrence == "at:2026-03-02T10:00:00Z", "the share is no part of the key"
        s.at(NINE + HOUR + share - TICK)
        assert s.claim() == []
        s.at(NINE + HOUR + share + 2 * SECOND)
        (won,) = s.claim()
        (told,) = [entry for entry in s.entries(task.id) if entry.kind == "claimed"]
        assert told.details["late_by_s"] == 2.0
        s.at(NINE + 2 * HOUR)
        assert [one.opened_by for one in s.plan()] == ["schedule"], "however long the first one waited"
        assert won.run.spread == share
        assert s.faults() == []


def test_a_long_spread_makes_no_run_stale_before_its_own_time(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", Every(span=2 * DAY, anchor=NINE), spread=2 * DAY, max_age=MINUTE)
        due = NINE + 2 * DAY
        share = share_of(task.id, due, spread=2 * DAY, following=due + 2 * DAY)
        assert share > HOUR
        s.at(due)
        s.plan()
        s.at(due + share + MINUTE)
        assert len(s.claim()) == 1, "exactly max_age after its share it still starts"


def test_a_run_that_waited_a_moment_longer_than_max_age_after_its_share_is_stale(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", Every(span=2 * DAY, anchor=NINE), spread=2 * DAY, max_age=MINUTE)
        due = NINE + 2 * DAY
        share = share_of(task.id, due, spread=2 * DAY, following=due + 2 * DAY)
        s.at(due)
        s.plan()
        s.at(due + share + MINUTE + TICK)
        assert s.claim() == []
        assert [(run.outcome, run.reason) for run in s.runs()] == [("skipped", "stale")]


def test_after_so_many_times_the_task_is_done_and_owes_nothing_more(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", hourly(), times=3)
        for hour in (1, 2, 3, 4, 5):
            s.at(NINE + hour * HOUR)
            s.plan()
            for won in s.claim():
                s.settle(won)
        after = s.task(task.id)
        assert (after.scheduled_runs, after.done, after.next_due_at) == (3, True, None)
        assert len(s.runs()) == 3
        assert after.planned_until == NINE + 3 * HOUR
        assert s.faults() == []


def test_two_planners_that_read_the_same_task_count_its_times_once(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", minutely(), times=2)
        other = s.connect()
        s.at(NINE + MINUTE)
        with other.read() as session:
            stale = session.tasks.due(session.now, 10)
        s.plan()
        with other.write() as session:
            assert write_plans(session, stale, holder=B) == []
        assert s.task(task.id).scheduled_runs == 1
        with (
            without(tasks.PLANNED, "tasks.planned_until_us = v.was_planned_until_us"),
            other.write() as session,
        ):
            by_hand(session.line, "DELETE FROM runs")
            write_plans(session, stale, holder=B)
        assert s.task(task.id).scheduled_runs == 2, "the cursor is what keeps the count"


def test_times_counts_what_is_caught_up_and_not_what_was_missed(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", hourly(), times=2, on_missed="run_all", max_age=3 * HOUR)
        s.at(NINE + 10 * HOUR + 10 * MINUTE)
        runs = s.plan()
        assert [run.due_at - NINE for run in runs] == [8 * HOUR, 9 * HOUR]
        after = s.task(task.id)
        assert (after.scheduled_runs, after.done, after.planned_until) == (2, True, NINE + 9 * HOUR)
        assert [(one.reason, one.count) for one in missed(s)] == [("stale", 7)]
        assert s.faults() == []
