"""Tasks that are bound to a session of their agent: it goes on, one attempt at a time, and hears its knowledge once."""

from datetime import timedelta
from pathlib import Path

import pytest
from agent_scene import Scene, say

from duly.ports import Busy, Came, Detached, NothingToResume, Outcome
from duly.prompts.resuming import INTERRUPTED
from duly.runners.bound import Use, bound

HAD = "What follows is standing knowledge"


def to(session: str, busy: str = "skip") -> dict[str, object]:
    return {"session": {"use": session, "busy": busy}}


def told(scene: Scene, text: str) -> Path:
    path = scene.folder / ".agents" / "knowledge.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


def test_a_bound_session_goes_on_run_after_run_and_hears_its_knowledge_once(scene: Scene) -> None:
    told(scene, "The moon is far.")
    scene.writes([say("Done.")])
    for _ in range(2):
        outcome = scene.perform(action=to("ses-mine"))
        assert (outcome.word, outcome.agent["session"]) == ("succeeded", "ses-mine")
    told(scene, "The moon is near.")
    scene.perform(action=to("ses-mine"))
    assert scene.seen("new") == []
    texts = [one["text"] for one in scene.seen("prompt")]
    assert [HAD in text for text in texts] == [True, False, True]
    assert all(text.endswith("Do it.") for text in texts)
    assert [one["session"] for one in scene.told] == ["ses-mine"] * 3


def test_knowledge_that_was_not_taken_is_told_again(scene: Scene) -> None:
    told(scene, "The moon is far.")
    scene.writes([{"do": "exit", "status": 1}], [say("Done.")])
    failed = scene.perform(action=to("ses-mine"))
    assert (failed.word, failed.unseen) == ("failed", False), "so that nobody sends the same once more by itself"
    scene.perform(action=to("ses-mine"))
    assert [HAD in one["text"] for one in scene.seen("prompt")] == [True, True]


def test_a_bound_session_that_is_gone_is_replaced_before_anything_is_asked_and_that_is_told(scene: Scene) -> None:
    scene.writes([say("Done.")], forgets=True)
    outcome = scene.perform(action=to("ses-mine"))
    (prompt,) = scene.seen("prompt")
    assert (outcome.word, prompt["session"]) == ("succeeded", scene.seen("new")[0]["session"])
    assert "[session] ses-mine is not there any more; a new one was opened" in scene.log
    assert scene.told == [{"session": prompt["session"], "instead_of": "ses-mine"}]


def test_what_a_bound_session_rejected_is_never_posted_twice(scene: Scene) -> None:
    scene.writes([{"do": "error", "message": "overloaded"}], [say("Never.")])
    outcome = scene.perform(action=to("ses-mine"))
    assert (outcome.word, outcome.reason, outcome.unseen) == ("failed", "agent_error", False)
    assert (len(scene.seen("prompt")), scene.seen("new")) == (1, [])


def test_an_agent_that_cannot_load_sessions_is_refused_a_bound_one(scene: Scene) -> None:
    scene.writes([say("Never.")], loads=False)
    outcome = scene.perform(action=to("ses-mine"))
    assert (outcome.word, outcome.reason, outcome.side_effect) == ("failed", "preflight", False)
    assert "cannot go on with a session, and its task is bound to ses-mine" in (outcome.error or "")


def test_what_fails_in_a_bound_session_before_it_was_asked_may_be_tried_again(scene: Scene) -> None:
    scene.writes([say("Never.")], choosing=[{"do": "exit", "status": 1}])
    outcome = scene.perform(action=to("ses-mine") | {"model": "fast"})
    assert (outcome.word, outcome.reason, outcome.unseen) == ("failed", "agent_error", True)
    assert scene.seen("prompt") == []


def busy(scene: Scene) -> Use:
    """Somebody else has the session."""
    assignment = scene.assign(action=to("ses-mine"))
    found = bound(assignment)
    assert found is not None
    use = Use(assignment, found)
    assignment.folder.parent.parent.mkdir(exist_ok=True)
    assert use.begin()
    return use


def test_while_a_bound_session_is_busy_its_run_is_skipped_before_anything_began(scene: Scene) -> None:
    scene.writes([say("Never.")])
    with busy(scene):
        done = scene.runner().perform(scene.assign(action=to("ses-mine")), None)
        assert done == Busy(told="the session ses-mine is busy")
        assert scene.perform(action=to("ses-other")).word == "succeeded", "another one is free"
    assert len(scene.seen("start")) == 1


