"""The scenes whose screens are kept as files, one function each: what happens, then what is asked."""

from collections.abc import Callable
from datetime import timedelta

from why_scene import Stage, instant

from duly.operations import tasks
from duly.operations.edits import edit
from duly.operations.skipping import AT, skip
from duly.operations.skipping import Ask as Skip
from duly.store.switches import move

Ask = tuple[str, ...]
SCENES: dict[str, Callable[[Stage], Ask]] = {}


def scene(build: Callable[[Stage], Ask]) -> Callable[[Stage], Ask]:
    """Keep a scene under its function's name."""
    SCENES[build.__name__.replace("_", "-")] = build
    return build


def hours(count: float) -> timedelta:
    return timedelta(hours=count)


def minutes(count: float) -> timedelta:
    return timedelta(minutes=count)


# What was.


@scene
def ran_in_time(stage: Stage) -> Ask:
    stage.add("backup", "daily 03:00")
    hand = stage.serve()
    stage.at("2026-12-02 02:00:00.031")
    stage.turn_and_end(hand, exit_code=0)
    stage.at("2026-12-02 11:04")
    return "why", "backup", "--at", "2026-12-02 03:00"


@scene
def ran_and_failed(stage: Stage) -> Ask:
    stage.add("backup", "daily 03:00")
    hand = stage.serve()
    stage.at("2026-12-02 02:00")
    stage.turn_and_end(hand, outcome="failed", reason="exit_status", error="no space left on /srv", exit_code=3)
    stage.at("2026-12-02 11:04")
    return "why", "backup", "--at", "2026-12-02 03:00"


@scene
def seat_was_taken(stage: Stage) -> Ask:
    stage.add("report", "every 1h from 2026-12-01T08:00:00Z", grace=minutes(5))
    hand = stage.serve()
    stage.at("2026-12-01 09:00")
    (run,) = hand.turn()
    stage.at("2026-12-01 10:00")
    hand.turn()
    stage.at("2026-12-01 10:20")
    stage.settle(run)
    stage.at("2026-12-01 12:04")
    return "why", "report", "--at", "2026-12-01T10:00:00Z"


@scene
def found_late_and_stood_for(stage: Stage) -> Ask:
    stage.add("sync", "0 * * * *")
    hand = stage.serve()
    stage.at("2026-12-01 20:30")
    stage.turn_and_end(hand)
    return "why", "sync", "--at", "2026-12-01 13:00"


@scene
def caught_up_late(stage: Stage) -> Ask:
    stage.add("sync", "0 * * * *")
    hand = stage.serve()
    stage.at("2026-12-01 20:30")
    stage.turn_and_end(hand)
    return "why", "sync", "--at", "2026-12-01 21:00"


@scene
def found_too_late(stage: Stage) -> Ask:
    stage.add("backup", "daily 03:00", max_age=hours(4))
    hand = stage.serve()
    stage.at("2026-12-02 07:12")
    hand.turn()
    stage.at("2026-12-02 09:00")
    return "why", "backup", "--at", "2026-12-02 03:00"


@scene
def missed_and_skipped(stage: Stage) -> Ask:
    stage.add("digest", "weekly mon-fri 07:30", on_missed="skip")
    hand = stage.serve("web2", 977)
    stage.at("2026-12-02 06:31:01")
    hand.turn()
    stage.at("2026-12-02 09:00")
    return "why", "digest", "--at", "2026-12-02 07:30"


@scene
def paused_then(stage: Stage) -> Ask:
    stage.add("sync", "0 * * * *")
    hand = stage.serve()
    tasks.pause(stage.store, "store", "", until=instant("2026-12-01 14:30"), note="moving house", by="ben")
    stage.at("2026-12-01 14:30:01")
    hand.turn()
    stage.at("2026-12-01 16:10")
    return "why", "sync", "--at", "2026-12-01 12:00"


@scene
def disabled_then(stage: Stage) -> Ask:
    stage.add("sync", "0 * * * *")
    hand = stage.serve()
    stage.at("2026-12-01 09:30")
    hand.turn()
    tasks.disable(stage.store, "sync", by="ben")
    stage.at("2026-12-02 09:30")
    tasks.enable(stage.store, "sync", by="anna")
    return "why", "sync", "--at", "2026-12-01 18:00"


