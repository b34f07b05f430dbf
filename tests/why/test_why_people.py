"""What why says of people's doings, of what is over, and of who serves."""

from datetime import timedelta

from why_scene import Stage, instant

from by_hand import by_hand
from duly.core import lifecycle
from duly.store.switches import move


def test_runs_by_hand_beside_an_instant_are_named(stage: Stage) -> None:
    from duly.operations.runs import run_now

    stage.add("backup", "daily 03:00")
    hand = stage.serve()
    stage.at("2026-12-02 01:50")
    by_hand = run_now(stage.store, "backup", by="anna")
    hand.turn()
    stage.at("2026-12-02 02:00")
    hand.turn()
    stage.at("2026-12-02 02:10")
    stage.settle(by_hand)
    found = stage.json("why", "backup", "--at", "2026-12-02T02:00:00Z")
    assert (found["fate"], found["reason"], found["figures"]["run"]) == ("skipped", "already_running", by_hand.id)
    assert found["figures"]["had_for_s"] == 600
    assert [one["run"] for one in found["beside"]] == [by_hand.id]
    between = stage.json("why", "backup", "--at", "2026-12-02T01:55:00Z")
    assert (between["due"], [one["opened_by"] for one in between["beside"]]) == (False, ["manual"])


def test_a_cancelled_run_says_by_whom(stage: Stage) -> None:
    stage.add("backup", "daily 03:00")
    hand = stage.serve()
    stage.at("2026-12-02 02:00")
    (run,) = hand.turn()
    with stage.store.write() as session:
        held = session.runs.by_id(run.id)
        assert held is not None
        move(session, [lifecycle.ask_cancel(held, by="ben", now=session.now)])
    running = stage.call("why", run.id)
    assert "cancel   asked now by ben" in running
    stage.settle(run, "cancelled", reason="cancelled_by_hand")
    assert "was cancelled: ben cancelled it at" in stage.json("why", run.id)["answer"]


def test_skipping_beforehand_is_seen_ahead_and_counted_once_afterwards(stage: Stage) -> None:
    from duly.operations.skipping import BEFORE, Ask, skip

    stage.add("backup", "daily 03:00")
    hand = stage.serve()
    skip(stage.store, "backup", Ask(what=BEFORE, at=instant("2026-12-02 12:00")), by="ben", note="maintenance")
    found = stage.json("why", "backup", "--at", "2026-12-02T02:00:00Z")
    assert (found["fate"], found["reason"]) == ("would_not_open", "skipped_by_hand")
    assert "ben skipped it beforehand: maintenance" in found["answer"]
    assert stage.json("why", "backup", "--at", "2026-12-03T02:00:00Z")["fate"] == "would_start"
    stage.at("2026-12-02 02:00")
    hand.turn()
    found = stage.json("why", "backup", "--at", "2026-12-02T02:00:00Z")
    assert (found["fate"], found["because"]) == ("not_opened", "ben skipped it: maintenance")
    assert [item["count"] for item in stage.json("why", "backup", "--since", "2d")["items"]] == [1]


def test_an_offer_says_what_became_of_it(stage: Stage) -> None:
    from duly.operations.missed import accept, decline

    for name in ("taken", "refused", "forgotten"):
        stage.add(name, "0 * * * *", on_missed="offer", offer_for=timedelta(hours=1))
    hand = stage.serve()
    stage.at("2026-12-01 12:30")
    hand.turn()
    offers = {
        name: stage.json("why", name, "--at", "2026-12-01T11:00:00Z") for name in ("taken", "refused", "forgotten")
    }
    assert {one["fate"] for one in offers.values()} == {"offered"}
    stage.later(minutes=10)
    run = accept(stage.store, offers["taken"]["missed"]["id"], by="anna").run
    decline(stage.store, offers["refused"]["missed"]["id"], by="ben", note="too old")
    stage.later(hours=2)
    assert f"accepted 2h ago by anna, run {run.id[-8:]}" in stage.call("why", "taken", "--at", "2026-12-01T11:00:00Z")
    assert "declined 2h ago by ben: too old" in stage.call("why", "refused", "--at", "2026-12-01T11:00:00Z")
    assert "expired 1h 10m ago\n" in stage.call("why", "forgotten", "--at", "2026-12-01T11:00:00Z")
    assert stage.json("why", "taken", "--at", "2026-12-01T12:00:00Z")["run"]["id"] == run.id, "the newest of the count"


