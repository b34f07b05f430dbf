"""`budget`: what people see of what is spent, and which words are refused."""

import json
from datetime import timedelta
from pathlib import Path

import pytest
from cli_scene import Scene
from golden_scene import World, compare, world

GOLDEN = Path(__file__).parent / "golden"
MINUTE = timedelta(minutes=1)


def lived(w: World) -> None:
    """Two projects: of one a budget is used up, of the other little is."""
    w.scene.ok("project", "set", "reports")
    w.scene.ok("budget", "set", "store", "--runs", "20", "--usd", "2.50", "--per", "day")
    w.scene.ok("budget", "set", "project:reports", "--runs", "2", "--per", "month")
    for number in range(4):
        w.add(f"r{number}", "* * * * *", "--project", "reports", "--zone", "UTC")
    w.add("build", "* * * * *", "--zone", "UTC")
    w.serve()
    w.at(w.clock.moment + MINUTE)
    w.turn()


@pytest.mark.parametrize(("width", "columns"), [("80", 80), ("140", 140), ("piped", None)])
def test_budgets_are_shown_with_what_is_spent_set_aside_and_left(scene: Scene, width: str, columns: int | None) -> None:
    with world(scene) as w:
        lived(w)
        compare(GOLDEN / f"budgets.{width}.txt", w.screen(columns, "budget", "list"))
        compare(GOLDEN / f"budgets-status.{width}.txt", w.screen(columns, "status"))


def test_a_run_that_waits_for_a_budget_says_for_which_and_until_when(scene: Scene) -> None:
    with world(scene) as w:
        lived(w)
        [waits, _] = [one for one in scene.ok("runs", "--json").json["items"] if one["state"] == "waiting"]
        assert (waits["waiting_for"]["what"], waits["waiting_for"]["key"]) == ("budget", "project:reports")
        compare(GOLDEN / "budgets-why.80.txt", w.screen(80, "why", waits["id"]))
        refused = scene.call("run", waits["task"], "--json")
        told = json.loads(refused.err)
        assert (refused.code, told["reason"]) == (3, "budget_exceeded")
        assert told["details"]["budget"]["limit"] == {"runs": 2, "tokens": None, "usd": None}
        assert scene.call("run", waits["task"], "--queue").code == 0


def test_as_json_a_budget_has_its_figures_and_its_period(scene: Scene) -> None:
    scene.add("kept")
    set_ = scene.ok("budget", "set", "store", "--runs", "9", "--usd", "0.5", "--per", "month", "--json").json
    assert set_["scope"] == "store"
    assert set_["limit"] == {"runs": 9, "tokens": None, "usd": 0.5}
    assert set_["spent"] == set_["reserved"] == {"runs": 0, "tokens": 0, "usd": 0.0}
    assert set_["until"] > set_["since"]
    assert scene.ok("budget", "list", "--json").json == {"items": [set_], "next": None}
    assert scene.ok("status", "--json").json["budgets"] == [set_]
    assert scene.ok("budget", "remove", "store", "--json").json == set_
    assert scene.ok("budget", "list", "--json").json["items"] == []


@pytest.mark.parametrize(
    "words",
    [
        ("store",),
        ("store", "--per", "day"),
        ("store", "--runs", "1"),
        ("store", "--runs", "1", "--per", "week"),
        ("store", "--runs", "-1", "--per", "day"),
        ("store", "--runs", "many", "--per", "day"),
        ("store", "--runs", "1.5", "--per", "day"),
        ("store", "--tokens", "9" * 30, "--per", "day"),
        ("store", "--usd", "free", "--per", "day"),
        ("store", "--usd", "-1", "--per", "day"),
        ("store", "--usd", "nan", "--per", "day"),
        ("store", "--usd", "0.0000001", "--per", "day"),
        ("shop", "--runs", "1", "--per", "day"),
        ("project:", "--runs", "1", "--per", "day"),
        ("task:kept", "--runs", "1", "--per", "day"),
    ],
)
def test_words_that_are_no_budget_are_told_in_one_line_and_change_nothing(scene: Scene, words: tuple[str, ...]) -> None:
    scene.add("kept")
    scene.ok("budget", "set", "store", "--runs", "7", "--per", "day")
    before = scene.dump()
    called = scene.call("budget", "set", *words)
    assert called.code == 2, called
    assert called.err
    assert called.out == ""
    assert scene.dump() == before


def test_what_is_not_there_is_refused_by_name(scene: Scene) -> None:
    scene.add("kept")
    for words in (("set", "project:nowhere", "--runs", "1", "--per", "day"), ("remove", "store"), ("remove", "shop")):
        called = scene.call("budget", *words)
        assert called.code in {2, 3, 4}, called
        assert called.out == ""
