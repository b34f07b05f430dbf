"""The planner and the dispatcher, turn by turn, on a clock that stands still."""

from datetime import timedelta

from holder_scene import START, Stage, until_idle

from by_hand import by_hand
from duly.operations import runs as asks
from duly.operations import tasks as edits

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)


def test_a_punctual_occurrence_is_opened_claimed_and_started_in_one_turn(stage: Stage) -> None:
    holder = stage.holder()
    stage.add("a", "every 1m")
    until_idle(holder)
    assert stage.read().runs == []
    stage.clock.pass_(MINUTE)
    until_idle(holder)
    stage.script.wait_for_starts(1)
    [run] = stage.read().runs
    assert (run.state, run.opened_by, run.attempt, run.fence, run.due_at) == ("held", "schedule", 1, 1, START + MINUTE)
    assert stage.read().kinds(run.id) == ["opened", "claimed"]


def test_the_work_is_settled_with_its_outcome_and_its_seat_is_free_for_the_next(stage: Stage) -> None:
    holder = stage.holder()
    stage.add("a", "every 1m")
    stage.clock.pass_(MINUTE)
    until_idle(holder)
    stage.script.wait_for_starts(1)
    stage.script.over.set()
    settle_all(stage, 1)
    [run] = stage.read().runs
    assert (run.state, run.outcome, run.seat) == ("ended", "succeeded", None)
    stage.clock.pass_(MINUTE)
    until_idle(holder)
    stage.script.wait_for_starts(2)


def settle_all(stage: Stage, number: int) -> None:
    """Turn every loop until so many runs have ended."""
    from duly.clock import monotonic_s, pause

    until = monotonic_s() + 20
    while sum(run.state == "ended" for run in stage.read().runs) < number:
        assert monotonic_s() < until, stage.read().runs
        for holder in stage.holders:
            holder.step()
        pause(0.005)


def test_an_occurrence_while_the_task_runs_is_skipped_and_names_who_has_the_seat(stage: Stage) -> None:
    holder = stage.holder()
    stage.add("a", "every 1m")
    stage.clock.pass_(MINUTE)
    until_idle(holder)
    stage.script.wait_for_starts(1)
    stage.clock.pass_(MINUTE)
    until_idle(holder)
    first, second = stage.read().runs
    assert (second.state, second.outcome, second.reason) == ("ended", "skipped", "already_running")
    [told] = [entry for entry in stage.read().entries if entry.kind == "skipped"]
    assert told.details["run"] == first.id
    assert told.details["holder"] == holder.id


def test_a_queue_keeps_so_many_and_drops_the_oldest_with_its_reason(stage: Stage) -> None:
    holder = stage.holder()
    stage.add("a", "every 1m", overlap="queue", queue=2)
    for _ in range(5):
        stage.clock.pass_(MINUTE)
        until_idle(holder)
    runs = stage.read().runs
    assert [run.state for run in runs] == ["held", "ended", "ended", "waiting", "waiting"]
    assert {run.reason for run in runs[1:3]} == {"queue_full"}


def test_no_more_runs_are_claimed_than_there_are_slots_and_the_rest_waits_opened(stage: Stage) -> None:
    holder = stage.holder(slots=2)
    for name in "abcde":
        stage.add(name, "every 1m")
    stage.clock.pass_(MINUTE)
    until_idle(holder)
    states = [run.state for run in stage.read().runs]
    assert (states.count("held"), states.count("waiting")) == (2, 3)
    assert all(run.opened_by == "schedule" for run in stage.read().runs)


def test_a_run_by_hand_goes_before_what_time_has_opened(stage: Stage) -> None:
    holder = stage.holder(slots=1)
    stage.add("first", "every 1m")
    stage.add("second", "every 1m")
    stage.add("asked", "manual")
    stage.clock.pass_(MINUTE)
    asked = asks.run_now(stage.store, "asked", by="test")
    until_idle(holder)
    assert [run.id for run in stage.read().runs if run.state == "held"] == [asked.id]


def test_what_was_missed_while_nobody_served_is_one_run_and_one_counted_row(stage: Stage) -> None:
    stage.add("a", "every 1m")
    stage.clock.pass_(timedelta(hours=3, seconds=40))
    holder = stage.holder()
    until_idle(holder)
    [run] = stage.read().runs
    assert (run.opened_by, run.due_at) == ("catch_up", START + timedelta(hours=3))
    [missed] = stage.read().missed
    assert (missed.count, missed.reason, missed.due_at, missed.until_at) == (
        179,
        "coalesced",
        START + MINUTE,
        START + timedelta(hours=2, minutes=59),
    )


def test_a_run_that_waited_past_max_age_ends_stale_and_never_starts(stage: Stage) -> None:
    stage.add("a", "once in 1m", max_age=timedelta(minutes=10))
    busy = stage.holder(slots=0)
    stage.clock.pass_(MINUTE)
    until_idle(busy)
    [run] = stage.read().runs
    assert run.state == "waiting"
    stage.clock.pass_(timedelta(minutes=10))
    assert_claims(stage, run.id, starts=True)


