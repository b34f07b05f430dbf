"""Runs that were too late to be tried again unasked: offered, and gone on with when a person says so."""

from pathlib import Path
from typing import Any

from store_offers import accept, decline, only, refused
from store_people import switch
from store_scene import DAY, HOUR, MINUTE, NINE, Scene, scene

from duly.core.run import Missed, Run
from duly.holder.settling import Interrupted


def cut_off(s: Scene, **rules: Any) -> tuple[Missed, Run]:
    """A run whose holder died, found an hour later by a holder that may not try it again unasked."""
    won = s.held("one", on_interrupt="retry", on_missed="offer", **rules)
    s.at(s.clock.moment + HOUR - MINUTE)
    s.settle(won, Interrupted(why="holder_died", ended_at=NINE + HOUR))
    return only(s), s.run(won.run.id)


def test_a_run_too_late_to_be_tried_again_is_offered_and_accepting_goes_on_with_it(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        one, run = cut_off(s, max_age=DAY)
        assert (run.state, run.outcome, run.reason) == ("ended", "abandoned", "missed_offer")
        assert (one.state, one.run, one.reason, one.count) == ("open", run.id, "missed_offer", 1)
        assert s.task(run.task).runs == 1
        assert s.task(run.task).failures_in_a_row == 1
        done = accept(s, one)
        stands = s.run(run.id)
        assert done.run == stands
        assert (stands.state, stands.outcome, stands.reason, stands.attempt) == ("waiting", None, None, 1)
        assert (stands.opened_by, stands.opened_by_whom, stands.occurrence) == ("offer", "bob", run.occurrence)
        assert s.faults() == []
        s.at(s.clock.moment + 3 * DAY)
        (won,) = s.claim(holder="hld_b")
        assert (won.run.id, won.run.attempt) == (run.id, 2), "however late it is now"
        assert won.run.fence > run.fence
        s.settle(won, holder="hld_b")
        assert s.run(run.id).outcome == "succeeded"
        task = s.task(run.task)
        assert (task.runs, task.failures_in_a_row) == (1, 0), "one run is one run"
        assert refused(lambda: accept(s, one)).reason == "already_answered"
        s.plan()
        assert s.faults() == []


def test_a_declined_offer_leaves_its_run_as_it_ended(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        one, run = cut_off(s, max_age=DAY)
        decline(s, one, note="too late")
        assert s.run(run.id) == run
        assert s.faults() == []


def test_a_run_that_goes_on_is_performed_by_the_definition_it_began_with(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        one, run = cut_off(s, max_age=DAY)
        s.sql("UPDATE tasks SET definition_version = 2 WHERE id = ?", run.task)
        s.sql(
            "INSERT INTO definitions (task, version, from_us, era_from_us, definition) "
            "SELECT task, 2, from_us, era_from_us, definition FROM definitions"
        )
        accept(s, one)
        (won,) = s.claim()
        assert won.run.definition_version == 1


def test_a_run_that_goes_on_ends_with_its_last_attempts_outcome_when_its_task_is_removed(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        one, run = cut_off(s, max_age=DAY)
        accept(s, one)
        switch(s, "remove")
        stands = s.run(run.id)
        assert stands.state == "ended"
        assert s.faults() == []