@scene
def not_due_on_a_saturday(stage: Stage) -> Ask:
    stage.add("report", "0 9 * * mon-fri")
    stage.serve()
    stage.at("2026-12-08 08:00")
    return "why", "report", "--at", "2026-12-05 09:00"


@scene
def not_due_by_several_triggers(stage: Stage) -> Ask:
    stage.add("report", "0 9 * * mon-fri", "0 17 L * *", "every 12h from 2026-12-01T09:00:00Z")
    stage.serve()
    stage.at("2026-12-08 08:00")
    return "why", "report", "--at", "2026-12-05 17:00"


@scene
def not_due_in_the_second_pass(stage: Stage) -> Ask:
    stage.at("2026-10-20 08:00")
    stage.add("backup", "daily 02:30")
    hand = stage.serve()
    stage.at("2026-10-26 08:00")
    hand.turn()
    return "why", "backup", "--at", "2026-10-25T02:30:00+01:00"


@scene
def not_there_yet(stage: Stage) -> Ask:
    stage.add("backup", "daily 03:00")
    stage.serve()
    return "why", "backup", "--at", "2026-11-28 03:00"


@scene
def overdue_and_nobody_serves(stage: Stage) -> Ask:
    stage.add("backup", "daily 03:00")
    stage.at("2026-12-02 05:12")
    return "why", "backup", "--at", "2026-12-02 03:00"


@scene
def waits_for_its_seat(stage: Stage) -> Ask:
    stage.add("report", "0 * * * *", overlap="queue")
    hand = stage.serve()
    stage.at("2026-12-01 09:00")
    hand.turn()
    stage.at("2026-12-01 10:00")
    hand.turn()
    stage.later(minutes=3)
    hand.beat()
    return "why", "report"


@scene
def running_now(stage: Stage) -> Ask:
    stage.add("backup", "daily 03:00")
    hand = stage.serve()
    stage.at("2026-12-02 02:00")
    hand.turn()
    stage.later(seconds=80)
    hand.beat()
    stage.later(seconds=3)
    return "why", "backup"


@scene
def a_run_whose_holder_died(stage: Stage) -> Ask:
    from duly.core import interrupting
    from duly.core.task import Rules

    stage.add("backup", "daily 03:00", on_interrupt="retry")
    first = stage.serve()
    second = stage.serve("web2", 977)
    stage.at("2026-12-02 02:00")
    (run,) = first.turn()
    stage.die(first)
    stage.later(seconds=41)
    with stage.store.write() as session:
        held = session.runs.by_id(run.id)
        assert held is not None
        step = interrupting.interrupted(
            held,
            Rules(on_interrupt="retry"),
            why="holder_died",
            now=session.now,
            ended_at=session.now,
            following=None,
            by=second.id,
        )
        assert move(session, [step])
    second.turn()
    stage.later(seconds=9)
    stage.settle(run)
    stage.at("2026-12-02 11:04")
    return "why", run.id


@scene
def in_order(stage: Stage) -> Ask:
    stage.add("backup", "daily 03:00")
    hand = stage.serve()
    stage.at("2026-12-02 02:00")
    stage.turn_and_end(hand, exit_code=0)
    stage.at("2026-12-02 11:04")
    hand.beat()
    return "why", "backup"


@scene
def nothing_runs_because_nobody_serves(stage: Stage) -> Ask:
    stage.add("backup", "daily 03:00")
    hand = stage.serve()
    stage.at("2026-12-02 02:00")
    stage.turn_and_end(hand, exit_code=0)
    stage.die(hand)
    stage.at("2026-12-02 11:04")
    return "why", "backup"


@scene
def nothing_runs_because_it_is_paused(stage: Stage) -> Ask:
    stage.add("backup", "daily 03:00")
    hand = stage.serve()
    stage.at("2026-12-02 02:00")
    stage.turn_and_end(hand, outcome="timed_out", reason="timeout", error="ran longer than its timeout")
    tasks.pause(stage.store, "task", "backup", until=None, note="the disk is full, ask Ben", by="anna")
    stage.at("2026-12-03 11:04")
    return "why", "backup"


