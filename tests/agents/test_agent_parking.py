"""A permission that a person is to give: parked with its session where that goes on later, else the agent waits."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from agent_scene import Scene, lives, say

from duly.core.permissions import Permission
from duly.core.questions import Answered, Asked, Word
from duly.core.values import changed
from duly.ports import Outcome, Parked
from duly.prompts import resuming

ASK = {"do": "ask", "command": "npm publish", "title": "bash"}


def parked(scene: Scene, **changes: Any) -> Parked:
    done = scene.runner().perform(scene.assign(unattended="park", **changes), None)
    assert isinstance(done, Parked)
    return done


def answered(asked: Asked, answer: Word, note: str | None = None) -> Answered:
    return Answered(asked=asked, answer=answer, note=note, by="ann", at=datetime(2026, 12, 1, tzinfo=UTC))


def go_on(scene: Scene, done: Parked, answer: Word, note: str | None = None, **changes: Any) -> Outcome:
    resumes = changed(
        scene.resuming(str(done.agent["session"])), why="answered", answer=answered(done.asked, answer, note)
    )
    outcome = scene.runner().perform(scene.assign(attempt=2, unattended="park", resumes=resumes, **changes), None)
    assert isinstance(outcome, Outcome)
    return outcome


def test_a_question_parks_its_run_when_nothing_of_the_turn_lives_any_more(scene: Scene) -> None:
    scene.writes([say("I publish."), ASK, {"do": "hang_up_to_cancel"}])
    done = parked(scene)
    assert (done.asked.kind, done.asked.text) == ("permission", "bash: npm publish")
    assert done.agent["session"] == scene.seen("new")[0]["session"]
    assert done.agent["prompted"] is True
    assert scene.seen("answer")[0]["chosen"] == "cancelled"
    assert not lives(scene.seen("start")[0]["pid"])
    assert done.log_bytes > 0
    assert "[asked] bash: npm publish: a person is to answer" in scene.log


def test_what_a_person_allowed_is_allowed_when_the_agent_asks_again_in_its_session(scene: Scene) -> None:
    scene.writes([ASK, {"do": "hang_up_to_cancel"}], [ASK, say("Published.")])
    done = parked(scene)
    outcome = go_on(scene, done, "allow", "for once")
    assert (outcome.word, outcome.agent["session"]) == ("succeeded", done.agent["session"])
    assert [one["chosen"] for one in scene.seen("answer")] == ["cancelled", "id-allow_once"]
    text = scene.seen("prompt")[1]["text"]
    assert text.startswith("You asked to be allowed this: bash: npm publish. A person has allowed it, with the note: f")
    assert "Do it." not in text


def test_what_a_person_denied_is_denied_when_the_agent_asks_again(scene: Scene) -> None:
    scene.writes([ASK, {"do": "hang_up_to_cancel"}], [{**ASK, "gives_up": True}])
    outcome = go_on(scene, parked(scene), "deny")
    assert (outcome.word, outcome.reason) == ("failed", "question_denied")
    assert scene.seen("answer")[1]["chosen"] == "id-reject_once"
    assert "It was not allowed." in scene.seen("prompt")[1]["text"]


def test_leave_for_one_thing_is_none_for_another(scene: Scene) -> None:
    scene.writes([ASK, {"do": "hang_up_to_cancel"}], [{**ASK, "command": "npm publish --force"}, say("No.")])
    first = parked(scene)
    resumes = changed(
        scene.resuming(str(first.agent["session"])), why="answered", answer=answered(first.asked, "allow")
    )
    second = parked(scene, resumes=resumes, attempt=2)
    assert second.asked.text == "bash: npm publish --force"
    assert scene.seen("answer")[1]["chosen"] == "cancelled"


def test_a_permission_of_the_task_decides_before_anybody_is_asked(scene: Scene) -> None:
    scene.writes([ASK, say("Done.")])
    rule = Permission(tool="execute", pattern="npm *", action="allow")
    outcome = scene.perform(unattended="park", permissions=(rule,))
    assert outcome.word == "succeeded"
    assert scene.seen("answer")[0]["chosen"] == "id-allow_once"


def test_an_answer_tells_the_request_again_only_where_the_session_has_lost_it(scene: Scene) -> None:
    scene.writes([ASK, {"do": "hang_up_to_cancel"}], [say("Done.")], empty=True)
    go_on(scene, parked(scene), "allow")
    text = scene.seen("prompt")[1]["text"]
    assert text.startswith(resuming.LOST)
    assert "Do it." in text
    assert "A person has allowed it" in text


@pytest.mark.parametrize(("answer", "chosen"), [("allow", "id-allow_once"), ("deny", "id-reject_once")])
def test_an_agent_that_cannot_go_on_later_waits_for_its_answer(scene: Scene, answer: Word, chosen: str) -> None:
    scene.writes([ASK, say("Done.")], loads=False)
    asked: list[Asked] = []
    with scene.performing(unattended="park", on_asked=asked.append) as (runner, future):
        scene.until(lambda: asked)
        assert not future.done()
        runner.answer(answered(asked[0], answer))
        outcome = future.result(30)
    assert outcome.word == "succeeded"
    assert [one["chosen"] for one in scene.seen("answer")] == [chosen]
    assert len(scene.seen("prompt")) == 1


def test_while_a_person_is_asked_no_time_of_the_work_runs(scene: Scene) -> None:
    scene.writes([ASK, say("Done.")], loads=False)
    asked: list[Asked] = []
    short = timedelta(seconds=1)
    with scene.performing(unattended="park", idle_timeout=short, on_asked=asked.append) as (runner, future):
        scene.until(lambda: asked)
        with pytest.raises(TimeoutError):
            future.result(2.5)
        runner.answer(answered(asked[0], "allow"))
        assert future.result(30).word == "succeeded"


def test_a_cancel_ends_an_agent_that_waits_for_its_answer(scene: Scene) -> None:
    scene.writes([ASK, {"do": "hang_up_to_cancel"}], loads=False)
    asked: list[Asked] = []
    with scene.performing(unattended="park", on_asked=asked.append) as (runner, future):
        scene.until(lambda: asked)
        runner.stop("term")
        assert future.result(30).word == "cancelled"
    assert scene.seen("answer")[0]["chosen"] == "cancelled"


def test_a_question_tells_no_secret(scene: Scene) -> None:
    scene.env = {"KEY": "${TOKEN}"}
    scene.writes([{**ASK, "command": "curl -H very-secret-word"}, {"do": "hang_up_to_cancel"}], [ASK, say("Done.")])
    done = parked(scene)
    assert "very-secret-word" not in str(done)
    assert "${TOKEN}" in done.asked.text
