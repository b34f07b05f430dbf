"""Who plans where zone data differ, and at which pace a holder catches up."""

from dataclasses import replace
from datetime import timedelta

import pytest
from holder_scene import START, Stage, until_idle
from test_holder_planning import settle_all

from duly import zones
from duly.clock import MICROSECOND
from duly.holder.presence import Presence
from duly.operations import tasks as edits
from duly.operations.audit import verify

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)


def other(stage: Stage, zone_data: str, *, state: str = "alive") -> str:
    """Enter another holder into the store, with these zone data and a beat of just now."""
    with stage.store.write() as session:
        (mine,) = session.holders.living()
        row = replace(mine, id="hld_other", zone_data=zone_data, state=state, beat_lease_us=session.lease_us)
        session.holders.insert(row)
    return row.id


def test_a_holder_leaves_planning_to_one_that_lives_with_newer_zone_data(stage: Stage) -> None:
    holder = stage.holder()
    stage.add("a", "every 1m")
    other(stage, "2999a")
    stage.clock.pass_(MINUTE)
    until_idle(holder)
    assert stage.read().runs == []
    assert holder.writer.soonest == stage.clock.now() + SECOND, "it asks again, and does not spin"
    assert holder.writer.look() is False


@pytest.mark.parametrize(
    ("version", "state"), [("2020a", "alive"), (None, "alive"), ("2999a", "draining"), ("2999a", "gone")]
)
def test_a_holder_plans_beside_one_with_older_or_the_same_data_and_one_that_is_leaving(
    stage: Stage, version: str | None, state: str
) -> None:
    holder = stage.holder()
    stage.add("a", "every 1m")
    other(stage, version or zones.zone_data_version(), state=state)
    stage.clock.pass_(MINUTE)
    until_idle(holder)
    assert len(stage.read().runs) == 1


def test_a_holder_plans_again_once_the_one_with_newer_data_is_silent_past_its_lease(stage: Stage) -> None:
    holder = stage.holder()
    stage.add("a", "every 1m")
    stage.clock.pass_(MINUTE)
    other(stage, "2999a")
    lease = timedelta(seconds=100)
    stage.clock.pass_(lease)
    until_idle(holder)
    assert stage.read().runs == []
    stage.clock.pass_(MICROSECOND)
    until_idle(holder)
    assert len(stage.read().runs) == 1


def test_a_holder_plans_at_once_where_the_one_with_newer_data_is_proven_dead(stage: Stage) -> None:
    holder = stage.holder()
    stage.add("a", "every 1m")
    dead = other(stage, "2999a")
    presence = Presence(stage.store.run_folder, dead)
    stage.clock.pass_(MINUTE)
    until_idle(holder)
    assert stage.read().runs == []
    presence.release()
    until_idle(holder)
    assert len(stage.read().runs) == 1


def starts(stage: Stage) -> list[float]:
    """How many seconds from now each waiting or held run may start."""
    now = stage.clock.now()
    return sorted((max(run.not_before, now) - now).total_seconds() for run in stage.read().runs if run.state != "ended")


def missed(stage: Stage, *names: str) -> None:
    for name in names:
        stage.add(name, "once in 1m")
    stage.clock.pass_(HOUR)


def test_catching_up_of_a_holder_that_is_alone_waits_and_then_starts_one_after_another(stage: Stage) -> None:
    stage.at_once = False
    missed(stage, *"abcde")
    holder = stage.holder(slots=8)
    until_idle(holder)
    assert starts(stage) == [10, 11, 12, 13, 14]
    assert {run.state for run in stage.read().runs} == {"waiting"}
    assert {run.opened_by for run in stage.read().runs} == {"catch_up"}
    for second in (10, 11, 12, 13, 14):
        stage.clock.pass_(START + HOUR + second * SECOND - stage.clock.now())
        until_idle(holder)
        assert sum(run.state == "held" for run in stage.read().runs) == second - 9
    assert verify(stage.store) == []


def test_work_that_needs_nothing_but_this_machine_is_caught_up_all_at_once(stage: Stage) -> None:
    missed(stage, *"abcde")
    holder = stage.holder(slots=8)
    until_idle(holder)
    assert [run.state for run in stage.read().runs] == ["held"] * 5


