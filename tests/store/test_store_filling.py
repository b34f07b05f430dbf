"""`backfill`: what never ran in a span of the past is opened once each, behind everything, in nobody's way."""

import threading
from datetime import datetime, time
from pathlib import Path
from typing import Any

import pytest
from store_offers import accept, again, closed, decline, offered, refused
from store_people import by_hand, switch
from store_scene import DAY, HOUR, MINUTE, NINE, TICK, Scene, hourly, minutely, scene, without

from duly.core.triggers import Daily, Once
from duly.errors import Invalid
from duly.operations import edits, filling, skipping
from duly.operations import limits as limit_operations
from duly.operations.filling import Ask, Filled
from duly.store import queueing, waiting


def fill(
    s: Scene,
    first: datetime,
    last: datetime,
    name: str = "one",
    *,
    overlap: str = "queue",
    anyway: bool = False,
    dry_run: bool = False,
) -> Filled:
    ask = Ask(first=first, last=last, overlap=overlap)
    return filling.backfill(s.store, name, ask, by="bob", anyway=anyway, dry_run=dry_run)


def worked_off(s: Scene, most: int = 100) -> list[datetime]:
    """Claim and settle until nothing is left to claim; gives the due instants in the order of their starts."""
    order: list[datetime] = []
    for _ in range(most):
        won = s.claim(free=1)
        if not won:
            return order
        order.append(won[0].run.due_at)
        s.settle(won[0])
    raise AssertionError(order)


