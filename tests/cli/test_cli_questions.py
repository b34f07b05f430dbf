"""`questions` and `answer` as people and scripts use them, and where else they are told."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cli_scene import Scene
from golden_scene import MINUTE, World, compare, world

from duly.core.questions import Asked
from duly.operations.lookup import ending
from duly.ports import Parked

GOLDEN = Path(__file__).parent / "golden"
FIELDS = """id run task task_name attempt asked_at until then attached kind text options about state answer note
answered_by answered_at"""
MAY_I = Asked(kind="permission", text="execute: rm -rf build && make release", about={"tool": "execute"})
WHICH = Asked(kind="question", text="Which branch shall be released? 🌱", options=("main", "next"))
WIDTHS: dict[str, int | None] = {"80": 80, "140": 140, "piped": None}
SCREENS: dict[str, tuple[str, ...]] = {
    "questions": ("questions",),
    "questions-show": ("show", "{parked}"),
    "questions-show-ended": ("show", "{ended}"),
    "questions-why": ("why", "{parked}"),
    "questions-why-task": ("why", "release"),
    "questions-status": ("status",),
    "questions-list": ("list",),
    "questions-ledger": ("ledger", "--task", "release"),
}


@pytest.fixture
def asked(scene: Scene) -> Iterator[World]:
    """Three runs that asked: one waits, one was answered and waits to go on, one was never answered."""
    with world(scene) as w:
        w.serve()
        w.add("release", "daily 08:00", "--zone", "UTC")
        w.add("branch", "daily 08:00", "--zone", "UTC")
        w.add("forgotten", "daily 08:00", "--zone", "UTC")
        w.at(datetime(2026, 11, 26, 8, 0, tzinfo=UTC))
        w.turn()
        w.at(w.clock.moment + MINUTE)
        for name, what in (("release", MAY_I), ("branch", WHICH), ("forgotten", MAY_I)):
            w.end(name, Parked(asked=what, agent={"session": f"ses_{name}", "prompted": True}))
        w.at(w.clock.moment + 7 * MINUTE)
        scene.ok("answer", question(scene, "branch")["id"], "--text", "main", "--note", "as always")
        scene.ok("cancel", question(scene, "forgotten")["run"])
        w.at(w.clock.moment + 2 * MINUTE)
        yield w


def question(scene: Scene, task: str) -> Any:
    (one,) = scene.ok("questions", "--task", task, "--json").json["items"]
    return one


def test_questions_lists_each_with_its_run_its_time_and_how_it_stands(asked: World) -> None:
    scene = asked.scene
    items = scene.ok("questions", "--json").json["items"]
    assert {item["task_name"]: item["state"] for item in items} == {
        "release": "open",
        "branch": "answered",
        "forgotten": "expired",
    }
    assert all(set(item) == set(FIELDS.split()) for item in items)
    one = question(scene, "release")
    assert (one["kind"], one["text"], one["options"], one["answer"]) == ("permission", MAY_I.text, [], None)
    asked_at, until = (datetime.fromisoformat(one[name]) for name in ("asked_at", "until"))
    assert until - asked_at == timedelta(hours=24)
    assert [item["id"] for item in scene.ok("questions", "--open", "--json").json["items"]] == [one["id"]]
    page = scene.ok("questions", "-n", "2", "--json").json
    rest = scene.ok("questions", "--cursor", page["next"], "--json").json
    assert [item["id"] for item in page["items"] + rest["items"]] == [item["id"] for item in items]


def test_a_run_tells_what_it_waits_for_and_a_person_is_pointed_at_it(asked: World) -> None:
    scene = asked.scene
    one = question(scene, "release")
    run = scene.ok("show", one["run"], "--json").json
    assert (run["state"], run["question"]) == ("parked", one["id"])
    assert run["waiting_for"] == {
        "what": "question",
        "key": one["id"],
        "since": one["asked_at"],
        "until": one["until"],
    }
    status = scene.ok("status", "--json").json
    assert (status["open_questions"], status["runs"]["parked"]) == (1, 2)
    assert [item["id"] for item in scene.ok("runs", "--state", "parked", "--task", "release", "--json").json["items"]]
    why = scene.ok("why", one["run"], "--json").json
    assert (why["fate"], why["reason"]) == ("parked", "question")


def test_an_answer_in_words_is_kept_as_it_was_given(asked: World) -> None:
    one = question(asked.scene, "branch")
    assert (one["answer"], one["note"], one["answered_by"]) == ("main", "as always", "ann")


def test_of_two_answers_the_second_is_refused_with_the_first(asked: World) -> None:
    scene = asked.scene
    one = question(scene, "release")
    told = scene.ok("answer", ending(one["id"]), "deny", "--note", "not on a friday")
    assert told.out == f"denied release: {MAY_I.text}\n"
    late = scene.call("answer", one["id"], "allow", "--json")
    assert late.code == 3
    assert late.fault["reason"] == "already_answered"
    assert (late.fault["details"]["answer"], late.fault["details"]["answered_by"]) == ("deny", "ann")


def test_what_nobody_asks_any_more_takes_no_answer_and_says_why(asked: World) -> None:
    late = asked.scene.call("answer", question(asked.scene, "forgotten")["id"], "allow")
    assert late.code == 3
    assert "it is asked no longer: its run has ended (cancelled)" in late.first


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "allow or deny, or --text"),
        (("perhaps",), '"perhaps" is no answer'),
        (("allow", "--text", "x"), "one answer is wanted"),
        (("--text", "main"), "it asks for a permission"),
        (("--text", " "), "the answer is empty"),
    ],
)
def test_what_is_no_answer_is_refused_and_the_question_stays_open(
    asked: World, words: tuple[str, ...], told: str
) -> None:
    scene = asked.scene
    one = question(scene, "release")
    called = scene.call("answer", one["id"], *words)
    assert called.code == 2
    assert told in called.err
    assert question(scene, "release")["state"] == "open"


def test_a_word_that_may_mean_several_questions_lists_them_and_an_unknown_one_says_so(asked: World) -> None:
    scene = asked.scene
    many = scene.call("answer", "que_", "allow", "--json")
    assert many.code in {2, 4}
    nothing = scene.call("answer", "zzzzzzzz", "allow", "--json")
    assert (nothing.code, nothing.fault["reason"]) == (4, "unknown_id")


def test_questions_of_no_store_and_of_nothing_asked_say_so_and_are_no_failure(scene: Scene) -> None:
    assert scene.ok("questions", "--json").json == {"items": [], "next": None}
    assert not scene.is_made()
    scene.add("hello")
    assert scene.ok("questions").err == "hint: nothing was asked\n"
    assert scene.ok("questions", "--open").err == "hint: no question waits for an answer\n"


def test_screens_of_questions_are_what_they_were_when_somebody_read_them(asked: World) -> None:
    scene = asked.scene
    words = {"parked": question(scene, "release")["run"], "ended": question(scene, "forgotten")["run"]}
    wrong = []
    for name, args in SCREENS.items():
        for width, columns in WIDTHS.items():
            shown = asked.screen(columns, *(arg.format(**words) for arg in args))
            try:
                compare(GOLDEN / f"{name}.{width}.txt", shown)
            except AssertionError as differing:
                wrong.append(f"{name} at {width}: {differing}")
    assert not wrong, "\n\n".join(wrong)
