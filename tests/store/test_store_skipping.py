"""Skipping by hand: what is to come is left out at its time, what waits ends, what has begun is refused."""

import threading
from datetime import datetime, time
from pathlib import Path

import pytest
from store_offers import refused
from store_people import switch, unpause
from store_scene import DAY, HOUR, MINUTE, NINE, TICK, Scene, hourly, minutely, scene

from duly.core.run import Run
from duly.core.triggers import Daily, Once
from duly.errors import Invalid
from duly.operations import edits as definitions
from duly.operations import previewing, skipping
from duly.operations import runs as asks
from duly.operations import tasks as edits
from duly.operations.skipping import AT, BEFORE, NEXT, Ask, Skipped


def skip_next(s: Scene, name: str = "one", note: str | None = None) -> Skipped:
    return skipping.skip(s.store, name, Ask(what=NEXT), by="bob", note=note)


def skip_at(s: Scene, at: datetime, name: str = "one") -> Skipped:
    return skipping.skip(s.store, name, Ask(what=AT, at=at), by="bob")


def skip_before(s: Scene, at: datetime, name: str = "one") -> Skipped:
    return skipping.skip(s.store, name, Ask(what=BEFORE, at=at), by="bob", note="closed")


def lived(s: Scene, until: datetime) -> list[Run]:
    """Let each hour pass with a holder at work."""
    while s.clock.moment < until:
        s.at(s.clock.moment + HOUR)
        s.plan()
        for won in s.claim():
            s.settle(won)
    return s.runs()


def by_hand(s: Scene) -> list[tuple[str | None, int | None]]:
    return [(one.occurrence, one.count) for one in s.entries() if one.kind == "stretch"]