def test_a_task_that_is_done_or_used_up_has_no_more_instants(stage: Stage) -> None:
    stage.add("once", "once 2026-12-01 10:00")
    hand = stage.serve()
    stage.at("2026-12-01 09:00")
    stage.turn_and_end(hand)
    stage.later(minutes=1)
    found = stage.json("why", "once")
    assert (found["fate"], found["next_due_at"], [one["what"] for one in found["troubles"]]) == (
        "succeeded",
        None,
        ["done"],
    )


def test_beyond_its_times_a_task_is_due_no_more_looking_back_and_ahead(stage: Stage) -> None:
    stage.add("trial", "0 * * * *", times=2)
    stage.serve()
    ahead = [stage.json("why", "trial", "--at", f"2026-12-01T{hour:02d}:00:00Z") for hour in (9, 10, 11)]
    assert [one["fate"] for one in ahead] == ["would_start", "would_start", "would_not_open"]
    assert (ahead[2]["reason"], ahead[2]["rule"]) == (
        "used_up",
        {"name": "times", "value": 2, "own": True, "whose": "own"},
    )
    stage.at("2026-12-01 11:30")
    late = [stage.json("why", "trial", "--at", f"2026-12-01T{hour:02d}:00:00Z") for hour in (9, 10, 11)]
    assert [one["fate"] for one in late] == ["overdue", "overdue", "not_due"]


def test_who_is_stopping_starts_nothing(stage: Stage) -> None:
    stage.add("backup", "daily 03:00")
    hand = stage.serve()
    with stage.store.write() as session:
        session.holders.set_state(hand.id, "draining")
    assert (
        "nobody serves this store but 1 holder being stopped"
        in stage.json("why", "backup", "--at", "2026-12-02T02:00:00Z")["answer"]
    )


def test_who_is_passive_starts_nothing(stage: Stage) -> None:
    stage.add("backup", "daily 03:00")
    hand = stage.serve()
    asked = ("why", "backup", "--at", "2026-12-02T02:00:00Z")
    assert stage.json(*asked)["fate"] == "would_start"
    with stage.store.write() as session:
        by_hand(session.line, "UPDATE holders SET slots = 0 WHERE id = ?", hand.id)
    assert stage.json(*asked)["fate"] == "would_wait"
    assert "nobody serves this store but 1 passive holder" in stage.json(*asked)["answer"]


def test_without_a_look_at_locks_holders_live_by_their_beats(stage: Stage) -> None:
    from duly.operations.why import why

    stage.add("backup", "daily 03:00")
    stage.serve()
    with stage.store.read() as session:
        assert why(session, "backup", instant("2026-12-02 02:00")).fate.word == "would_start"
    stage.later(seconds=101)
    with stage.store.read() as session:
        assert why(session, "backup", instant("2026-12-02 02:00")).fate.word == "would_wait"


def test_what_did_not_run_as_planned_is_counted_once_and_the_rest_is_not_named(stage: Stage) -> None:
    stage.add("sync", "0 * * * *")
    hand = stage.serve()
    for hour in range(9, 15):
        stage.at(f"2026-12-01 {hour:02d}:00")
        stage.turn_and_end(hand)
    assert stage.json("why", "sync", "--since", "1d")["items"] == []
    assert "all 6 instants since" in stage.call("why", "sync", "--since", "1d")
    stage.at("2026-12-02 02:30")
    hand.turn()
    found = stage.json("why", "sync", "--since", "1d")
    assert [(item["fate"], item["reason"], item["count"]) for item in found["items"]] == [("missed", "coalesced", 11)]
    assert (found["due"], found["not_as_planned"]) == (18, 11)
    assert timedelta(0) < stage.now - instant("2026-12-02 02:00")
