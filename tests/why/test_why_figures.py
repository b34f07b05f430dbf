"""The figures in a sentence are those that the house writes: each reason as its own road brings it about."""

from datetime import timedelta
from typing import Any

from why_scene import Stage

from duly.core.gating import not_now
from duly.core.sentences import NO_START, Templates
from duly.operations import tasks
from duly.store.switches import move

AT = "2026-12-01T10:00:00Z"


def told(stage: Stage, name: str, at: str) -> Any:
    return stage.json("why", name, "--at", at)


def is_of(template: str, said: str) -> bool:
    """Whether a sentence was made from a template: its fixed words are all there, in their order."""
    import re

    return re.fullmatch(".+".join(re.escape(part) for part in re.split(r"{\w+}", template)), said) is not None


def fullest(templates: Templates, said: str) -> bool:
    return is_of(templates[0], said)


def test_the_oldest_of_a_full_queue_names_the_queue_and_for_whom_it_made_room(stage: Stage) -> None:
    stage.add("sync", "0 * * * *", overlap="queue", queue=1)
    hand = stage.serve()
    for hour in (9, 10, 11, 12):
        stage.at(f"2026-12-01 {hour:02d}:00")
        hand.turn()
        _trim(stage, "sync")
    found = told(stage, "sync", AT)
    assert (found["fate"], found["reason"]) == ("skipped", "queue_full")
    assert fullest(NO_START["queue_full"], found["because"]), found["because"]
    assert found["rule"] == {"name": "queue", "value": 1, "own": True, "whose": "own"}


def test_a_run_that_a_newer_one_replaces_names_it(stage: Stage) -> None:
    stage.add("sync", "0 * * * *", overlap="cancel_running")
    hand = stage.serve()
    for hour in (9, 10, 11):
        stage.at(f"2026-12-01 {hour:02d}:00")
        hand.turn()
        _trim(stage, "sync")
    found = told(stage, "sync", AT)
    assert (found["fate"], found["reason"]) == ("skipped", "superseded")
    assert fullest(NO_START["superseded"], found["because"]), found["because"]


def test_a_run_that_gave_its_seat_to_a_newer_one_names_it(stage: Stage) -> None:
    stage.add("sync", "0 * * * *", overlap="cancel_running")
    hand = stage.serve()
    stage.at("2026-12-01 09:00")
    (run,) = hand.turn()
    stage.at("2026-12-01 10:00")
    hand.turn()
    stage.settle(run, "cancelled", reason="overlap")
    found = told(stage, "sync", "2026-12-01T09:00:00Z")
    newer = told(stage, "sync", AT)["run"]["id"]
    assert (found["fate"], found["reason"], found["figures"]["newer"]) == ("cancelled", "overlap", newer)
    assert "took its seat, and overlap is cancel_running" in found["answer"]


def test_a_gate_that_did_not_open_is_told_in_its_own_words(stage: Stage) -> None:
    stage.add("sync", "0 * * * *")
    hand = stage.serve()
    stage.at("2026-12-01 10:00")
    (run,) = hand.turn()
    with stage.store.write() as session:
        held = session.runs.by_id(run.id)
        assert held is not None
        step = not_now(
            held, now=session.now, reason="gate_closed", told="the gate said not now (exit status 75)", details={}
        )
        assert move(session, [step])
    found = told(stage, "sync", AT)
    assert (found["fate"], found["because"]) == ("skipped", "the gate said not now (exit status 75)")
    assert found["rule"]["name"] == "gate"


def test_what_waits_when_its_task_is_paused_disabled_or_removed_names_who_did_it(stage: Stage) -> None:
    for name in ("one", "two", "three"):
        stage.add(name, "0 * * * *", needs=("gpu",))
    removed = stage.add("four", "0 * * * *", needs=("gpu",))
    hand = stage.serve()
    stage.at("2026-12-01 10:00")
    hand.plan()
    stage.later(minutes=1)
    tasks.pause(stage.store, "task", "one", until=None, note="full disk", by="ben")
    tasks.disable(stage.store, "two", by="cleo")
    tasks.remove(stage.store, "four", by="dan")
    assert "it was paused by ben since" in told(stage, "one", AT)["because"]
    assert "full disk" in told(stage, "one", AT)["because"]
    assert "cleo disabled it" in told(stage, "two", AT)["because"]
    assert told(stage, "three", AT)["fate"] == "waiting"
    assert told(stage, "three", AT)["waiting_for"]["what"] == "label"
    assert "dan removed the task" in told(stage, removed.id, AT)["because"]


