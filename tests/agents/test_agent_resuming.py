"""An attempt that goes on in a session: what its agent is told, and what becomes of a session that is gone."""

import json

import pytest
from agent_scene import Scene, say

from duly.ports import NothingToResume, Outcome
from duly.prompts import resuming
from duly.runners import turn_file


def prompted_before(scene: Scene, session: str) -> None:
    """Write down that this session has had its prompt, as the agent of an earlier attempt would have."""
    line = {"what": "prompt", "text": "Do it.", "session": session, "pid": 1}
    scene.witness.write_text(json.dumps(line) + "\n")


def test_a_session_that_had_its_prompt_is_told_that_it_was_interrupted_and_never_the_prompt_again(
    scene: Scene,
) -> None:
    prompted_before(scene, "ses-old")
    scene.writes([], [say("I went on.")])
    outcome = scene.resume("ses-old")
    assert isinstance(outcome, Outcome)
    assert (outcome.word, outcome.agent["session"]) == ("succeeded", "ses-old")
    assert [one["session"] for one in scene.seen("load")] == ["ses-old"]
    assert scene.seen("new") == []
    (prompt,) = scene.seen("prompt")[1:]
    assert (prompt["text"], prompt["session"]) == (resuming.resumed(None), "ses-old")
    assert "what was said before" not in scene.log
    assert "I went on." in scene.log


def test_what_a_session_said_before_is_no_answer_to_what_it_is_asked_now(scene: Scene) -> None:
    prompted_before(scene, "ses-old")
    scene.writes([], [])
    outcome = scene.resume("ses-old")
    assert isinstance(outcome, Outcome)
    assert (outcome.word, outcome.reason) == ("failed", "agent_empty")


def test_a_session_that_never_had_its_prompt_gets_that(scene: Scene) -> None:
    scene.writes([say("Done.")])
    outcome = scene.resume("ses-old", under_way=False)
    assert isinstance(outcome, Outcome)
    assert outcome.word == "succeeded"
    assert [(one["text"], one["session"]) for one in scene.seen("prompt")] == [("Do it.", "ses-old")]


def test_a_session_that_shows_nothing_of_its_prompt_gets_it_with_the_warning(scene: Scene) -> None:
    prompted_before(scene, "ses-old")
    scene.writes([], [say("Done.")], empty=True)
    assert isinstance(scene.resume("ses-old"), Outcome)
    assert scene.seen("prompt")[1]["text"] == resuming.resumed("Do it.")


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"forgets": True}, "does not find its session ses-old: no such session"),
        ({"loads": False}, "this agent cannot go on with a session"),
    ],
)
def test_a_session_that_cannot_be_gone_on_with_is_never_begun_anew(
    scene: Scene, more: dict[str, bool], told: str
) -> None:
    scene.writes([say("Never.")], **more)
    done = scene.resume("ses-old")
    assert isinstance(done, NothingToResume)
    assert told in done.told
    assert scene.seen("new") == scene.seen("prompt") == []


@pytest.mark.parametrize("more", [{"forgets": True}, {"loads": False}])
def test_a_session_that_was_never_prompted_may_be_begun_anew(scene: Scene, more: dict[str, bool]) -> None:
    scene.writes([say("Done.")], **more)
    outcome = scene.resume("ses-old", under_way=False)
    assert isinstance(outcome, Outcome)
    assert outcome.word == "succeeded"
    (prompt,) = scene.seen("prompt")
    assert (prompt["text"], prompt["session"]) == ("Do it.", scene.seen("new")[0]["session"])
    assert outcome.agent["session"] == prompt["session"]


def test_that_a_session_is_gone_on_with_is_on_disk_before_its_agent_is_asked(scene: Scene) -> None:
    prompted_before(scene, "ses-old")
    scene.writes([], [{"do": "hang"}])
    resumes = scene.resuming("ses-old")
    with scene.performing(resumes=resumes):
        scene.until(lambda: scene.seen("prompt")[1:])
        assert scene.last is not None
        left = turn_file.read(scene.last.folder)
        assert left is not None
        assert (left.session, left.under_way, left.prompted) == ("ses-old", True, True)


def test_the_model_is_chosen_in_a_session_that_goes_on_too(scene: Scene) -> None:
    prompted_before(scene, "ses-old")
    scene.writes([], [say("Done.")], session={"models": {"availableModels": [{"modelId": "fast"}]}})
    assert isinstance(scene.resume("ses-old", action={"model": "fast"}), Outcome)
    assert scene.seen("model") == [
        {"what": "model", "pid": scene.seen("load")[0]["pid"], "sessionId": "ses-old", "modelId": "fast"}
    ]