def assert_claims(stage: Stage, run: str, *, starts: bool) -> None:
    holder = stage.holder()
    until_idle(holder)
    [now] = [one for one in stage.read().runs if one.id == run]
    assert (now.state == "held") is starts, now


def test_a_run_that_waited_a_moment_longer_than_max_age_is_stale(stage: Stage) -> None:
    stage.add("a", "once in 1m", max_age=timedelta(minutes=10))
    until_idle_at(stage, MINUTE)
    stage.clock.pass_(timedelta(minutes=10, microseconds=1))
    holder = stage.holder()
    until_idle(holder)
    [run] = stage.read().runs
    assert (run.outcome, run.reason) == ("skipped", "stale")


def until_idle_at(stage: Stage, span: timedelta) -> None:
    holder = stage.holder(slots=0)
    stage.clock.pass_(span)
    until_idle(holder)


def test_a_clock_stepped_back_runs_nothing_twice_and_stops_nothing(stage: Stage) -> None:
    holder = stage.holder()
    stage.add("a", "every 1m")
    stage.script.over.set()
    stage.clock.pass_(MINUTE)
    until_idle(holder)
    settle_all(stage, 1)
    stage.clock.civil -= timedelta(seconds=50)
    until_idle(holder)
    stage.clock.civil += timedelta(seconds=50)
    until_idle(holder)
    assert len(stage.read().runs) == 1
    stage.clock.pass_(MINUTE)
    until_idle(holder)
    assert [run.due_at for run in stage.read().runs] == [START + MINUTE, START + 2 * MINUTE]


def test_a_clock_that_jumps_a_month_ahead_catches_up_once_and_counts_the_rest(stage: Stage) -> None:
    holder = stage.holder()
    stage.add("a", "* * * * *")
    stage.add("b", "* * * * *", on_missed="skip")
    stage.clock.pass_(timedelta(days=30, seconds=40))
    until_idle(holder)
    [run] = stage.read().runs
    assert run.opened_by == "catch_up"
    assert sorted((one.reason, one.count) for one in stage.read().missed) == [
        ("coalesced", 30 * 24 * 60 - 1),
        ("missed_skip", 30 * 24 * 60),
    ]


def test_pausing_ends_what_waits_and_lifting_it_owes_nothing_with_one_counted_entry(stage: Stage) -> None:
    holder = stage.holder(slots=0)
    stage.add("a", "every 1m")
    stage.clock.pass_(MINUTE)
    until_idle(holder)
    edits.pause(stage.store, "task", "a", until=None, note="holiday", by="test")
    assert [(run.outcome, run.reason) for run in stage.read().runs] == [("skipped", "paused")]
    stage.clock.pass_(timedelta(hours=1))
    until_idle(holder)
    edits.unpause(stage.store, "task", "a", by="test")
    [stretch] = [entry for entry in stage.read().entries if entry.kind == "stretch"]
    assert (stretch.reason, stretch.count) == ("paused", 60)
    stage.clock.pass_(MINUTE)
    until_idle(holder)
    assert len(stage.read().runs) == 2


def test_a_pause_with_an_end_lifts_itself_at_that_end_and_what_follows_is_owed(stage: Stage) -> None:
    holder = stage.holder()
    stage.add("a", "every 1m")
    edits.pause(stage.store, "store", "", until=START + timedelta(minutes=10), note=None, by="test")
    stage.clock.pass_(timedelta(minutes=11, seconds=1))
    until_idle(holder)
    [run] = stage.read().runs
    assert run.due_at == START + timedelta(minutes=11)
    [stretch] = [entry for entry in stage.read().entries if entry.kind == "stretch"]
    assert (stretch.count, stretch.until_at) == (10, START + timedelta(minutes=10))


def test_a_task_that_cannot_be_planned_is_put_aside_and_keeps_no_other_from_its_plan(stage: Stage) -> None:
    holder = stage.holder()
    bad = stage.add("bad", "every 1m")
    stage.add("good", "every 1m")
    with stage.store.write() as session:
        by_hand(session.line, "UPDATE tasks SET definition = '{\"zone\": 7}' WHERE id = ?", bad.id)
    stage.clock.pass_(MINUTE)
    until_idle(holder)
    assert len(stage.read().runs) == 1
    with stage.store.read() as session:
        kept = session.tasks.by_id(bad.id)
    assert kept is not None
    assert kept.broken is not None


def test_two_holders_that_plan_the_same_moment_open_each_occurrence_once(stage: Stage) -> None:
    one, two = stage.holder(), stage.holder()
    for name in "abcdef":
        stage.add(name, "every 1s")
    for _ in range(20):
        stage.clock.pass_(SECOND)
        for holder in (one, two):
            holder.step()
    opened = [entry.occurrence for entry in stage.read().entries if entry.kind == "opened" and entry.task]
    by_task = [(entry.task, entry.occurrence) for entry in stage.read().entries if entry.kind == "opened"]
    assert len(opened) == 120
    assert len(set(by_task)) == 120
