"""Quick tries inside one attempt (G10): what failed before anything could be seen is asked again, in a new session."""

from datetime import timedelta
from typing import Any

import pytest
from agent_scene import Scene, say

from duly.ports import Outcome, Resumption
from duly.runners import turn_file

ERROR = {"do": "error", "message": "529 overloaded"}


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("duly.runners.acp.conversation.QUICK_AFTER_S", (0.02, 0.05))


def test_a_turn_that_failed_unseen_is_asked_again_in_a_new_session(scene: Scene) -> None:
    scene.writes([ERROR], [ERROR], [say("Now it works.")])
    outcome = scene.perform(action={"model": "small"})
    assert (outcome.word, outcome.unseen) == ("succeeded", False)
    sessions = [one["session"] for one in scene.seen("prompt")]
    assert len(set(sessions)) == 3, "never the same prompt twice in one session"
    assert outcome.agent["session"] == sessions[-1]
    assert len(scene.seen("model")) == 3
    assert scene.log.count("asked again in a new session") == 2
    assert len(scene.seen("start")) == 1


def test_after_three_tries_it_fails_unseen_and_who_takes_it_over_knows_it(scene: Scene) -> None:
    scene.writes([ERROR])
    outcome = scene.perform()
    assert (outcome.word, outcome.reason, outcome.unseen) == ("failed", "agent_error", True)
    assert len(scene.seen("prompt")) == 3
    assert scene.last is not None
    left = turn_file.read(scene.last.folder)
    assert left is not None
    assert left.unseen


@pytest.mark.parametrize(
    "step",
    [
        say("I begin."),
        {"do": "think", "text": "hm"},
        {"do": "tool"},
        {"do": "ask", "command": "rm x"},
        {"do": "update", "kind": "plan", "more": {"entries": []}},
    ],
    ids=["words", "thoughts", "a tool", "a question", "a plan"],
)
def test_what_showed_anything_of_its_work_is_never_asked_again(scene: Scene, step: dict[str, Any]) -> None:
    scene.writes([step, ERROR])
    outcome = scene.perform()
    assert (outcome.word, outcome.unseen) == ("failed", False)
    assert len(scene.seen("prompt")) == 1


def test_what_is_no_work_of_the_agent_does_not_count_as_seen(scene: Scene) -> None:
    told = {"do": "update", "kind": "available_commands_update", "more": {"availableCommands": []}}
    scene.writes([told, ERROR], [say("Done.")])
    assert scene.perform().word == "succeeded"


def test_an_agent_that_went_away_unseen_is_not_asked_again_at_once_but_may_be_later(scene: Scene) -> None:
    scene.writes([{"do": "exit", "status": 3}])
    outcome = scene.perform()
    assert (outcome.reason, outcome.unseen) == ("agent_error", True)
    assert len(scene.seen("start")) == 1
    scene.writes([say("x"), {"do": "exit", "status": 3}])
    assert not scene.perform().unseen


@pytest.mark.parametrize(("how", "word"), [("cancel", "cancelled"), ("timeout", "timed_out")])
def test_between_two_tries_a_cancel_and_the_timeout_are_obeyed(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, how: str, word: str
) -> None:
    monkeypatch.setattr("duly.runners.acp.conversation.QUICK_AFTER_S", (300.0, 300.0))
    scene.writes([ERROR])
    span = timedelta(seconds=1 if how == "timeout" else 60)
    with scene.performing(timeout=span) as (runner, future):
        scene.until(lambda: scene.last is not None and scene.last.folder.exists() and "asked again" in scene.log)
        if how == "cancel":
            runner.stop("term")
        outcome = future.result(8)
    assert (outcome.word, outcome.unseen, outcome.confirmed) == (word, False, True)
    assert len(scene.seen("prompt")) == 1


@pytest.mark.parametrize("more", [{"stop": "refusal"}, {}], ids=["a refusal", "an empty end"])
def test_an_end_in_the_agents_own_words_is_no_failure_to_be_tried_again(scene: Scene, more: dict[str, Any]) -> None:
    scene.writes([], **more)
    assert not scene.perform().unseen
    assert len(scene.seen("prompt")) == 1


def test_what_goes_on_with_work_that_was_begun_is_never_asked_again_from_its_start(scene: Scene) -> None:
    scene.writes([ERROR])
    resumes = Resumption(session="old", prompted=True, why="interrupted")
    outcome = scene.runner().perform(scene.assign(resumes=resumes), None)
    assert isinstance(outcome, Outcome)
    assert (outcome.word, outcome.unseen) == ("failed", False)
    assert [one["session"] for one in scene.seen("prompt")] == ["old"]


def test_a_session_that_was_never_prompted_is_prompted_once_and_the_next_try_has_another(scene: Scene) -> None:
    scene.writes([ERROR], [say("Done.")])
    resumes = Resumption(session="old", prompted=False, why="interrupted")
    outcome = scene.runner().perform(scene.assign(resumes=resumes), None)
    assert isinstance(outcome, Outcome)
    assert outcome.word == "succeeded"
    first, second = [one["session"] for one in scene.seen("prompt")]
    assert first == "old"
    assert second != "old"
