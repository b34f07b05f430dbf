"""An agent that asks while nobody is there is answered at once, as the task says (G6): never a hang."""

from datetime import timedelta
from typing import Any

import pytest
from agent_scene import Scene, say

from duly.core.permissions import Permission, Question, answer_to, question_of

ASK = {"do": "ask", "command": "git push", "title": "bash"}


def test_a_permission_is_denied_once_by_default_and_the_agent_goes_on(scene: Scene) -> None:
    scene.writes([ASK, say("Then I leave it.")])
    outcome = scene.perform()
    assert outcome.word == "succeeded"
    assert [one["chosen"] for one in scene.seen("answer")] == ["id-reject_once"]
    assert "[asked] bash: git push: deny" in scene.log


@pytest.mark.parametrize("before", [[], [say("I will push now.")]], ids=["nothing said", "something said before"])
def test_an_agent_that_gives_up_when_it_is_denied_has_not_succeeded(scene: Scene, before: list[Any]) -> None:
    scene.writes([*before, {**ASK, "gives_up": True}])
    outcome = scene.perform()
    assert (outcome.word, outcome.reason) == ("failed", "question_denied")
    assert "git push" in (outcome.error or "")


def test_allow_chooses_the_option_for_this_once(scene: Scene) -> None:
    scene.writes([{**ASK, "options": ["allow_always", "allow_once", "reject_once"]}, say("Pushed.")])
    assert scene.perform(unattended="allow").word == "succeeded"
    assert [one["chosen"] for one in scene.seen("answer")] == ["id-allow_once"]


def test_fail_cancels_the_turn_and_names_the_question(scene: Scene) -> None:
    scene.writes([ASK, {"do": "hang_up_to_cancel"}])
    outcome = scene.perform(unattended="fail")
    assert (outcome.word, outcome.reason, outcome.confirmed) == ("failed", "question_denied", True)
    assert outcome.error == "it asked for bash: git push"
    assert [one["chosen"] for one in scene.seen("answer")] == ["cancelled"]
    assert [one["method"] for one in scene.seen("meanwhile")] == ["session/cancel"]


def test_a_denial_that_the_agent_offers_no_option_for_is_a_cancelled_question(scene: Scene) -> None:
    scene.writes([{**ASK, "options": ["allow_once"]}, say("As you wish.")])
    assert scene.perform().word == "succeeded"
    assert [one["chosen"] for one in scene.seen("answer")] == ["cancelled"]


def test_an_agent_that_asks_again_and_again_is_denied_each_time(scene: Scene) -> None:
    scene.writes([ASK, ASK, ASK, say("I see.")])
    assert scene.perform().word == "succeeded"
    assert [one["chosen"] for one in scene.seen("answer")] == ["id-reject_once"] * 3


def test_a_permission_of_the_task_goes_before_what_holds_for_the_unattended(scene: Scene) -> None:
    scene.writes([{**ASK, "command": "git status"}, {**ASK, "command": "rm -rf ."}, say("Done.")])
    rules = (Permission(tool="execute", pattern="git *", action="allow"),)
    assert scene.perform(permissions=rules).word == "succeeded"
    assert [one["chosen"] for one in scene.seen("answer")] == ["id-allow_once", "id-reject_once"]


def test_what_is_asked_after_a_cancel_is_answered_as_cancelled(scene: Scene) -> None:
    scene.writes([{"do": "hang_up_to_cancel", "stop": "cancelled"}], [])
    outcome = scene.perform(timeout=timedelta(seconds=1))
    assert outcome.reason == "timeout"


def question(**told: Any) -> Question:
    return question_of({"kind": "execute", "title": "bash", **told})


@pytest.mark.parametrize(
    ("command", "pattern", "allowed"),
    [
        ("git status", "git *", True),
        ("git status; rm -rf /", "git *", False),
        ("git status && rm x", "git *", False),
        ("git log\nrm x", "git *", False),
        ("git log | less", "git *", False),
        ("git log | less", "git * | less", True),
        ("git $(rm x)", "git *", False),
        ("gitx", "git *", False),
        ("rm -rf /; true", "*", True),
    ],
)
def test_a_pattern_is_no_leave_for_commands_that_are_joined_to_what_it_means(
    command: str, pattern: str, allowed: bool
) -> None:
    rules = [Permission(tool="execute", pattern=pattern, action="allow")]
    asked = question(rawInput={"command": command})
    assert answer_to(asked, rules, "deny") == ("allow" if allowed else "deny")


def test_a_denial_fits_where_any_place_does_and_a_leave_only_where_all_do() -> None:
    asked = question_of({"kind": "edit", "title": "edit", "locations": [{"path": "/a/x"}, {"path": "/b/y"}]})
    assert answer_to(asked, [Permission(tool="edit", pattern="/a/*", action="allow")], "deny") == "deny"
    assert answer_to(asked, [Permission(tool="edit", pattern="/a/*", action="deny")], "allow") == "deny"
    both = [Permission(tool="*", pattern="/[ab]/*", action="allow")]
    assert answer_to(asked, both, "fail") == "allow"


def test_of_the_rules_that_fit_the_last_decides() -> None:
    rules = [
        Permission(tool="*", action="allow"),
        Permission(tool="execute", pattern="rm *", action="deny"),
        Permission(tool="execute", pattern="rm tmp/*", action="allow"),
    ]
    assert answer_to(question(rawInput={"command": "ls"}), rules, "deny") == "allow"
    assert answer_to(question(rawInput={"command": "rm x"}), rules, "allow") == "deny"
    assert answer_to(question(rawInput={"command": "rm tmp/x"}), rules, "deny") == "allow"


@pytest.mark.parametrize(
    "strange", [{}, {"rawInput": 3}, {"locations": "x"}, {"title": None}, {"rawInput": {"command": ["a", 1]}}]
)
def test_a_strange_question_is_still_answered(strange: dict[str, Any]) -> None:
    assert answer_to(question_of(strange), [Permission(tool="execute", pattern="x*", action="allow")], "deny") == "deny"