def test_the_next_one_is_left_out_at_its_time_and_those_after_it_run(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.add("one", hourly())
        done = skip_next(s, note="away")
        assert (done.count, done.first, done.last) == (1, NINE + HOUR, NINE + HOUR)
        (told,) = [one for one in s.entries() if one.kind == "skipped"]
        assert (told.occurrence, told.reason, told.by, told.run) == (
            "at:2026-03-02T10:00:00Z",
            "skipped_by_hand",
            "bob",
            None,
        )
        assert told.details["note"] == "away"
        assert s.faults() == []
        runs = lived(s, NINE + 3 * HOUR)
        assert [run.due_at for run in runs] == [NINE + 2 * HOUR, NINE + 3 * HOUR]
        assert by_hand(s) == [("at:2026-03-02T10:00:00Z", 1)]
        assert s.faults() == []


def test_the_next_is_the_next_that_would_run_so_asking_twice_skips_two(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.add("one", hourly())
        assert [skip_next(s).first, skip_next(s).first] == [NINE + HOUR, NINE + 2 * HOUR]
        assert [run.due_at for run in lived(s, NINE + 3 * HOUR)] == [NINE + 3 * HOUR]
        assert s.faults() == []


def test_an_overdue_one_that_nobody_has_planned_is_the_next_and_is_not_caught_up(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.add("one", hourly())
        s.at(NINE + HOUR + MINUTE)
        assert skip_next(s).first == NINE + HOUR
        assert s.plan() == []
        assert s.faults() == []


def test_one_whose_time_to_start_is_still_to_come_is_the_next_though_it_is_opened(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", Daily(times=(time(10),)), spread=HOUR)
        s.at(NINE + HOUR)
        (run,) = s.plan()
        assert run.not_before > s.clock.moment, "its share of the spread is not nothing"
        done = skip_next(s)
        assert [one.id for one in done.runs] == [run.id]
        assert (s.run(run.id).outcome, s.run(run.id).reason) == ("skipped", "skipped_by_hand")
        assert s.task(task.id).planned_until == NINE + HOUR
        assert s.faults() == []


def test_one_by_its_instant_is_left_out_and_asking_again_changes_nothing(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.add("one", hourly())
        assert not skip_at(s, NINE + 2 * HOUR).already
        before = s.entries()
        assert skip_at(s, NINE + 2 * HOUR).already
        assert s.entries() == before
        assert [run.due_at for run in lived(s, NINE + 3 * HOUR)] == [NINE + HOUR, NINE + 3 * HOUR]
        assert s.faults() == []


def test_an_instant_that_is_no_occurrence_is_refused_with_the_nearest_ones(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.add("one", hourly())
        with pytest.raises(Invalid) as caught:
            skip_at(s, NINE + HOUR + TICK)
        assert caught.value.details["nearest"] == ["2026-03-02T10:00:00Z", "2026-03-02T11:00:00Z"]
        with pytest.raises(Invalid) as caught:
            skip_at(s, NINE + MINUTE)
        assert caught.value.details["nearest"] == ["2026-03-02T10:00:00Z"], "what is behind is not offered"
        s.add("two", Once(at=NINE + HOUR))
        with pytest.raises(Invalid, match="the nearest is 2026-03-02T10:00:00Z"):
            skip_at(s, NINE + DAY, "two")


@pytest.mark.parametrize("state", ["waiting", "held", "ended"])
def test_one_that_has_a_run_ends_it_while_it_waits_and_is_refused_with_it_afterwards(
    tmp_path: Path, state: str
) -> None:
    with scene(tmp_path) as s:
        s.add("one", hourly())
        s.at(NINE + HOUR)
        (run,) = s.plan()
        won = s.claim() if state != "waiting" else []
        if state == "ended":
            s.settle(won[0])
        if state == "waiting":
            assert [one.id for one in skip_at(s, NINE + HOUR).runs] == [run.id]
            (told,) = [one for one in s.entries() if one.kind == "skipped"]
            assert (told.run, told.reason, told.by) == (run.id, "skipped_by_hand", "bob")
            assert s.claim() == []
            no = refused(lambda: skip_at(s, NINE + HOUR))
            assert (no.reason, no.details["reason"]) == ("already_ended", "skipped_by_hand")
        else:
            before = (s.entries(), s.run(run.id))
            no = refused(lambda: skip_at(s, NINE + HOUR))
            assert no.reason == ("already_running" if state == "held" else "already_ended")
            assert no.details["run"] == run.id
            assert (s.entries(), s.run(run.id)) == before
        assert s.faults() == []


def test_what_was_missed_is_behind_and_an_offer_of_it_is_declined_instead(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.add("one", hourly(), on_missed="offer")
        s.at(NINE + 3 * HOUR + 30 * MINUTE)
        s.plan()
        no = refused(lambda: skip_at(s, NINE + 2 * HOUR))
        assert no.reason == "already_ended"
        assert no.hint == f"duly decline {no.details['missed']}"
        with pytest.raises(Invalid, match="is not due at"):
            skip_at(s, NINE + 2 * HOUR + MINUTE)
        with pytest.raises(Invalid, match="is not due at"):
            skip_at(s, NINE - DAY)


def test_all_before_an_instant_are_left_out_with_the_runs_that_wait_and_that_instant_itself_runs(
    tmp_path: Path,
) -> None:
    with scene(tmp_path) as s:
        s.add("one", hourly(), overlap="queue")
        s.at(NINE + HOUR)
        s.plan()
        (live,) = s.claim()
        s.at(NINE + 2 * HOUR)
        (waiting,) = s.plan()
        done = skip_before(s, NINE + 6 * HOUR)
        assert [run.id for run in done.runs] == [waiting.id]
        assert (done.count, done.first, done.last) == (3, NINE + 3 * HOUR, NINE + 5 * HOUR)
        assert s.run(live.run.id).state == "held", "what has begun goes on"
        s.settle(live)
        assert [run.due_at for run in lived(s, NINE + 7 * HOUR)][2:] == [NINE + 6 * HOUR, NINE + 7 * HOUR]
        assert s.faults() == []


def test_the_instant_itself_is_not_before_it_and_one_a_moment_earlier_is(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.add("one", hourly())
        done = skip_before(s, NINE + 2 * HOUR)
        assert (done.count, done.last) == (1, NINE + HOUR)
        done = skip_before(s, NINE + 2 * HOUR + TICK)
        assert (done.count, done.last) == (1, NINE + 2 * HOUR)


def test_a_skip_of_a_million_costs_one_row_and_counts_only_what_nobody_skipped_before(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.add("one", minutely())
        skip_at(s, NINE + 10 * MINUTE)
        done = skip_before(s, NINE + 730 * DAY)
        assert done.count == 730 * 24 * 60 - 1 - 1
        assert s.sql("SELECT count(*) FROM skips") == [(2,)]
        again = skip_before(s, NINE + 700 * DAY)
        assert (again.already, again.count) == (True, 0)
        s.at(NINE + 400 * DAY)
        assert s.plan() == []
        assert sum(one.count or 0 for one in s.entries() if one.kind == "stretch") == 400 * 24 * 60
        assert s.faults() == []


def test_what_an_edit_brings_before_the_end_of_a_skip_is_left_out_too(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.add("one", Daily(times=(time(23),)))
        skip_before(s, NINE + DAY + HOUR)
        definitions.edit(s.store, "one", {"triggers": ["0 * * * *"]}, by="ann")
        runs = lived(s, NINE + DAY + 2 * HOUR)
        assert [run.due_at for run in runs] == [NINE + DAY + HOUR, NINE + DAY + 2 * HOUR]
        assert s.faults() == []


def test_a_disabled_task_skips_what_comes_once_it_is_enabled(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.add("one", hourly())
        switch(s, "disable")
        s.at(NINE + 3 * HOUR + MINUTE)
        assert skip_next(s).first == NINE + 4 * HOUR
        switch(s, "enable")
        assert [run.due_at for run in lived(s, NINE + 5 * HOUR + MINUTE)] == [NINE + 5 * HOUR]
        assert s.faults() == []


def test_the_next_of_a_paused_task_comes_after_the_end_of_its_pause(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.add("one", hourly())
        edits.pause(s.store, "task", "one", until=NINE + 5 * HOUR + MINUTE, note=None, by="ann")
        assert skip_next(s).first == NINE + 6 * HOUR
        s.at(NINE + 2 * HOUR)
        unpause(s)
        assert [run.due_at for run in lived(s, NINE + 7 * HOUR)] == [NINE + hours * HOUR for hours in (3, 4, 5, 7)]
        assert s.faults() == []


def test_a_once_that_was_skipped_is_done_and_never_runs(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", Once(at=NINE + HOUR))
        skip_next(s)
        assert refused(lambda: skip_next(s)).reason == "done"
        s.at(NINE + 2 * HOUR)
        assert s.plan() == []
        assert s.task(task.id).done
        assert refused(lambda: skip_next(s)).reason == "done"
        assert refused(lambda: skip_at(s, NINE + HOUR)).reason == "already_ended"
        assert s.faults() == []


def test_a_run_asked_by_hand_is_never_skipped_by_a_range(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.add("one", hourly())
        hand = asks.run_now(s.store, "one", by="ann")
        skip_before(s, NINE + 3 * HOUR)
        assert s.run(hand.id).state == "waiting"


def test_a_task_without_times_and_one_that_is_not_there_have_nothing_to_skip(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.add("hand")
        with pytest.raises(Invalid, match="no times of its own"):
            skip_next(s, "hand")
        s.add("gone", hourly())
        switch(s, "remove", "gone")
        assert refused(lambda: skip_next(s, "gone")).reason == "unknown_task"


def test_what_is_to_come_is_shown_as_skipped_with_who_and_why(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.add("one", hourly())
        skip_at(s, NINE + 2 * HOUR)
        with s.store.read() as session:
            tasks = previewing.coming(session, 3)
            items = skipping.marked(session, previewing.next_of(tasks, now=session.now, most=3))
        assert [item["skipped"] for item in items] == [None, {"by": "bob", "note": None}, None]


def test_two_who_skip_the_next_at_once_skip_two_different_ones(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.add("one", hourly())
        barrier = threading.Barrier(4)
        stores = [s.connect() for _ in range(4)]
        got: list[datetime | None] = []

        def ask(at: int) -> None:
            barrier.wait()
            got.append(skipping.skip(stores[at], "one", Ask(what=NEXT), by=f"person {at}").first)

        threads = [threading.Thread(target=ask, args=(at,)) for at in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        assert sorted(one for one in got if one is not None) == [NINE + hours * HOUR for hours in range(1, 5)]


def test_an_occurrence_is_either_opened_or_skipped_when_both_come_at_once(tmp_path: Path) -> None:
    """The planner and a person over two connections, the one that writes first decides, and verify is content."""
    with scene(tmp_path) as s:
        for number in range(12):
            s.add(f"task {number}", hourly())
        s.at(NINE + HOUR)
        barrier = threading.Barrier(2)
        one, two = s.connect(), s.connect()
        ended: list[Skipped] = []

        def plan() -> None:
            barrier.wait()
            for _ in range(3):
                s.plan(one)

        def person() -> None:
            barrier.wait()
            ask = Ask(what=AT, at=NINE + HOUR)
            ended.extend(skipping.skip(two, f"task {number}", ask, by="bob") for number in range(12))

        threads = [threading.Thread(target=plan), threading.Thread(target=person)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        s.plan()
        assert len(ended) == 12
        assert s.claim(free=50) == []
        for done in ended:
            assert (done.count == 1) != bool(done.runs)
        assert s.faults() == []


def test_spans_of_no_occurrence_have_nothing_to_skip_and_say_so(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.add("one", hourly())
        before = s.entries()
        for end in (NINE - DAY, NINE, NINE + HOUR):
            done = skip_before(s, end)
            assert (done.already, done.count) == (True, 0)
        assert s.entries() == before
