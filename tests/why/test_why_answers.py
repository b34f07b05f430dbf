"""What why says of tasks and runs, beyond its screens: versions, switches, holders, words that mean nothing."""

import pytest
from why_scene import Stage, instant

from by_hand import by_hand
from duly.operations import tasks

FIELDS = [
    "subject",
    "answer",
    "now",
    "asked_at",
    "at",
    "local",
    "offset",
    "zone",
    "due",
    "fate",
    "reason",
    "because",
    "rule",
    "figures",
    "definition_version",
    "definition",
    "triggers",
    "previous_due_at",
    "next_due_at",
    "previous",
    "start_at",
    "noticed_at",
    "noticed_by",
    "outage",
    "run",
    "missed",
    "stretch",
    "waiting_for",
    "held_by",
    "pauses",
    "troubles",
    "beside",
    "story",
    "upcoming",
]


def call(stage: Stage, *args: str) -> tuple[int, str, str]:
    """Call the command line; gives exit code and both streams."""
    import io
    import sys

    from duly.cli.frame import run

    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        code = run(args)
    return code, out.getvalue(), err.getvalue()


def test_every_answer_has_the_same_fields(stage: Stage) -> None:
    stage.add("backup", "daily 03:00")
    hand = stage.serve()
    never = stage.json("why", "backup")
    stage.at("2026-12-02 02:00")
    run = stage.turn_and_end(hand)
    answers = [
        never,
        stage.json("why", "backup"),
        stage.json("why", "backup", "--at", "now"),
        stage.json("why", "backup", "--at", "+7d"),
        stage.json("why", "backup", "--at", "2020-01-01T00:00:00Z"),
        stage.json("why", run.id),
        stage.json("why", run.id, "--at", "2026-12-02T02:00:05Z"),
    ]
    for answer in answers:
        assert list(answer) == FIELDS
    assert (never["fate"], never["at"], never["upcoming"]["fate"]) == ("never_due", None, "would_start")
    assert answers[1]["upcoming"]["at"] == answers[1]["next_due_at"] == "2026-12-03T02:00:00Z"


def test_unknown_words_are_exit_4_and_nothing_else_is_said(stage: Stage) -> None:
    for word in ("nobody", "run_0123456789abcdefghjkmnpqrs"):
        code, out, err = call(stage, "why", word)
        assert (code, out) == (4, "")
        assert "no" in err
    stage.add("backup", "daily 03:00")
    code, _, err = call(stage, "why", "bakup", "--json")
    assert code == 4
    assert "backup" in err


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("--at", "now", "--since", "1d"), "one of the two"),
        (("--at", "yesterday"), "is not an instant"),
        (("--since", "7"), "is not an instant"),
        (("--at", "2026-02-30 09:00"), "does not exist"),
        (("--at", "now", "--zone", "Berlin"), "not the name of a zone"),
    ],
)
def test_bad_input_is_exit_2_and_says_what_to_write(stage: Stage, args: tuple[str, ...], says: str) -> None:
    stage.add("backup", "daily 03:00")
    code, out, err = call(stage, "why", "backup", *args)
    assert (code, out) == (2, "")
    assert says in err


def test_since_asks_about_a_task_and_not_about_a_run(stage: Stage) -> None:
    stage.add("backup", "daily 03:00")
    hand = stage.serve()
    stage.at("2026-12-02 02:00")
    run = stage.turn_and_end(hand)
    code, _, err = call(stage, "why", run.id, "--since", "1d")
    assert code == 2
    assert "a run has one instant" in err


def test_a_local_time_that_never_comes_is_said_to_have_moved(stage: Stage) -> None:
    stage.add("backup", "daily 02:30")
    code, _, err = call(stage, "why", "backup", "--at", "2027-03-28 02:30")
    assert code == 0
    assert "2027-03-28 02:30 does not come on the wall of Europe/Berlin: 2027-03-28 03:00 was asked about" in err


def test_a_local_time_meant_on_the_tasks_own_wall_is_pointed_out(stage: Stage) -> None:
    stage.add("report", "daily 09:00", zone_name="America/New_York")
    _, out, err = call(stage, "why", "report", "--at", "2026-12-04 09:00")
    assert "is not due then" in out
    assert "2026-12-04 09:00 is due on the task's own wall: --zone America/New_York" in err
    _, out, err = call(stage, "why", "report", "--at", "2026-12-04 09:00", "--zone", "America/New_York")
    assert "will be due" in out
    assert "own wall" not in err


