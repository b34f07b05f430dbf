"""Outages that holders notice: recorded once with bounds and cause, and nothing is started by that."""

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from holder_scene import START, WITHIN_S, Stage, until_idle

from duly.clock import monotonic_s, pause
from duly.core.run import Entry
from duly.errors import StoreAway
from duly.operations import events, runs
from duly.operations.outages import outages

HOUR, MINUTE, SECOND = timedelta(hours=1), timedelta(minutes=1), timedelta(seconds=1)


def wait_until(what: Callable[[], bool]) -> None:
    """Ask until it is so: what is looked at in threads comes to its end in their time."""
    until = monotonic_s() + WITHIN_S
    while not what():
        assert monotonic_s() < until
        pause(0.01)


def told(stage: Stage) -> list[Entry]:
    return [entry for entry in stage.read().entries if entry.kind == "outage"]


def spans(stage: Stage) -> list[tuple[str | None, datetime, datetime | None]]:
    return [(one.reason, datetime.fromisoformat(str(one.details["since"])), one.until_at) for one in told(stage)]


def leave(stage: Stage) -> None:
    """The stage's last holder stops and is gone."""
    holder = stage.holders.pop()
    holder.stop()
    holder.run()


def test_the_first_start_of_all_tells_of_no_outage(stage: Stage) -> None:
    stage.holder().step()
    assert told(stage) == []


def test_after_a_stop_the_next_start_tells_since_when_nobody_served(stage: Stage) -> None:
    stage.holder().step()
    stage.clock.pass_(MINUTE)
    leave(stage)
    stage.clock.pass_(HOUR)
    stage.holder()
    assert spans(stage) == [("stopped", START + MINUTE, START + MINUTE + HOUR)]


def test_after_a_death_nobody_served_since_its_last_beat(stage: Stage) -> None:
    first = stage.holder()
    stage.clock.pass_(30 * SECOND)
    first.heart.step()
    stage.holders.pop().die()
    stage.clock.pass_(HOUR)
    stage.holder()
    assert spans(stage) == [("died", START + 30 * SECOND, START + 30 * SECOND + HOUR)]


def test_after_a_restart_of_the_machine_that_is_the_cause_whether_the_last_had_left_or_not(stage: Stage) -> None:
    stage.holder()
    leave(stage)
    stage.clock.boot = "boot-2"
    stage.clock.civil += HOUR
    stage.holder()
    assert spans(stage) == [("boot", START, START + HOUR)]


def test_who_starts_beside_somebody_that_serves_tells_of_nothing(stage: Stage) -> None:
    stage.holder()
    stage.clock.pass_(30 * SECOND)
    stage.holder()
    leave(stage)
    stage.clock.pass_(30 * SECOND)
    stage.holder()
    assert told(stage) == []


def test_a_sleep_of_the_machine_is_told_once_by_whoever_wakes_first(stage: Stage) -> None:
    first, second = stage.holder(), stage.holder()
    first.step()
    second.step()
    stage.clock.sleep(8 * HOUR)
    first.step()
    stage.clock.pass_(2 * SECOND)
    second.step()
    assert spans(stage) == [("suspend", START, START + 8 * HOUR)]
    (one,) = told(stage)
    assert (one.details["for_s"], one.details["others"], one.holder) == (8 * 3600.0, 1, first.id)


@pytest.mark.parametrize("step", [HOUR, -HOUR])
def test_a_clock_that_was_set_is_told_with_its_way_and_opens_nothing_by_that(stage: Stage, step: timedelta) -> None:
    holder = stage.holder()
    holder.step()
    stage.clock.civil += step
    holder.step()
    (one,) = told(stage)
    assert (one.reason, one.details["step_s"]) == ("clock_step", step.total_seconds())
    assert stage.read().runs == []


def test_a_holder_that_stood_still_past_its_lease_says_so(stage: Stage) -> None:
    holder = stage.holder()
    holder.step()
    stage.clock.pass_(99 * SECOND)
    holder.step()
    assert told(stage) == []
    stage.clock.pass_(100 * SECOND)
    holder.step()
    assert spans(stage) == [("frozen", START + 99 * SECOND, START + 199 * SECOND)]


def test_a_holder_that_stood_still_before_its_first_round_says_so_too(stage: Stage) -> None:
    holder = stage.holder()
    stage.clock.pass_(100 * SECOND)
    holder.step()
    assert spans(stage) == [("frozen", START, START + 100 * SECOND)]


def test_recording_starts_nothing_and_clean_downtime_with_nothing_due_is_one_entry(stage: Stage) -> None:
    stage.add("later", "daily 23:00")
    until_idle(stage.holder())
    leave(stage)
    before = len(stage.read().entries)
    stage.clock.pass_(HOUR)
    holder = stage.holder()
    until_idle(holder)
    assert [entry.kind for entry in stage.read().entries[before:]] == ["outage"]
    assert stage.read().runs == []


