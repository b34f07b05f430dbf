"""`missed`, `accept`, `decline` as people and scripts use them."""

from datetime import timedelta

import pytest
from cli_scene import Scene
from deciding_scene import eight, missed

from duly.core.run import Missed
from duly.core.spans import write_instant
from duly.operations.lookup import ending

FIELDS = """id task task_name occurrence due_at until_at count reason noticed_at holder state expires_at decided_by
decided_at note run"""


@pytest.fixture
def offer(scene: Scene) -> Missed:
    task = scene.add("report", "--zone", "UTC", when="daily 08:00")
    return missed(scene, task["id"])


def test_missed_lists_each_record_with_its_bounds_its_count_and_how_it_stands(scene: Scene, offer: Missed) -> None:
    (item,) = scene.ok("missed", "--json").json["items"]
    assert set(item) == set(FIELDS.split())
    assert (item["id"], item["count"], item["state"], item["task_name"]) == (offer.id, 3, "open", "report")
    assert (item["due_at"], item["until_at"]) == (write_instant(eight(3)), write_instant(eight(1)))
    text = scene.ok("missed").out
    assert ending(offer.id) in text
    assert "open for 6d 23h" in text
    scene.monkeypatch.setenv("COLUMNS", "80")
    assert all(len(line) <= 80 for line in scene.ok("missed").out.splitlines())


def test_missed_can_be_asked_of_one_task_and_of_what_waits_for_an_answer(scene: Scene, offer: Missed) -> None:
    other = scene.add("other")["id"]
    gone = missed(scene, other, state="closed", reason="coalesced", count=40)
    items = scene.ok("missed", "--json").json["items"]
    assert [item["id"] for item in items] == [gone.id, offer.id]
    assert [item["id"] for item in scene.ok("missed", "--open", "--json").json["items"]] == [offer.id]
    assert [item["id"] for item in scene.ok("missed", "--task", "other", "--json").json["items"]] == [gone.id]
    assert scene.ok("missed", "--task", "other", "--open", "--json").json == {"items": [], "next": None}
    page = scene.ok("missed", "-n", "1", "--json").json
    rest = scene.ok("missed", "--cursor", page["next"], "--json").json
    assert [item["id"] for item in page["items"] + rest["items"]] == [gone.id, offer.id]


def test_missed_of_no_store_and_of_nothing_missed_says_so_and_is_no_failure(scene: Scene) -> None:
    assert scene.ok("missed", "--json").json == {"items": [], "next": None}
    assert not scene.is_made()
    scene.add("hello")
    assert scene.ok("missed").err == "hint: nothing was missed\n"
    assert scene.ok("missed", "--open").err == "hint: no offer waits for an answer\n"


def test_accept_answers_with_the_run_of_the_newest_and_the_record_that_it_came_from(
    scene: Scene, offer: Missed
) -> None:
    answer = scene.ok("accept", ending(offer.id), "--json").json
    assert (answer["occurrence"], answer["opened_by"]) == (f"at:{write_instant(eight(1))}", "offer")
    assert (answer["state"], answer["due_at"]) == ("waiting", write_instant(eight(1)))
    assert answer["missed"]["state"] == "accepted"
    assert answer["missed"]["run"] == answer["id"]
    again = scene.call("accept", offer.id, "--json")
    assert again.code == 3
    assert again.fault["reason"] == "already_answered"
    assert again.fault["details"]["run"] == answer["id"]
    assert again.fault["details"]["decided_by"] == answer["opened_by_whom"]


def test_accept_tells_a_person_what_waits_and_that_nobody_serves(scene: Scene, offer: Missed) -> None:
    called = scene.ok("accept", offer.id)
    run, words = called.out.splitlines()
    assert run.startswith("run_")
    assert words.startswith("report of ")
    assert words.endswith(", the newest of 3")
    assert "nobody serves" in called.err


def test_decline_keeps_the_note_and_a_second_answer_shows_it(scene: Scene, offer: Missed) -> None:
    answer = scene.ok("decline", offer.id, "--note", "a holiday", "--json").json
    assert (answer["state"], answer["note"], answer["run"]) == ("declined", "a holiday", None)
    assert scene.call("decline", offer.id).first.endswith(": a holiday")
    assert scene.ok("runs", "--json").json["items"] == []


def test_offers_are_pointed_at_where_people_look(scene: Scene, offer: Missed) -> None:
    assert offer.state == "open"
    assert "3 open: duly missed --open" in scene.ok("status").out
    assert "3 missed wait for an answer (duly missed)" in scene.ok("show", "report").out
    assert scene.ok("list", "--json").json["items"][0]["counts"]["open_missed"] == 3
    assert scene.ok("status", "--json").json["open_missed"] == 3


BAD = {
    "accept nothing": (("accept",), 2, "duly: ID is missing"),
    "accept unknown": (("accept", "mis_000"), 4, 'duly: nothing missed is called "mis_000"'),
    "accept a task": (("accept", "report"), 4, 'duly: nothing missed is called "report"'),
    "accept any of many": (("accept", "mis_0"), 2, 'duly: "mis_0" may mean mis_0'),
    "decline unknown": (("decline", "zzzzzzzz"), 4, 'duly: nothing missed is called "zzzzzzzz"'),
    "decline closed": (("decline", "CLOSED"), 3, "duly: it was not offered but closed as stale"),
    "decline expired": (("decline", "EXPIRED"), 3, "duly: nobody answered it, and its time was over at "),
    "note too long": (("decline", "OPEN", "--note", "n" * 501), 2, "duly: --note: it has 501 characters"),
    "accept of a paused task": (("accept", "PAUSED"), 3, "duly: held is paused since"),
    "accept of a removed task": (("accept", "REMOVED"), 4, "duly: the task gone was removed"),
    "missed of an unknown task": (("missed", "--task", "nobody"), 4, 'duly: there is no task "nobody"'),
    "missed from a wrong place": (("missed", "--cursor", "run_1"), 2, 'duly: --cursor: "run_1" is not what'),
    "missed too few": (("missed", "-n", "0"), 2, "duly: -n: 0 is not between"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_answered_is_refused_with_its_reason_and_nothing_is_lost(scene: Scene, name: str) -> None:
    task = scene.add("report")["id"]
    held, gone = scene.add("held")["id"], scene.add("gone")["id"]
    ids_ = {
        "OPEN": missed(scene, task),
        "CLOSED": missed(scene, task, newest=9, state="closed", reason="stale"),
        "EXPIRED": missed(scene, task, newest=20, lasts=timedelta(seconds=-1)),
        "PAUSED": missed(scene, held),
        "REMOVED": missed(scene, gone),
    }
    scene.ok("missed")
    scene.ok("pause", "held")
    scene.ok("remove", "gone", "--yes")
    args, code, first = BAD[name]
    args = tuple(ids_[arg].id if arg in ids_ else arg for arg in args)
    before = scene.dump()
    called = scene.call(*args)
    assert (called.code, called.first[: len(first)]) == (code, first), called
    assert scene.dump() == before