@scene
def what_did_not_run_as_planned(stage: Stage) -> Ask:
    stage.add("sync", "0 * * * *")
    hand = stage.serve()
    for hour in range(9, 12):
        stage.at(f"2026-12-01 {hour:02d}:00")
        stage.turn_and_end(hand)
    stage.at("2026-12-01 12:00")
    stage.turn_and_end(hand, outcome="failed", reason="exit_status", error="no route to host", exit_code=7)
    stage.at("2026-12-01 13:00")
    (run,) = hand.turn()
    for hour in (14, 15):
        stage.at(f"2026-12-01 {hour:02d}:00")
        hand.turn()
    stage.at("2026-12-01 15:10")
    stage.settle(run)
    tasks.pause(stage.store, "task", "sync", until=None, note=None, by="ben")
    stage.at("2026-12-01 18:30")
    tasks.unpause(stage.store, "task", "sync", by="ben")
    stage.at("2026-12-02 03:30")
    stage.turn_and_end(hand)
    stage.at("2026-12-02 05:30")
    return "why", "sync", "--since", "2d"


@scene
def offered_to_a_person(stage: Stage) -> Ask:
    stage.add("invoices", "0 */4 * * *", on_missed="offer", offer_for=hours(72))
    hand = stage.serve()
    stage.at("2026-12-02 06:40")
    hand.turn()
    stage.at("2026-12-02 07:00")
    return "why", "invoices", "--at", "2026-12-01 20:00"


@scene
def beyond_what_catching_up_opens(stage: Stage) -> Ask:
    stage.add("sync", "0 * * * *", on_missed="run_all", at_most=2, max_age=hours(12))
    hand = stage.serve()
    stage.at("2026-12-01 15:30")
    hand.turn()
    stage.later(minutes=4)
    return "why", "sync", "--at", "2026-12-01 14:00"


@scene
def skipped_by_a_person(stage: Stage) -> Ask:
    stage.add("sync", "0 * * * *")
    hand = stage.serve()
    for hour in (10, 11, 12):
        at = instant(f"2026-12-01 {hour}:00")
        skip(stage.store, "sync", Skip(what=AT, at=at), by="ben", note="the source is in maintenance")
    for hour in range(9, 14):
        stage.at(f"2026-12-01 {hour:02d}:00")
        for run in hand.turn():
            stage.settle(run)
    return "why", "sync", "--at", "2026-12-01 12:00"


@scene
def skipped_as_its_schedule_changed(stage: Stage) -> Ask:
    stage.add("sync", "0 * * * *", needs=("gpu",))
    hand = stage.serve()
    stage.at("2026-12-01 10:00")
    hand.plan()
    stage.later(minutes=12)
    edit(stage.store, "sync", {"triggers": ["30 * * * *"], "rules": {"needs": []}}, by="ben")
    stage.at("2026-12-01 10:30")
    stage.turn_and_end(hand)
    stage.at("2026-12-01 10:41")
    return "why", "sync", "--at", "2026-12-01 11:00"


@scene
def waits_to_be_tried_again(stage: Stage) -> Ask:
    stage.add("fetch", "daily 03:00", retries=3, retry_after=minutes(5))
    hand = stage.serve()
    stage.at("2026-12-02 02:00")
    for minute in (0, 6):
        stage.at(f"2026-12-02 02:{minute:02d}")
        (run,) = hand.turn()
        stage.later(seconds=8)
        stage.fail(hand, run, exit_code=6)
    stage.later(minutes=2)
    hand.beat()
    return "why", "fetch"


@scene
def failed_after_all_its_tries(stage: Stage) -> Ask:
    stage.add("fetch", "daily 03:00", retries=2, retry_after=minutes(5))
    hand = stage.serve()
    for minute in (0, 6, 20):
        stage.at(f"2026-12-02 02:{minute:02d}")
        (run,) = hand.turn()
        stage.later(seconds=8)
        stage.fail(hand, run, exit_code=6)
    stage.at("2026-12-02 07:00")
    return "why", "fetch", "--at", "2026-12-02 03:00"


@scene
def when_a_spread_instant_starts(stage: Stage) -> Ask:
    from duly.core.spans import write_instant
    from duly.core.spreading import share_of

    task = stage.add("report", "daily 09:00", spread=hours(1))
    stage.serve()
    stage.at("2026-12-02 12:00")
    due = instant("2026-12-03 08:00")
    start = due + share_of(task.id, due, spread=hours(1), following=None)
    return "why", "report", "--at", write_instant(start.replace(microsecond=0) + timedelta(seconds=1))


