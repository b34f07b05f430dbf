"""`retry`: an ended run done again by hand, in a run of its own."""

from pathlib import Path
from typing import Any

import pytest
from store_offers import only, refused
from store_people import by_hand, switch
from store_scene import DAY, HOUR, MINUTE, NINE, SUCCEEDED, Scene, definition, hourly, scene

from duly.core.definition_json import definition_to_json
from duly.core.run import Run
from duly.holder.settling import Interrupted
from duly.operations import retry as again
from duly.operations import runs as asks
from duly.ports import Outcome
from duly.store.rows import dump

FAILED = Outcome(word="failed", reason="exit_status", exit_code=3)


def retry(s: Scene, run: Run, *, queue: bool = False, anyway: bool = False) -> Run:
    return again.retry(s.store, run.id, by="bob", queue=queue, anyway=anyway)


def failed(s: Scene, **rules: Any) -> Run:
    won = s.held("one", **rules)
    s.settle(won, FAILED)
    return s.run(won.run.id)


def test_a_retry_has_the_due_instant_and_the_input_of_its_run_and_names_it(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.add("one", hourly())
        first = asks.run_now(s.store, "one", by="ann", input_="a\nb", args=("--deep", "x"), key="k")
        s.settle(s.claim()[0], FAILED)
        s.at(NINE + 3 * DAY)
        run = retry(s, first)
        assert (run.due_at, run.input, run.args, run.retry_of) == (NINE, "a\nb", ("--deep", "x"), first.id)
        assert (run.opened_by, run.opened_by_whom, run.state) == ("manual", "bob", "waiting")
        assert run.occurrence != first.occurrence
        (told,) = [one for one in s.entries() if one.run == run.id]
        assert (told.kind, told.reason, told.by, told.details) == ("opened", "manual", "bob", {"retry_of": first.id})
        (won,) = s.claim()
        s.settle(won, SUCCEEDED)
        assert s.run(run.id).outcome == "succeeded"
        assert s.run(first.id).outcome == "failed", "what was stays as it was"
        assert retry(s, first).id != run.id, "each ask is new"
        s.plan()
        assert s.faults() == []


def test_a_retry_is_performed_by_the_definition_of_its_run_not_by_the_one_in_force(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        run = failed(s)
        newer = definition("one", hourly(), enabled=True)
        s.sql("UPDATE tasks SET definition_version = 2 WHERE id = ?", run.task)
        s.sql(
            "INSERT INTO definitions (task, version, from_us, era_from_us, definition) "
            "SELECT task, 2, from_us, era_from_us, ? FROM definitions",
            dump(definition_to_json(newer)).replace('"true"', '"newer"'),
        )
        s.sql("UPDATE tasks SET definition = (SELECT definition FROM definitions WHERE version = 2)")
        opened = retry(s, run)
        (won,) = s.claim()
        assert (won.run.id, won.run.definition_version) == (opened.id, 1)
        assert won.definition.action["argv"] == ("true",)
        s.settle(won)
        by_hand(s)
        (won,) = s.claim()
        assert (won.run.definition_version, won.definition.action["argv"]) == (2, ("newer",))


def test_a_run_that_has_not_ended_is_refused_with_how_it_stands(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.add("one", hourly())
        waiting = by_hand(s)
        no = refused(lambda: retry(s, waiting))
        assert (no.reason, no.details["state"]) == ("already_waiting", "waiting")
        (won,) = s.claim()
        no = refused(lambda: retry(s, won.run))
        assert (no.reason, no.details["holder"]) == ("already_running", "hld_a")
        assert len(s.runs()) == 1


def test_a_retry_beside_a_live_run_is_refused_with_its_holder_or_waits_where_asked(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        first = failed(s)
        s.at(NINE + 2 * HOUR)
        s.plan()
        (live,) = s.claim()
        no = refused(lambda: retry(s, first))
        assert (no.reason, no.details["run"]) == ("already_running", live.run.id)
        run = retry(s, first, queue=True)
        assert s.claim() == []
        s.settle(live)
        assert [won.run.id for won in s.claim()] == [run.id]
        assert s.faults() == []


def test_a_paused_task_is_retried_only_anyway_and_a_removed_one_never(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        run = failed(s)
        switch(s, "pause")
        assert refused(lambda: retry(s, run)).reason == "paused"
        assert [won.run.id for won in s.claim()] == []
        opened = retry(s, run, anyway=True)
        (won,) = s.claim()
        assert won.run.id == opened.id
        s.settle(won)
        switch(s, "remove")
        assert refused(lambda: retry(s, run)).reason == "unknown_task"


def test_a_run_whose_definition_is_gone_or_reads_no_longer_is_refused_with_its_version(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        run = failed(s)
        s.sql("UPDATE definitions SET definition = '{}'")
        no = refused(lambda: retry(s, run))
        assert (no.reason, no.details["version"]) == ("invalid", 1)
        s.sql("DELETE FROM definitions")
        assert "it is not kept any more" in refused(lambda: retry(s, run)).message
        assert refused(lambda: again.retry(s.store, "run_zzz", by="bob")).reason == "unknown_run"


def test_a_skipped_run_and_a_retry_itself_may_be_done_again(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.held("one")
        s.at(NINE + 2 * HOUR)
        s.plan()
        assert s.claim() == []
        skipped = s.runs()[-1]
        assert skipped.reason == "already_running"
        run = retry(s, skipped, queue=True)
        assert run.due_at == NINE + 2 * HOUR
        asks.cancel(s.store, run.id, by="ann")
        second = retry(s, s.run(run.id), queue=True)
        assert (second.retry_of, second.due_at) == (run.id, NINE + 2 * HOUR)


def test_a_retry_answers_the_offer_to_go_on_with_its_run(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        won = s.held("one", on_interrupt="retry", on_missed="offer", max_age=DAY)
        s.at(s.clock.moment + HOUR - MINUTE)
        s.settle(won, Interrupted(why="holder_died", ended_at=NINE + HOUR))
        assert only(s).state == "open"
        run = retry(s, s.run(won.run.id))
        assert (only(s).state, only(s).run, only(s).decided_by) == ("accepted", run.id, "bob")
        s.settle(s.claim()[0])
        s.plan()
        assert s.faults() == []


@pytest.mark.parametrize("rule", ["run", "skip"])
def test_no_policy_and_no_age_is_asked_of_a_retry(tmp_path: Path, rule: str) -> None:
    with scene(tmp_path) as s:
        run = failed(s, on_missed=rule, max_age=MINUTE)
        s.at(NINE + 40 * DAY)
        opened = retry(s, run)
        assert [won.run.id for won in s.claim()] == [opened.id]