def test_what_waits_when_the_schedule_changes_names_who_changed_it_and_the_version(stage: Stage) -> None:
    from duly.operations.edits import edit

    stage.add("sync", "0 * * * *", needs=("gpu",))
    hand = stage.serve()
    stage.at("2026-12-01 10:00")
    hand.plan()
    stage.later(minutes=10)
    edit(stage.store, "sync", {"triggers": ["30 * * * *"]}, by="ben")
    found = told(stage, "sync", AT)
    assert (found["fate"], found["reason"], found["definition_version"]) == ("skipped", "schedule_changed", 1)
    assert found["because"] == "ben changed its schedule (version 2) before it started"


def test_an_event_that_did_not_start_its_task_is_told_with_the_end_of_its_throttle(stage: Stage) -> None:
    from duly.operations.events import emit

    stage.add("deploy", "on git.push throttle 10m")
    hand = stage.serve()
    stage.at("2026-12-01 10:00")
    emit(stage.store, "git.push", by="anna")
    (run,) = hand.turn()
    stage.later(seconds=30)
    stage.settle(run)
    stage.at("2026-12-01 10:04:07.250")
    emit(stage.store, "git.push", by="ben")
    stage.at("2026-12-01 11:00")
    opened = told(stage, "deploy", AT)
    assert (opened["fate"], opened["due"], opened["run"]["opened_by"]) == ("succeeded", True, "event")
    found = told(stage, "deploy", "2026-12-01T10:04:07Z")
    assert (found["fate"], found["reason"]) == ("not_opened", "suppressed")
    assert fullest(NO_START["suppressed"], found["because"]), found["because"]
    assert "deploy heard an event of git.push, and was not opened: throttled until" in found["answer"]
    assert told(stage, "deploy", "2026-12-01T10:05:00Z")["reason"] == "event", "nothing was heard then"
    now = stage.json("why", "deploy")
    assert (now["fate"], now["reason"], now["upcoming"]) == ("not_opened", "suppressed", None)
    (item,) = stage.json("why", "deploy", "--since", "1d")["items"]
    assert (item["reason"], item["due_at"]) == ("suppressed", "2026-12-01T10:04:07.250000Z")


def test_an_event_while_a_task_is_paused_names_who_paused_it(stage: Stage) -> None:
    from duly.operations.events import emit

    stage.add("deploy", "on git.push")
    stage.at("2026-12-01 09:00")
    tasks.pause(stage.store, "task", "deploy", until=None, note="release freeze", by="ben")
    stage.at("2026-12-01 10:00")
    emit(stage.store, "git.push", by="anna")
    stage.later(minutes=1)
    found = told(stage, "deploy", AT)
    assert (found["fate"], found["reason"]) == ("not_opened", "paused")
    assert "it was paused by ben since" in found["answer"]


def test_a_run_that_waited_too_long_names_its_lateness_and_max_age(stage: Stage) -> None:
    stage.add("sync", "0 10 1 12 *", needs=("gpu",), max_age=timedelta(hours=2))
    hand = stage.serve()
    stage.at("2026-12-01 09:00")
    hand.plan()
    stage.at("2026-12-01 12:00")
    stage.serve("web2", 977, labels=("gpu",)).turn()
    found = told(stage, "sync", "2026-12-01T09:00:00Z")
    assert found["because"] == "it waited until it was 3h late, more than its max_age of 2h"


def test_late_fates_name_lateness_grace_and_the_rule(stage: Stage) -> None:
    for policy in ("run", "skip", "offer", "run_all"):
        more: dict[str, Any] = {"at_most": 1} if policy == "run_all" else {}
        stage.add(policy, "0 * * * *", on_missed=policy, grace=timedelta(minutes=2), **more)
    hand = stage.serve()
    stage.at("2026-12-01 14:30")
    hand.turn()
    says = {policy: told(stage, policy, "2026-12-01T11:00:00Z") for policy in ("run", "skip", "offer", "run_all")}
    assert {policy: one["reason"] for policy, one in says.items()} == {
        "run": "coalesced",
        "skip": "missed_skip",
        "offer": "missed_offer",
        "run_all": "too_many",
    }
    for one in says.values():
        assert "found 3h 30m late" in one["because"]
        assert "2m" in one["because"]
        assert one["figures"]["late_by_s"] == 12_600
        assert one["figures"]["grace_s"] == 120
        assert fullest(NO_START[one["reason"]], one["because"]), one["because"]


def _trim(stage: Stage, name: str) -> None:
    """As the writer does after each turn's openings."""
    from duly.operations.lookup import find_task
    from duly.store.queueing import trim

    with stage.store.write() as session:
        trim(session, find_task(session, name))