def test_a_run_waits_for_its_bound_session_where_its_task_says_so(scene: Scene) -> None:
    scene.writes([say("Done.")])
    with busy(scene) as other, scene.performing(action=to("ses-mine", "wait")) as (_, future):
        assert not future.done()
        other.end()
        assert future.result(60).word == "succeeded"


@pytest.mark.parametrize("ends", ["term", "detach", "timeout"])
def test_a_run_that_waits_for_its_session_ends_when_it_shall_and_asks_nothing(scene: Scene, ends: str) -> None:
    scene.writes([say("Never.")])
    span = timedelta(0) if ends == "timeout" else timedelta(seconds=60)
    with busy(scene), scene.performing(action=to("ses-mine", "wait"), timeout=span) as (runner, future):
        if ends != "timeout":
            runner.stop("term" if ends == "term" else "detach")
        outcome = future.result(60)
    assert isinstance(outcome, Outcome)
    reasons = {"term": "cancelled_by_hand", "detach": "returned", "timeout": "timeout"}
    assert outcome.reason == reasons[ends], "what is let go before it began goes back as it came"
    assert (outcome.side_effect, scene.seen("start")) == (False, [])


def test_a_goal_is_refused_where_tokens_are_not_told_turn_by_turn(scene: Scene) -> None:
    scene.writes([say("Never.")])
    outcome = scene.perform(action={"goal": {"tokens": 5_000}})
    assert (outcome.word, outcome.reason, outcome.side_effect) == ("failed", "preflight", False)
    assert "is spoken to by ACP, which has no goal" in (outcome.error or "")
    assert scene.seen("start") == []


def another(scene: Scene, run: str) -> Use:
    """Another holder's use of the session, for this run."""
    assignment = scene.assign(action=to("ses-mine"), run=run)
    found = bound(assignment)
    assert found is not None
    return Use(assignment, found)


def resumed(scene: Scene, *, prompted: bool = True) -> Came | Detached:
    """An attempt that goes on in the bound session, for run `run_one`."""
    resumes = scene.resuming("ses-mine", under_way=prompted)
    assigned = scene.assign(action=to("ses-mine"), attempt=2, run="run_one", resumes=resumes)
    return scene.runner().perform(assigned, None)


def test_an_attempt_that_goes_on_before_anything_was_asked_comes_between_nobody(scene: Scene) -> None:
    scene.writes([say("Done.")])
    with busy(scene):
        assert resumed(scene, prompted=False) == Busy(told="the session ses-mine is busy")
    assert scene.seen("start") == []
    done = resumed(scene, prompted=False)
    assert isinstance(done, Outcome)
    assert done.word == "succeeded"
    assert [one["text"] for one in scene.seen("prompt")] == ["Do it."]


def test_a_run_does_not_go_on_in_a_session_in_which_another_run_has_asked_since(scene: Scene) -> None:
    scene.writes([say("Done.")])
    scene.perform(action=to("ses-mine"), run="run_one")
    scene.perform(action=to("ses-mine"), run="run_two")
    done = resumed(scene)
    assert isinstance(done, NothingToResume)
    assert "another run has asked in the session ses-mine since" in done.told
    assert len(scene.seen("prompt")) == 2


def test_a_run_that_goes_on_waits_for_another_run_in_its_session(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[bool] = []
    is_of_another = Use.is_of_another

    def looked(use: Use) -> bool:
        looks.append(is_of_another(use))
        return looks[-1]

    monkeypatch.setattr(Use, "is_of_another", looked)
    scene.writes([say("Done.")], [say("Never.")])
    scene.perform(action=to("ses-mine"), run="run_one")
    with another(scene, "run_two") as other:
        assert other.begin()
        with scene.performing(action=to("ses-mine"), attempt=2, run="run_one", resumes=scene.resuming("ses-mine")) as (
            _,
            future,
        ):
            scene.until(lambda: len(looks) > 1)
            other.asks("ses-mine")
            other.end()
            assert isinstance(future.result(60), NothingToResume)
    assert len(scene.seen("prompt")) == 1


def test_a_run_goes_on_in_a_session_that_its_own_holder_has_still_as_it_stands_still(scene: Scene) -> None:
    scene.writes([say("Done.")], [say("I went on.")])
    scene.perform(action=to("ses-mine"), run="run_one")
    with another(scene, "run_one") as itself:
        assert itself.begin()
        done = resumed(scene)
    assert isinstance(done, Outcome)
    assert done.word == "succeeded"
    assert [one["text"] for one in scene.seen("prompt")] == ["Do it.", INTERRUPTED]
