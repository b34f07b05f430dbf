"""Holders and events: what Duly itself tells starts its listeners at once, whichever of its loops was the cause."""

import json
from datetime import timedelta

from holder_scene import WITHIN_S, Stage, until_idle

from duly.clock import monotonic_s
from duly.operations import events
from duly.operations import tasks as task_operations

HOUR = timedelta(hours=1)
KEEP = {"overlap": "queue", "queue": 100}


def names(stage: Stage) -> list[str]:
    return [one.task_name for one in stage.script.starts]


def test_an_event_from_elsewhere_starts_work_with_its_data(stage: Stage) -> None:
    stage.add("one", "on deploy where branch=main")
    holder = stage.holder()
    until_idle(holder)
    elsewhere = stage.open()
    events.emit(elsewhere, "deploy", by="eve", key="k1", data=' {"branch": "main"} ')
    until_idle(holder)
    stage.script.wait_for_starts(1)
    (start,) = stage.script.starts
    assert start.event is not None
    assert (start.event.source, start.event.key, start.event.body) == ("deploy", "k1", '{"branch": "main"}')
    assert start.occurrence == "event:deploy:k1"


def test_a_run_by_hand_or_by_time_has_no_event(stage: Stage) -> None:
    stage.add("one", "every 1h")
    holder = stage.holder()
    stage.clock.pass_(HOUR)
    until_idle(holder)
    stage.script.wait_for_starts(1)
    assert stage.script.starts[0].event is None


def test_a_turn_that_only_finds_something_missed_starts_who_listens_for_that_without_waiting(stage: Stage) -> None:
    stage.add("work", "every 1h", on_missed="skip")
    stage.add("watch", "on duly.missed where task=work")
    holder = stage.holder()
    until_idle(holder)
    stage.clock.pass_(3 * HOUR + HOUR / 2)
    until_idle(holder)
    stage.script.wait_for_starts(1)
    assert names(stage) == ["watch"]
    event = stage.script.starts[0].event
    assert event is not None
    assert json.loads(event.body)["count"] == 3


def test_the_death_of_a_holder_starts_who_listens_for_that(stage: Stage) -> None:
    stage.add("watch", "on duly.holder.ended")
    dead, alive = stage.holder(), stage.holder()
    until_idle(alive)
    dead.die()
    stage.holders.remove(dead)
    alive._next_sweep_s = 0.0
    until_idle(alive)
    stage.script.wait_for_starts(1)
    assert names(stage) == ["watch"]


def test_a_hold_whose_end_has_come_is_told(stage: Stage) -> None:
    stage.add("work", "every 1h")
    stage.add("watch", "on duly.task.unpaused where task=work")
    task_operations.pause(stage.store, "task", "work", until=stage.clock.now() + HOUR, note=None, by="ann")
    holder = stage.holder()
    until_idle(holder)
    stage.clock.pass_(HOUR)
    until_idle(holder)
    stage.script.wait_for_starts(1)
    assert "watch" in names(stage)


def test_an_end_starts_the_next_in_the_turn_after_it(stage: Stage) -> None:
    stage.add("first", "on go")
    stage.add("second", "on duly.run.ended where task=first and outcome=succeeded")
    holder = stage.holder()
    events.emit(stage.store, "go", by="eve")
    until_idle(holder)
    stage.script.wait_for_starts(1)
    stage.script.over.set()
    again = False
    until = monotonic_s() + WITHIN_S
    while len(stage.script.starts) < 2:
        again = holder.step(again=again)
        assert monotonic_s() < until
    assert names(stage) == ["first", "second"]
    through = stage.script.starts[1].event
    assert through is not None
    assert len(through.through) == 1