def test_a_store_that_was_away_is_told_when_it_is_back_with_the_claims_that_it_undid(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.add("due", "every 1m")
    holder = stage.holder(slots=1)
    until_idle(holder)
    stage.clock.pass_(MINUTE)
    real = type(holder.store).write
    failing = iter([True])

    def write(self: object, *args: object, **kwargs: object) -> object:
        inner = real(self, *args, **kwargs)  # type: ignore[arg-type]

        class Failing:
            def __enter__(self) -> object:
                return inner.__enter__()

            def __exit__(self, *error: object) -> object:
                if error[0] is None and next(failing, False):
                    full = StoreAway("the disk is full")
                    inner.__exit__(type(full), full, None)
                    raise full
                return inner.__exit__(*error)  # type: ignore[arg-type]

        return Failing()

    monkeypatch.setattr(type(holder.store), "write", write)
    holder.step()
    assert stage.read().kinds() == ["defined"]
    assert stage.script.starts == []
    until_idle(holder)
    stage.script.wait_for_starts(1)
    kinds = stage.read().kinds()
    assert kinds.count("claimed") == 1
    (one,) = told(stage)
    assert (one.reason, one.details["claims_undone"], one.details["error"]) == ("store_away", 1, "the disk is full")
    (run,) = stage.read().runs
    assert run.attempt == 1


def test_what_an_outage_made_late_is_joined_to_it_by_task_with_its_reasons(stage: Stage) -> None:
    stage.add("hourly", "every 1h")
    stage.add("skips", "every 1h", on_missed="skip")
    stage.add("much-later", "daily 23:00")
    until_idle(stage.holder())
    leave(stage)
    stage.clock.pass_(3 * HOUR + 30 * MINUTE)
    until_idle(stage.holder())
    with stage.store.read() as session:
        (one,), following = outages(stage.store, session, since=None, cursor=None, most=10)
    assert following is None
    assert (one["cause"], one["missed"], one["caught_up"], one["interrupted"]) == ("stopped", 5, 1, 0)
    assert one["words"] == f"nobody served for 3h 30m after {one['details']['last'][-8:]} had been stopped"  # type: ignore[index]
    by_name = {task["task_name"]: task for task in one["tasks"]}  # type: ignore[attr-defined]
    assert by_name.keys() == {"hourly", "skips"}
    assert by_name["hourly"]["reasons"] == {"coalesced": 2}
    assert by_name["hourly"]["caught_up"] == 1
    assert by_name["skips"]["reasons"] == {"missed_skip": 3}
    assert by_name["skips"]["first_due_at"] == "2026-12-01T09:00:00Z"
    assert by_name["skips"]["last_due_at"] == "2026-12-01T11:00:00Z"


def test_each_of_two_outages_has_its_own_and_what_was_interrupted_is_counted(stage: Stage) -> None:
    stage.add("hourly", "every 1h", on_missed="skip")
    stage.add("long", "manual")
    until_idle(stage.holder())
    leave(stage)
    stage.clock.pass_(HOUR + 30 * MINUTE)
    second = stage.holder()
    until_idle(second)
    runs.run_now(stage.store, "long", by="test")
    until_idle(second)
    stage.script.wait_for_starts(1)
    stage.holders.remove(second)
    second.die()
    stage.clock.pass_(2 * HOUR)
    third = stage.holder()
    until_idle(third)
    wait_until(lambda: not third.step() and not len(third.holdings))
    with stage.store.read() as session:
        items, _ = outages(stage.store, session, since=None, cursor=None, most=10)
        page, following = outages(stage.store, session, since=None, cursor=None, most=1)
        rest, end = outages(stage.store, session, since=None, cursor=following, most=1)
    assert [(one["cause"], one["missed"], one["interrupted"]) for one in items] == [("died", 2, 1), ("stopped", 1, 0)]
    assert (page + rest, end) == (items, None)


def test_the_last_event_of_a_source_before_an_outage_is_named_for_its_sender(stage: Stage) -> None:
    stage.add("listens", "on ci.done")
    stage.add("deaf", "on never.came")
    until_idle(stage.holder())
    for number in (1, 2):
        stage.clock.pass_(MINUTE)
        events.emit(stage.store, "ci.done", key=f"k{number}", data="{}", by="test")
    stage.clock.pass_(MINUTE)
    leave(stage)
    stage.clock.pass_(HOUR)
    stage.holder()
    events.emit(stage.store, "ci.done", key="k3", data="{}", by="test")
    with stage.store.read() as session:
        (one,), _ = outages(stage.store, session, since=None, cursor=None, most=10)
    assert one["unknown"] == [
        {"source": "ci.done", "last_key": "k2", "last_at": "2026-12-01T08:02:00Z"},
        {"source": "never.came", "last_key": None, "last_at": None},
    ]


def test_while_nobody_serves_the_outage_that_goes_on_stands_in_front(stage: Stage) -> None:
    stage.holder()
    leave(stage)
    stage.clock.pass_(HOUR)
    with stage.store.read() as session:
        (one,), _ = outages(stage.store, session, since=None, cursor=None, most=10)
    assert (one["cause"], one["until"], one["for_s"], one["seq"]) == ("stopped", None, 3600.0, None)
    assert told(stage) == []