def test_beside_another_holder_there_is_no_delay_and_each_project_has_its_own_spacing(stage: Stage) -> None:
    first = stage.holder(slots=0)
    stage.at_once = False
    for name in "abc":
        stage.add(name, "once in 1m")
        stage.add(name, "once in 1m", project="second")
    stage.clock.pass_(HOUR)
    with stage.store.write() as session:
        session.holders.beat(first.id, now=session.now, lease_us=session.lease_us, claims=0, claims_lost=0)
    stage.kept = True
    late = stage.holder(slots=8)
    until_idle(late)
    assert starts(stage) == [0, 0, 1, 1, 2, 2]


def test_the_spacing_goes_on_over_the_turns_in_which_tasks_are_planned(stage: Stage) -> None:
    stage.at_once = False
    missed(stage, *(f"task {number}" for number in range(250)))
    holder = stage.holder(slots=1)
    until_idle(holder)
    assert starts(stage) == [10 + number for number in range(250)]


def test_what_is_punctual_is_neither_delayed_nor_spaced(stage: Stage) -> None:
    stage.at_once = False
    holder = stage.holder(slots=8)
    for name in "abcde":
        stage.add(name, "once in 1m")
    stage.clock.pass_(MINUTE)
    until_idle(holder)
    assert [run.state for run in stage.read().runs] == ["held"] * 5


def test_disabling_one_that_waits_for_its_turn_takes_it_out_with_an_entry(stage: Stage) -> None:
    stage.at_once = False
    missed(stage, "a", "b")
    holder = stage.holder()
    until_idle(holder)
    edits.disable(stage.store, "a", by="test")
    gone = next(run for run in stage.read().runs if run.state == "ended")
    assert (gone.outcome, gone.reason) == ("skipped", "disabled")
    assert [entry.reason for entry in stage.read().entries if entry.kind == "skipped"] == ["disabled"]
    stage.clock.pass_(11 * SECOND)
    until_idle(holder)
    assert sum(run.state == "held" for run in stage.read().runs) == 1
    assert verify(stage.store) == []


def test_max_age_ends_no_run_that_was_punctual_and_did_not_wait(stage: Stage) -> None:
    """Nothing could ever start under a max_age of nothing, if its own start were counted as a wait."""
    holder = stage.holder(slots=1)
    stage.add("a", "once in 1m", max_age=timedelta(0))
    stage.add("b", "once in 1m", max_age=timedelta(0))
    stage.clock.pass_(MINUTE + 2 * SECOND)
    until_idle(holder)
    assert sorted(run.state for run in stage.read().runs) == ["held", "waiting"]
    stage.script.over.set()
    stage.clock.pass_(SECOND)
    settle_all(stage, 2)
    assert sorted(str(run.reason) for run in stage.read().runs) == ["None", "stale"], "the other had to wait"


def test_what_is_caught_up_together_runs_one_after_another_and_none_is_skipped_for_another(stage: Stage) -> None:
    """By the default rule for taken seats all but the oldest would be skipped, each for its own sibling."""
    stage.add("a", "every 1h", on_missed="run_all", at_most=8, max_age=timedelta(days=2))
    stage.clock.pass_(9 * HOUR)
    holder = stage.holder()
    until_idle(holder)
    runs = stage.read().runs
    assert sorted(run.state for run in runs) == ["held", *["waiting"] * 8], "eight, and the one that is punctual"
    assert next(run.due_at for run in runs if run.state == "held") == START + HOUR, "the oldest first"
    stage.script.over.set()
    settle_all(stage, 9)
    assert {run.outcome for run in stage.read().runs} == {"succeeded"}
    assert verify(stage.store) == []


def test_a_queue_that_is_shorter_drops_nothing_of_what_is_caught_up(stage: Stage) -> None:
    stage.add("a", "every 1h", on_missed="run_all", at_most=8, max_age=timedelta(days=2), overlap="queue", queue=2)
    stage.clock.pass_(12 * HOUR + 10 * MINUTE)
    holder = stage.holder()
    until_idle(holder)
    assert sorted(run.state for run in stage.read().runs) == ["held", *["waiting"] * 7]


def test_a_newer_occurrence_while_that_goes_on_is_judged_by_the_tasks_own_rule(stage: Stage) -> None:
    stage.add("a", "every 1h", on_missed="run_all", at_most=2)
    stage.clock.pass_(3 * HOUR + 10 * MINUTE)
    holder = stage.holder()
    until_idle(holder)
    stage.clock.pass_(50 * MINUTE)
    until_idle(holder)
    runs = sorted(stage.read().runs, key=lambda run: run.due_at)
    assert [(run.state, run.reason) for run in runs] == [
        ("held", None),
        ("waiting", None),
        ("ended", "already_running"),
    ]
