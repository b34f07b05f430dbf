"""What went wrong in other schedulers, B36 to B85: the input of each report, and others of its kind, in the store."""

import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from store_scene import DAY, HOUR, MINUTE, NINE, SECOND, SUCCEEDED, Scene, hourly, losing, minutely, scene
from test_store_mounts import table

import databases
from by_hand import file_line
from duly.core.triggers import Cron, Daily, Every, Once
from duly.errors import StoreAway, StoreUnknown
from duly.holder.dispatcher import Won
from duly.holder.settling import Interrupted
from duly.operations import edits, listing, previewing, standing
from duly.operations import limits as limit_operations
from duly.operations import tasks as task_operations
from duly.ports import Outcome
from duly.store import mounts

FAILED = Outcome(word="failed", reason="exit_status", exit_code=1)
TIMED_OUT = Outcome(word="timed_out", reason="timeout")
DIED = "died"


def served(s: Scene, free: int = 8) -> list[Won]:
    """One turn of a holder: what is due is opened, and as many are claimed as slots are free."""
    s.plan()
    return s.claim(free=free)


def ends(s: Scene, won: Won, how: Outcome | str) -> None:
    s.settle(won, Interrupted(why="holder_died", ended_at=s.clock.moment) if isinstance(how, str) else how)


@pytest.mark.parametrize("how", [SUCCEEDED, FAILED, TIMED_OUT, DIED], ids=["succeeded", "failed", "timed out", "died"])
@pytest.mark.parametrize("away", [MINUTE, 29 * MINUTE, 13 * HOUR])
def test_b36_a_restart_runs_nothing_again_that_had_an_attempt(
    tmp_path: Path, how: Outcome | str, away: timedelta
) -> None:
    with scene(tmp_path) as s:
        s.add("digest", Daily(times=(NINE.time().replace(hour=22),)), max_age=DAY)
        s.at(NINE.replace(hour=22))
        (won,) = served(s)
        s.at(NINE.replace(hour=22, minute=2))
        ends(s, won, how)
        s.at(s.clock.moment + away)
        assert served(s) == []
        assert len(s.runs()) == 1
        assert s.faults() == []


def look_at_all(s: Scene) -> None:
    with s.connect().read() as session:
        listing.tasks(session, cursor=None, most=100)
        listing.runs(session, task=None, state=None, outcome=None, since=None, most=50, cursor=None)
        standing.status(s.store, session)
        for task in session.tasks.page():
            list(zip(range(3), previewing.upcoming(task, session.now), strict=False))


@pytest.mark.parametrize("busy", [SECOND, MINUTE, 3 * HOUR])
def test_b38_looking_a_hundred_times_moves_nothing_and_what_is_due_runs_once(tmp_path: Path, busy: timedelta) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", Daily(times=(NINE.time().replace(hour=13),)), max_age=DAY)
        s.at(NINE.replace(hour=13))
        before = s.sql("SELECT * FROM tasks")
        for number in range(100):
            s.at(NINE.replace(hour=13) + busy * number / 99)
            look_at_all(s)
        assert s.sql("SELECT * FROM tasks") == before
        (won,) = served(s)
        assert won.run.due_at == NINE.replace(hour=13)
        assert s.task(task.id).next_due_at == NINE.replace(hour=13) + DAY


@pytest.mark.parametrize("how", [SUCCEEDED, FAILED, TIMED_OUT, DIED], ids=["succeeded", "failed", "timed out", "died"])
@pytest.mark.parametrize("late", [timedelta(0), HOUR, 2 * DAY])
def test_b39_a_once_has_one_occurrence_whatever_becomes_of_it(
    tmp_path: Path, how: Outcome | str, late: timedelta
) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", Once(at=NINE + HOUR), on_missed="run")
        s.at(NINE + HOUR + late)
        other = s.connect()
        won = served(s)
        assert s.plan(store=other, holder="hld_b") == []
        assert s.claim(store=other, holder="hld_b") == []
        for one in won:
            ends(s, one, how)
        for later in (SECOND, HOUR, 400 * DAY):
            s.at(NINE + HOUR + late + later)
            assert served(s) == []
        stands = s.task(task.id)
        assert (stands.done, stands.next_due_at, stands.next_start_at) == (True, None, None)
        assert len(s.runs()) == (1 if late < DAY else 0)
        assert s.faults() == []