def test_an_instant_is_judged_by_the_definition_of_its_time(stage: Stage) -> None:
    from duly.operations.edits import edit

    stage.add("backup", "daily 03:00")
    hand = stage.serve()
    stage.at("2026-12-02 02:00")
    stage.turn_and_end(hand)
    stage.at("2026-12-02 09:00")
    edit(stage.store, "backup", {"triggers": ["daily 12:00"]}, by="ben")
    stage.at("2026-12-03 12:00")
    old = stage.json("why", "backup", "--at", "2026-12-02T02:00:00Z")
    assert (old["due"], old["definition_version"]) == (True, 1)
    assert (old["previous_due_at"], old["next_due_at"]) == (None, "2026-12-02T11:00:00Z"), "over the change of rules"
    assert old["definition"]["until"] == "2026-12-02T09:00:00Z"
    before = stage.json("why", "backup", "--at", "2026-12-01T11:00:00Z")
    assert (before["due"], before["definition_version"], before["reason"]) == (False, 1, "no_match")
    after = stage.json("why", "backup", "--at", "2026-12-03T02:00:00Z")
    assert (after["due"], after["definition_version"], after["reason"]) == (False, 2, "no_match")
    assert after["previous_due_at"] == "2026-12-02T11:00:00Z"
    assert (old["definition"]["by"], after["definition"]["by"]) == ("anna", "ben")


def test_the_instant_of_an_edit_itself_still_belongs_to_the_version_before(stage: Stage) -> None:
    from duly.operations.edits import edit

    stage.add("sync", "0 * * * *")
    hand = stage.serve()
    stage.at("2026-12-01 10:00")
    hand.turn()
    edit(stage.store, "sync", {"triggers": ["30 * * * *"]}, by="ben")
    stage.at("2026-12-01 11:00")
    at_it = stage.json("why", "sync", "--at", "2026-12-01T10:00:00Z")
    assert (at_it["due"], at_it["definition_version"]) == (True, 1)
    assert stage.json("why", "sync", "--at", "2026-12-01T10:00:01Z")["definition_version"] == 2


def test_pauses_of_task_project_and_store_are_told_as_they_stood(stage: Stage) -> None:
    stage.add("sync", "0 * * * *")
    stage.serve()
    tasks.pause(stage.store, "task", "sync", until=None, note="a", by="anna")
    stage.at("2026-12-01 10:00")
    tasks.pause(stage.store, "project", "default", until=instant("2026-12-01 12:30"), note="b", by="ben")
    stage.at("2026-12-01 11:30")
    tasks.unpause(stage.store, "task", "sync", by="anna")
    stage.at("2026-12-01 15:00")
    tasks.pause(stage.store, "store", "", until=None, note="c", by="cleo")
    tasks.unpause(stage.store, "store", "", by="cleo")

    def notes(at: str) -> list[str]:
        return [hold["note"] for hold in stage.json("why", "sync", "--at", at)["pauses"]]

    assert notes("2026-12-01T07:59:00Z") == []
    assert notes("2026-12-01T09:00:00Z") == ["a"]
    assert notes("2026-12-01T11:00:00Z") == ["a", "b"]
    assert notes("2026-12-01T12:00:00Z") == ["b"]
    assert notes("2026-12-01T13:00:00Z") == [], "the pause of the project has ended by itself"
    hold = stage.json("why", "sync", "--at", "2026-12-01T09:00:00Z")["pauses"][0]
    assert (hold["since"], hold["ended_at"], hold["by"]) == ("2026-12-01T08:00:00Z", "2026-12-01T11:30:00Z", "anna")


def test_a_pause_asked_for_again_keeps_its_beginning_and_has_its_newest_note(stage: Stage) -> None:
    stage.add("sync", "0 * * * *")
    tasks.pause(stage.store, "task", "sync", until=None, note="first", by="anna")
    stage.at("2026-12-01 09:30")
    tasks.pause(stage.store, "task", "sync", until=None, note="second", by="ben")
    stage.at("2026-12-01 12:00")
    (hold,) = stage.json("why", "sync", "--at", "2026-12-01T10:00:00Z")["pauses"]
    assert (hold["since"], hold["note"]) == ("2026-12-01T08:00:00Z", "second")
    (hold,) = stage.json("why", "sync", "--at", "2026-12-01T09:00:00Z")["pauses"]
    assert hold["note"] == "first"