# What will be.


@scene
def would_start_by_its_spread(stage: Stage) -> Ask:
    stage.add("report", "daily 09:00", spread=hours(1))
    stage.serve()
    return "why", "report", "--at", "2026-12-02 09:00"


@scene
def would_start(stage: Stage) -> Ask:
    stage.add("backup", "daily 03:00")
    stage.serve()
    return "why", "backup", "--at", "2026-12-02 03:00"


@scene
def would_start_after_the_pause(stage: Stage) -> Ask:
    stage.add("backup", "daily 03:00")
    stage.serve()
    tasks.pause(stage.store, "project", "default", until=instant("2026-12-01 20:00"), note="deploy", by="ben")
    return "why", "backup", "--at", "2026-12-02 03:00"


@scene
def would_not_open_while_paused(stage: Stage) -> Ask:
    stage.add("backup", "daily 03:00")
    stage.serve()
    tasks.pause(stage.store, "task", "backup", until=instant("2026-12-05 08:00"), note="disk swap", by="ben")
    return "why", "backup", "--at", "2026-12-04 03:00"


@scene
def would_not_open_disabled(stage: Stage) -> Ask:
    stage.add("backup", "daily 03:00")
    stage.serve()
    stage.at("2026-12-01 12:00")
    tasks.disable(stage.store, "backup", by="ben")
    return "why", "backup", "--at", "2026-12-02 03:00"


@scene
def may_be_skipped_for_its_seat(stage: Stage) -> Ask:
    stage.add("report", "0 * * * *", timeout=hours(3))
    hand = stage.serve()
    stage.at("2026-12-01 09:00")
    hand.turn()
    stage.at("2026-12-01 09:40")
    hand.beat()
    return "why", "report", "--at", "2026-12-01 11:00"


@scene
def would_start_once_the_timeout_is_over(stage: Stage) -> Ask:
    stage.add("report", "0 * * * *", timeout=minutes(50), overlap="queue")
    hand = stage.serve()
    stage.at("2026-12-01 09:00")
    hand.turn()
    stage.at("2026-12-01 09:40")
    hand.beat()
    return "why", "report", "--at", "2026-12-01 11:00"


@scene
def would_wait_for_a_limit(stage: Stage) -> Ask:
    stage.add("import", "0 * * * *", limits={"db": 1})
    stage.add("export", "30 * * * *", limits={"db": 1})
    hand = stage.serve()
    stage.at("2026-12-01 09:00")
    hand.turn()
    stage.at("2026-12-01 09:20")
    hand.beat()
    return "why", "export", "--at", "2026-12-01 10:30"


@scene
def would_wait_for_a_label(stage: Stage) -> Ask:
    stage.add("train", "daily 22:00", needs=("gpu",))
    stage.serve(labels=("eu",))
    return "why", "train", "--at", "2026-12-01 22:00"


@scene
def would_wait_as_nobody_serves(stage: Stage) -> Ask:
    stage.add("backup", "daily 03:00")
    return "why", "backup", "--at", "2026-12-02 03:00"


@scene
def not_due_before_its_start(stage: Stage) -> Ask:
    stage.add("backup", "daily 03:00", start=instant("2027-01-01 00:00"), until=instant("2027-03-31 22:00"))
    stage.serve()
    return "why", "backup", "--at", "2026-12-24 03:00"


@scene
def would_not_open_beyond_its_times(stage: Stage) -> Ask:
    stage.add("trial", "daily 03:00", times=3)
    stage.serve()
    return "why", "trial", "--at", "2026-12-05 03:00"


@scene
def due_in_the_gap_of_spring(stage: Stage) -> Ask:
    stage.add("backup", "daily 02:30")
    stage.serve()
    return "why", "backup", "--at", "2027-03-28 02:30"


@scene
def not_due_in_the_gap_of_spring(stage: Stage) -> Ask:
    stage.add("backup", "daily 02:30", gap="skip")
    stage.serve()
    return "why", "backup", "--at", "2027-03-28 02:30"