def test_each_occurrence_without_a_run_gets_one_and_those_with_one_are_told_and_left(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.add("one", hourly(), on_missed="skip")
        s.at(NINE + HOUR)
        s.plan()
        s.settle(s.claim()[0])
        s.at(NINE + 5 * HOUR + 30 * MINUTE)
        s.plan()
        done = fill(s, NINE, NINE + 5 * HOUR)
        assert done.dues == tuple(NINE + hours * HOUR for hours in (2, 3, 4, 5))
        assert list(done.ran) == ["at:2026-03-02T10:00:00Z"]
        assert [(run.due_at, run.opened_by, run.opened_by_whom, run.overlap) for run in done.runs] == [
            (due, "backfill", "bob", "queue") for due in done.dues
        ]
        assert [run.id for run in done.runs] == sorted(run.id for run in done.runs)
        assert worked_off(s) == list(done.dues)
        assert {run.outcome for run in s.runs()} == {"succeeded"}
        assert s.faults() == []
        again_ = fill(s, NINE, NINE + 5 * HOUR)
        assert (again_.dues, len(again_.ran)) == ((), 5)
        assert len(s.runs()) == 5


def test_a_dry_run_tells_how_many_and_opens_nothing(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        closed(s, count=5)
        before = (s.entries(), s.runs())
        done = fill(s, NINE, s.clock.moment, dry_run=True)
        shown = filling.shape(done)
        assert (shown["count"], shown["first"], shown["last"], shown["ran"], shown["dry_run"], shown["runs"]) == (
            5,
            "2026-03-02T10:00:00Z",
            "2026-03-02T14:00:00Z",
            0,
            True,
            [],
        )
        assert (s.entries(), s.runs()) == before


def test_both_ends_are_included_and_a_moment_beside_them_is_not(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        closed(s, count=5)
        assert fill(s, NINE + HOUR + TICK, NINE + 3 * HOUR - TICK, dry_run=True).dues == (NINE + 2 * HOUR,)
        assert len(fill(s, NINE + HOUR, NINE + 3 * HOUR, dry_run=True).dues) == 3


def test_nothing_that_the_loops_will_open_is_filled_and_what_lies_ahead_is_counted(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", hourly(), on_missed="skip")
        s.at(NINE + 2 * HOUR + 30 * MINUTE)
        s.plan()
        s.at(NINE + 4 * HOUR)  # nobody has planned these two hours yet
        done = fill(s, NINE, NINE + 6 * HOUR)
        assert (done.dues, done.until, done.ahead) == ((NINE + HOUR, NINE + 2 * HOUR), NINE + 2 * HOUR, 4)
        assert s.task(task.id).planned_until == NINE + 2 * HOUR
        opened = s.plan()
        assert {run.due_at for run in opened} == {NINE + 4 * HOUR}
        assert len({run.occurrence for run in s.runs()}) == len(s.runs())
        assert s.faults() == []


def test_two_backfills_of_one_span_at_once_open_each_occurrence_once(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        closed(s, count=40)
        stores = [s.connect() for _ in range(4)]
        barrier = threading.Barrier(4)
        got: list[Filled] = []

        def person(at: int) -> None:
            barrier.wait()
            ask = Ask(first=NINE + at * HOUR, last=NINE + (20 + at * 5) * HOUR)
            got.append(filling.backfill(stores[at], "one", ask, by=f"person {at}"))

        threads = [threading.Thread(target=person, args=(at,)) for at in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert len(got) == 4
        assert sum(len(done.runs) for done in got) == 35
        assert len(s.runs()) == len({run.occurrence for run in s.runs()}) == 35
        assert s.faults() == []


def test_runs_of_a_backfill_start_behind_all_others_and_by_hand_goes_first(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        closed(s, count=3)
        fill(s, NINE, NINE + 3 * HOUR)
        s.add("two", minutely(s.clock.moment), priority=-5)
        s.at(s.clock.moment + MINUTE)
        s.plan()
        hand = by_hand(s, "one", queue=True)
        order = []
        while won := s.claim(free=1):
            order.append((won[0].definition.name, won[0].run.opened_by))
            s.settle(won[0])
        assert order == [("one", "manual"), ("two", "schedule"), *[("one", "backfill")] * 3]
        assert s.run(hand.id).outcome == "succeeded"


@pytest.mark.parametrize("guarded", [True, False])
def test_what_time_brings_waits_for_the_seat_of_a_backfill_and_is_not_skipped(tmp_path: Path, guarded: bool) -> None:
    """Without the guard it would be skipped `already_running`, lost to a run that fills the past."""
    with scene(tmp_path) as s:
        closed(s, count=3, seats=1)
        fill(s, NINE, NINE + 3 * HOUR)
        (live,) = s.claim(free=1)
        s.at(NINE + 4 * HOUR)
        (run,) = s.plan()
        if not guarded:
            with without(waiting.BLOCKED, "runs.opened_by != 'backfill'"):
                s.claim()
            assert s.run(run.id).reason == "already_running"
            return
        s.claim()
        assert s.run(run.id).state == "waiting"
        s.settle(live)
        (won,) = s.claim()
        assert won.run.id == run.id, "it goes before the rest of the backfill"
        s.at(NINE + 5 * HOUR)
        (second,) = s.plan()
        s.claim()
        assert s.run(second.id).reason == "already_running", "its own kind still asks the rule"
        s.settle(won)
        assert len(worked_off(s)) == 2
        assert s.faults() == []


@pytest.mark.parametrize(
    "rules", [{"overlap": "queue", "queue": 1}, {"overlap": "cancel_running"}, {"overlap": "kill_running"}]
)
def test_no_rule_for_overlap_ends_a_backfill_or_drops_what_time_brings_beside_it(
    tmp_path: Path, rules: dict[str, Any]
) -> None:
    with scene(tmp_path) as s:
        closed(s, count=2, **rules)
        fill(s, NINE, NINE + 2 * HOUR)
        (live,) = s.claim(free=1)
        s.at(NINE + 3 * HOUR)
        (run,) = s.plan()
        s.claim()
        assert s.run(live.run.id).cancel_asked_at is None
        assert s.run(run.id).state == "waiting"
        s.settle(live)
        assert s.claim(free=1)[0].run.id == run.id


def test_a_queue_does_not_count_the_seat_of_a_backfill_as_taken(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        task = closed(s, count=2, overlap="queue", queue=1).task
        fill(s, NINE, NINE + 2 * HOUR)
        s.claim(free=1)
        for hours in (3, 4, 5):
            s.at(NINE + hours * HOUR)
            s.plan()
            now = s.task(task)
            with s.store.write() as session:
                queueing.trim(session, now)
        came = [(run.state, run.reason) for run in s.runs() if run.opened_by == "schedule"]
        # One in the place of the backfill, one in the queue; only what is too much for both makes room.
        assert came == [("ended", "queue_full"), ("waiting", None), ("waiting", None)]


def test_of_two_seats_one_that_a_backfill_has_makes_time_wait_only_while_the_other_is_taken(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        closed(s, count=3, seats=2)
        fill(s, NINE, NINE + 3 * HOUR)
        first = s.claim(free=8)
        assert [won.run.seat for won in first] == [1, 2]
        s.at(NINE + 4 * HOUR)
        (run,) = s.plan()
        s.claim()
        assert s.run(run.id).state == "waiting"
        s.settle(first[0])
        (won,) = s.claim()
        assert won.run.id == run.id
        s.at(NINE + 5 * HOUR)
        (second,) = s.plan()
        s.claim()
        assert s.run(second.id).state == "waiting", "one of the two seats is a backfill's"
        assert s.faults() == []


def test_a_backfill_that_skips_fills_what_finds_a_free_seat_and_tells_of_the_rest(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        closed(s, count=3)
        done = fill(s, NINE, NINE + 3 * HOUR, overlap="skip")
        (won,) = s.claim()
        s.claim()
        assert [s.run(run.id).reason for run in done.runs] == [None, "already_running", "already_running"]
        s.settle(won)
        left = fill(s, NINE, NINE + 3 * HOUR)
        assert (left.dues, len(left.ran), filling.not_started(left)) == ((), 3, 2)
        assert s.faults() == []


def test_limits_hold_for_a_backfill_as_for_all(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        limit_operations.set_limit(s.store, "db", 2, rate=None, rate_for=None, by="ann")
        closed(s, count=6, seats=6, limits={"db": 1})
        fill(s, NINE, NINE + 6 * HOUR)
        won = s.claim(free=8)
        assert len(won) == 2
        for one in won:
            s.settle(one)
        assert len(s.claim(free=8)) == 2
        assert s.faults() == []


def test_an_open_offer_whose_newest_is_filled_is_answered_by_that_and_an_older_part_leaves_it_open(
    tmp_path: Path,
) -> None:
    with scene(tmp_path) as s:
        one = offered(s, count=5)
        fill(s, NINE, NINE + 3 * HOUR)
        assert again(s, one) == one, "its newest never ran, and is still a person's to decide"
        done = fill(s, NINE + 4 * HOUR, NINE + 5 * HOUR)
        stands = again(s, one)
        assert (stands.state, stands.decided_by, stands.run) == ("accepted", "bob", done.runs[-1].id)
        assert refused(lambda: accept(s, one)).reason == "already_answered"
        assert s.faults() == []


def test_a_closed_and_a_declined_record_name_the_run_that_their_newest_has_now(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        left = closed(s, "one", count=2)
        gone = offered(s, "two", count=2)
        decline(s, gone, note="no")
        runs = [fill(s, NINE, one.until_at, name).runs[-1].id for name, one in (("one", left), ("two", gone))]
        assert (again(s, left).state, again(s, left).run) == ("closed", runs[0])
        stands = again(s, gone)
        assert (stands.state, stands.run, stands.decided_by, stands.note) == ("declined", runs[1], "bob", "no")
        assert refused(lambda: accept(s, left)).details["run"] == runs[0]
        assert s.faults() == []


def test_what_was_skipped_by_hand_and_never_opened_is_filled_where_a_person_asks_for_it(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.add("one", hourly())
        skipping.skip(s.store, "one", skipping.Ask(what=skipping.NEXT), by="ann")
        s.at(NINE + HOUR)
        s.plan()
        assert fill(s, NINE, NINE + HOUR).dues == (NINE + HOUR,)
        assert len(worked_off(s)) == 1
        assert s.faults() == []


def test_each_time_has_its_own_schedule_and_the_definition_in_force_performs_it(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", Daily(times=(time(10),)), on_missed="skip")
        s.at(NINE + 2 * DAY)  # the days' 10:00 but today's
        edits.edit(s.store, "one", {"triggers": ["daily 06:00"]}, by="ann")
        edits.edit(s.store, "one", {"description": "newer"}, by="ann")
        s.at(NINE + 4 * DAY)
        s.plan()
        done = fill(s, NINE - DAY, NINE + 4 * DAY)
        assert [f"{due:%d %H}" for due in done.dues] == ["01 10", "02 10", "03 10", "05 06", "06 06"]
        (won,) = s.claim(free=1)
        assert (won.run.definition_version, won.definition.description) == (3, "newer")
        s.settle(won)
        assert len(worked_off(s)) == 4
        assert s.task(task.id).scheduled_runs == 0
        assert s.faults() == []


def test_before_its_first_day_the_first_schedule_stands_and_an_edit_does_not_change_that(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.add("one", Daily(times=(time(10),)))
        edits.edit(s.store, "one", {"triggers": ["daily 06:00"]}, by="ann")
        done = fill(s, NINE - 3 * DAY, NINE)
        assert [f"{due:%d %H}" for due in done.dues] == ["27 10", "28 10", "01 10"]
        assert s.faults() == []
        s.add("every", hourly())
        assert fill(s, NINE - 3 * DAY, NINE, "every").dues == (), "an interval has no past before its anchor"


def test_a_disabled_task_is_filled_and_a_paused_one_only_anyway(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        closed(s, count=2)
        switch(s, "disable")
        fill(s, NINE, NINE + HOUR)
        assert len(worked_off(s)) == 1
        switch(s, "pause")
        no = refused(lambda: fill(s, NINE, NINE + 2 * HOUR))
        assert (no.reason, no.hint) == ("paused", "--anyway runs it all the same")
        fill(s, NINE, NINE + 2 * HOUR, anyway=True)
        assert len(worked_off(s)) == 1
        switch(s, "remove")
        assert refused(lambda: fill(s, NINE, NINE + HOUR)).reason == "unknown_task"


def test_the_stretch_of_a_pause_is_filled_once_it_is_over_and_never_opened_twice(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.add("one", hourly())
        switch(s, "pause")
        s.at(NINE + 3 * HOUR + MINUTE)
        assert fill(s, NINE, s.clock.moment, anyway=True).dues == (), "while it lasts they have no fate yet"
        switch(s, "unpause")
        assert len(fill(s, NINE, s.clock.moment).dues) == 3
        assert len(worked_off(s)) == 3
        assert s.faults() == []


def test_removing_the_task_ends_what_waits_of_its_backfill(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        closed(s, count=3)
        fill(s, NINE, NINE + 3 * HOUR)
        switch(s, "remove")
        assert {run.reason for run in s.runs()} == {"task_removed"}
        assert s.faults() == []


def test_a_once_that_was_missed_is_filled_and_stays_done(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", Once(at=NINE + HOUR), on_missed="skip")
        s.at(NINE + 2 * HOUR)
        s.plan()
        assert fill(s, NINE, NINE + 2 * HOUR).dues == (NINE + HOUR,)
        assert len(worked_off(s)) == 1
        assert s.task(task.id).done
        assert s.faults() == []


def test_no_more_than_ten_thousand_are_opened_at_once_and_the_rest_is_pointed_at(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.add("one", minutely(), on_missed="skip")
        s.at(NINE + 10_001 * MINUTE + 40 * TICK * 1_000_000)
        s.plan()
        with pytest.raises(Invalid) as caught:
            fill(s, NINE, s.clock.moment, dry_run=True)
        assert caught.value.details == {"count": 10_001, "most": 10_000, "last": "2026-03-09T07:40:00Z"}
        done = fill(s, NINE, NINE + 10_000 * MINUTE)
        assert len(done.runs) == 10_000
        assert len(fill(s, NINE, s.clock.moment).dues) == 1
        s.at(NINE + 400 * DAY)
        s.plan()
        with pytest.raises(Invalid, match="looks at 50,000"):
            fill(s, NINE, s.clock.moment)


@pytest.mark.parametrize(
    ("first", "last", "overlap", "field"),
    [
        (NINE + HOUR, NINE, "queue", "--to"),
        (NINE + DAY, NINE + 2 * DAY, "queue", "--from"),
        (NINE, NINE + HOUR, "cancel_running", "--overlap"),
        (NINE, NINE + HOUR, "never", "--overlap"),
    ],
)
def test_a_span_that_runs_backwards_or_lies_ahead_and_a_rule_that_ends_runs_are_refused(
    tmp_path: Path, first: datetime, last: datetime, overlap: str, field: str
) -> None:
    with scene(tmp_path) as s:
        closed(s, count=2)
        with pytest.raises(Invalid) as caught:
            fill(s, first, last, overlap=overlap)
        assert caught.value.field == field
        assert s.runs() == []


def test_a_task_that_time_never_opens_has_nothing_to_fill(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.add("one")
        with pytest.raises(Invalid, match="no times of its own"):
            fill(s, NINE - DAY, NINE)