def test_a_run_is_told_as_it_stood_at_an_instant(stage: Stage) -> None:
    stage.add("backup", "daily 03:00")
    hand = stage.serve()
    stage.at("2026-12-02 02:00:01")
    hand.plan()
    stage.at("2026-12-02 02:00:05")
    (run,) = hand.turn()
    stage.at("2026-12-02 02:00:30")
    stage.settle(run)
    stage.at("2026-12-02 08:00")

    def fate(at: str) -> str:
        return str(stage.json("why", run.id, "--at", at)["fate"])

    assert fate("2026-12-02T02:00:00Z") == "not_due"
    assert fate("2026-12-02T02:00:03Z") == "waiting"
    assert fate("2026-12-02T02:00:10Z") == "running"
    assert fate("2026-12-02T02:00:31Z") == "succeeded"
    story = stage.json("why", run.id, "--at", "2026-12-02T02:00:10Z")["story"]
    assert [entry["kind"] for entry in story] == ["opened", "claimed"], "nothing of what came later"


def test_who_holds_a_run_is_named_with_its_lease_and_whether_it_lives(stage: Stage) -> None:
    stage.add("backup", "daily 03:00")
    hand = stage.serve("web2", 977)
    stage.at("2026-12-02 02:00")
    (run,) = hand.turn()
    stage.later(seconds=30)
    held = stage.json("why", "backup")["held_by"]
    assert (held["holder"], held["host"], held["pid"], held["alive"]) == (hand.id, "web2", 977, True)
    assert (held["fence"], held["seat"], held["lease_ends_at"]) == (1, 1, "2026-12-02T02:01:40Z")
    stage.die(hand)
    screen = stage.call("why", run.id)
    assert stage.json("why", run.id)["held_by"]["alive"] is False
    assert "which is dead" in screen


def test_a_run_of_another_boot_has_no_lease_left(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.add("backup", "daily 03:00")
    hand = stage.serve()
    stage.at("2026-12-02 02:00")
    (run,) = hand.turn()
    monkeypatch.setattr("duly.clock.boot_id", lambda: "boot-2")
    assert stage.json("why", run.id)["held_by"]["lease_ends_at"] is None


def test_a_removed_task_is_still_explained_by_its_id(stage: Stage) -> None:
    task = stage.add("sync", "0 * * * *")
    hand = stage.serve()
    stage.at("2026-12-01 09:00")
    stage.turn_and_end(hand)
    stage.at("2026-12-01 09:30")
    tasks.remove(stage.store, "sync", by="ben")
    stage.at("2026-12-01 12:00")
    assert stage.json("why", task.id, "--at", "2026-12-01T09:00:00Z")["fate"] == "succeeded"
    gone = stage.json("why", task.id, "--at", "2026-12-01T10:00:00Z")
    assert (gone["due"], gone["reason"]) == (False, "after_removal")
    assert "ben removed it" in gone["answer"]
    now = stage.json("why", task.id)
    assert [trouble["what"] for trouble in now["troubles"]] == ["removed"]
    assert (now["next_due_at"], now["upcoming"]) == (None, None)
    assert call(stage, "why", "sync")[0] == 4, "its name is free for another"


def test_a_definition_that_does_not_read_is_told_as_such_and_old_runs_are_told_all_the_same(stage: Stage) -> None:
    stage.add("sync", "0 * * * *")
    hand = stage.serve()
    stage.at("2026-12-01 09:00")
    stage.turn_and_end(hand)
    with stage.store.write() as session:
        for table in ("tasks", "definitions"):
            by_hand(session.line, f"UPDATE {table} SET definition = replace(definition, '0 * * * *', '0 * * * 99')")
    broken = stage.json("why", "sync")
    assert [trouble["what"] for trouble in broken["troubles"]] == ["broken"]
    assert "does not start now" in broken["answer"]
    assert stage.json("why", "sync", "--at", "2026-12-01T09:00:00Z")["fate"] == "succeeded"
    other = stage.json("why", "sync", "--at", "2026-12-01T09:10:00Z")
    assert (other["due"], other["fate"], other["reason"]) == (None, "unknown", "unreadable")


def test_a_task_by_hand_tells_of_its_newest_run_and_one_that_never_ran_says_so(stage: Stage) -> None:
    from duly.operations.runs import run_now

    stage.add("deploy", "manual")
    hand = stage.serve()
    assert stage.json("why", "deploy")["fate"] == "never_due"
    assert stage.json("why", "deploy", "--at", "now")["reason"] == "before_task"
    stage.later(minutes=1)
    assert stage.json("why", "deploy", "--at", "now")["reason"] == "by_hand"
    run_now(stage.store, "deploy", by="anna")
    (run,) = hand.turn()
    stage.later(seconds=5)
    stage.settle(run, "failed", reason="exit_status", exit_code=2)
    found = stage.json("why", "deploy")
    assert (found["fate"], found["reason"], found["run"]["id"]) == ("failed", "exit_status", run.id)
    assert "exit status 2" in found["answer"]