@pytest.mark.parametrize(("number", "most"), [(45, 4), (20, 1), (30, 7)])
def test_b41_a_stampede_keeps_to_its_limit_in_due_order_and_one_may_be_taken_out(
    tmp_path: Path, number: int, most: int
) -> None:
    with scene(tmp_path) as s:
        limit_operations.set_limit(s.store, "all", most=most, rate=None, rate_for=None, by="ann")
        for place in range(number):
            s.add(f"t{place:02}", hourly(NINE + place * SECOND), limits={"all": 1})
        s.at(NINE + HOUR + 10 * MINUTE)
        s.plan()
        task_operations.disable(s.store, f"t{number - 1:02}", by="ann")
        started: list[Won] = []
        while live := s.claim(free=100):
            assert len(live) <= most
            started += live
            s.at(s.clock.moment + MINUTE)
            for one in live:
                s.settle(one)
        assert [won.definition.name for won in started] == [f"t{place:02}" for place in range(number - 1)]
        (out,) = [run for run in s.runs() if run.outcome == "skipped"]
        assert out.reason == "disabled"
        assert s.faults() == []


@pytest.mark.parametrize(("holders", "free"), [(2, 8), (4, 3), (16, 1)])
def test_b43_many_holders_at_a_barrier_run_each_occurrence_once(tmp_path: Path, holders: int, free: int) -> None:
    with scene(tmp_path) as s:
        if not databases.ON_SERVER:
            file_line(s.store).raw.execute("PRAGMA synchronous=OFF")
        s.add("one", Every(span=SECOND, anchor=NINE), grace=HOUR, seats=200, overlap="queue", queue=1000)
        s.at(NINE + 60 * SECOND)
        gate, stores = threading.Barrier(holders), [s.connect() for _ in range(holders)]
        found: list[str] = []

        def serve(place: int) -> None:
            gate.wait()
            while won := (s.plan(stores[place], f"hld_{place}"), s.claim(stores[place], f"hld_{place}", free))[1]:
                found.extend(one.run.occurrence for one in won)
                for one in won:
                    s.settle(one, store=stores[place], holder=f"hld_{place}")

        threads = [threading.Thread(target=serve, args=(place,)) for place in range(holders)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(found) == len(set(found)) == 60
        assert s.faults() == []


@pytest.mark.parametrize(("span", "away"), [(MINUTE, 3 * DAY), (SECOND, 5 * DAY), (HOUR, 400 * DAY)])
@pytest.mark.parametrize("why", ["down", "paused", "disabled", "edited"])
def test_b59_however_many_were_missed_planning_goes_on_and_a_pause_misses_nothing(
    tmp_path: Path, span: timedelta, away: timedelta, why: str
) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", Daily(times=(NINE.time(),)) if why == "edited" else Every(span=span, anchor=NINE))
        if why == "paused":
            task_operations.pause(s.store, "task", "one", until=None, note=None, by="ann")
        elif why == "disabled":
            task_operations.disable(s.store, "one", by="ann")
        s.at(NINE + away)
        if why == "paused":
            task_operations.unpause(s.store, "task", "one", by="ann")
        elif why == "disabled":
            task_operations.enable(s.store, "one", by="ann")
        elif why == "edited":
            s.plan()
            edits.edit(s.store, "one", {"triggers": [f"every {span // SECOND}s from {NINE.isoformat()}"]}, by="ann")
        before = len(s.runs())
        if why != "down":
            assert served(s) == []
        else:
            (caught,) = served(s)
            assert caught.run.due_at == NINE + away
            s.settle(caught)
        s.at(NINE + away + span)
        (won,) = served(s)
        assert won.run.due_at == NINE + away + span
        assert len(s.runs()) - before == (2 if why == "down" else 1)
        assert len(s.entries(task.id)) < 20
        assert s.faults() == []


@pytest.mark.parametrize(("number", "most"), [(6, 3), (200, 4), (17, 5)])
def test_b61_of_many_at_one_instant_all_run_as_places_become_free(tmp_path: Path, number: int, most: int) -> None:
    with scene(tmp_path) as s:
        for place in range(number):
            s.add(f"t{place:03}", Once(at=NINE + HOUR))
        s.at(NINE + HOUR)
        while s.plan():
            pass
        ran: set[str] = set()
        while live := s.claim(free=most):
            assert len(live) <= most
            ran |= {one.definition.name for one in live}
            s.at(s.clock.moment + 10 * SECOND)
            for one in live:
                s.settle(one)
        assert len(ran) == number
        assert {run.outcome for run in s.runs()} == {"succeeded"}
        with s.store.read() as session:
            assert all(task.done and task.next_due_at is None for task in session.tasks.page(most=1000))
        assert s.faults() == []


CHANGES: dict[str, tuple[Callable[[Scene], object], str]] = {
    "another time": (lambda s: edits.edit(s.store, "one", {"triggers": ["daily 19:00"]}, by="b"), "schedule_changed"),
    "another zone": (lambda s: edits.edit(s.store, "one", {"zone": "Asia/Tokyo"}, by="b"), "schedule_changed"),
    "disabled": (lambda s: task_operations.disable(s.store, "one", by="b"), "disabled"),
    "paused": (lambda s: task_operations.pause(s.store, "task", "one", until=None, note=None, by="b"), "paused"),
    "removed": (lambda s: task_operations.remove(s.store, "one", by="b"), "task_removed"),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("when", ["a second before", "while it waits"])
def test_b64_what_was_changed_while_it_waited_does_not_start(tmp_path: Path, change: str, when: str) -> None:
    with scene(tmp_path) as s:
        s.add("one", Daily(times=(NINE.time().replace(hour=10),)))
        other = s.connect()
        if when == "while it waits":
            s.at(NINE + HOUR)
            s.plan()
        else:
            s.at(NINE + HOUR - SECOND)
        CHANGES[change][0](s)
        s.at(NINE + HOUR + SECOND)
        s.plan(store=other)
        assert s.claim(store=other) == []
        told = [(run.outcome, run.reason) for run in s.runs()]
        assert told == ([("skipped", CHANGES[change][1])] if when == "while it waits" else [])
        assert s.faults() == []


@pytest.mark.parametrize(
    ("old", "new", "edited", "not_at", "first"),
    [
        ("daily 10:00", "daily 20:00", "09:59:30", "10:00", "20:00"),
        ("once 2026-03-02 13:58", "once 2026-03-02 14:58", "12:00:00", "13:58", "14:58"),
        ("0 12 2 * *", "0 12 1 * *", "11:00:00", "12:00", None),
        ("every 1h from 2026-03-02T09:00:00Z", "every 1h from 2026-03-02T09:30:00Z", "09:45:00", "10:00", "10:30"),
    ],
)
def test_b85_after_an_edit_only_the_new_rule_counts_and_nothing_before_it(
    tmp_path: Path, old: str, new: str, edited: str, not_at: str, first: str | None
) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", Cron(expression="0 0 1 1 *"))
        edits.edit(s.store, "one", {"triggers": [old], "zone": "UTC"}, by="ann")
        s.at(NINE.replace(**dict(zip(("hour", "minute", "second"), map(int, edited.split(":")), strict=True))))  # type: ignore[arg-type]
        edits.edit(s.store, "one", {"triggers": [new]}, by="ann")
        began = s.clock.moment
        for minute in range(int((NINE.replace(hour=23) - began) / MINUTE)):
            s.at(began + minute * MINUTE)
            for one in served(s):
                s.settle(one)
        at = [f"{run.due_at:%H:%M}" for run in s.runs()]
        assert not_at not in at
        assert at[:1] == ([first] if first else [])
        assert s.task(task.id).definition_version == 3
        assert s.faults() == []


@pytest.mark.parametrize("away", [2 * MINUTE, 5 * MINUTE, 5 * HOUR])
@pytest.mark.parametrize("lost", ["claim", "end"])
def test_b56_after_a_store_was_away_what_was_missed_follows_its_policy_once(
    tmp_path: Path, away: timedelta, lost: str
) -> None:
    """The connection breaks after the commit and before its answer; then nothing answers for a while."""
    with scene(tmp_path) as s:
        s.add("one", minutely(), overlap="skip")
        s.at(NINE + MINUTE)
        s.plan()
        if lost == "claim":
            with pytest.raises(StoreUnknown), losing(s.store):
                s.claim()
            (run,) = s.runs()
            assert (run.state, run.attempt) == ("held", 1), "it is found by reading back, and not claimed again"
            assert s.claim(store=s.connect(), holder="hld_b") == []
            won = Won(run=run, task=s.task(run.task), definition=s.task(run.task).definition)
        else:
            (won,) = s.claim()
            with pytest.raises(StoreUnknown), losing(s.store):
                s.settle(won)
        s.settle(won)
        s.at(NINE + MINUTE + away)
        (caught,) = served(s)
        assert caught.run.due_at == NINE + MINUTE + away
        s.settle(caught)
        assert len(s.runs()) == 2, "one by its time, one that stands for all that was missed"
        assert s.faults() == []


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "cifs", "smb3", "fuse.sshfs", "9p"])
def test_b80_a_file_system_of_the_network_is_refused_by_its_name(tmp_path: Path, kind: str) -> None:
    with pytest.raises(StoreAway, match=kind.removeprefix("fuse.")):
        mounts.check_local(tmp_path / "share" / "duly.db", table(tmp_path, kind))
    mounts.check_local(tmp_path / "elsewhere" / "duly.db", table(tmp_path, kind))
