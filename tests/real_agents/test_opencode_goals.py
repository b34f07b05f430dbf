"""Goals at the real OpenCode server: turn after turn in one session until the agent says that it is reached."""

from typing import Any

import pytest
from fake_model import HOLD, Step, say
from opencode_scene import OpenCodeScene

from duly.ports import Outcome, Resumption


def aim(tokens: int = 50_000) -> dict[str, Any]:
    return {"goal": {"tokens": tokens}}


def asked(opencode: OpenCodeScene, outcome: Outcome) -> list[str]:
    """What the session was asked, in order."""
    messages = opencode.ask("GET", f"/session/{outcome.agent['session']}/message")
    return [one["parts"][0]["text"] for one in messages if one["info"]["role"] == "user"]


def test_a_goal_is_gone_on_with_in_its_session_until_the_agent_says_that_it_is_reached(
    opencode: OpenCodeScene,
) -> None:
    steps = (say("Half of it.", usage=(1000, 10)), say("All of it.\nGOAL REACHED", usage=(2000, 20)))
    outcome = opencode.perform(*steps, action=aim())
    assert (outcome.word, outcome.error, opencode.calls) == ("succeeded", None, 2)
    assert outcome.agent["usage"]["tokens_in"] == 3000  # type: ignore[index]
    first, second = asked(opencode, outcome)
    objective = f"[[{opencode.name}]]"
    assert first.startswith(f"{objective}\n\nThat is a goal, and you have 50,000 tokens for it.")
    assert "You have 48,990 of 50,000 tokens left." in second
    assert opencode.session(outcome)["metadata"]["duly"]["goal"] == {"objective": objective, "tokens": 50_000}
    assert "[goal] not reached yet; 48,990 tokens are left" in opencode.log


@pytest.mark.parametrize(
    ("steps", "reason", "told", "calls"),
    [
        ((say("More.", usage=(600, 0)),), "budget_exceeded", "tokens for it are used up", 2),
        ((say("GOAL OUT OF REACH: no compiler"),), "agent_refused", "out of reach: no compiler", 1),
        ((say("More."), say(" ")), "agent_empty", "without a word", 2),
    ],
    ids=["its tokens", "its word", "its silence"],
)
def test_a_goal_that_is_not_reached_fails_with_its_reason(
    opencode: OpenCodeScene, steps: tuple[Step, ...], reason: str, told: str, calls: int
) -> None:
    outcome = opencode.perform(*steps, action=aim(1_000))
    assert (outcome.word, outcome.reason, opencode.calls) == ("failed", reason, calls)
    assert told in (outcome.error or "")


def test_a_goal_that_was_cut_off_goes_on_in_its_session_and_counts_what_it_took(opencode: OpenCodeScene) -> None:
    with opencode.performing(say("Half.", usage=(1000, 0)), HOLD, action=aim()) as (_, future):
        opencode.until(lambda: opencode.calls == 2)
        session = str(opencode.left.session)
        opencode.ask("POST", f"/session/{session}/abort")
        future.result(90)
    name = opencode.model.writes(opencode.name, say("Nearly."), say("GOAL REACHED"))
    resumes = Resumption(session=session, prompted=True, why="interrupted")
    done = opencode.runner().perform(opencode.assign(name, action=aim(), attempt=2, resumes=resumes), None)
    assert isinstance(done, Outcome)
    assert (done.word, done.agent["session"]) == ("succeeded", session)
    prompts = asked(opencode, done)
    assert ["That is a goal" in one for one in prompts] == [True, False, False, False]
    assert "You were interrupted" in prompts[2]
    assert "48," in prompts[3].partition("tokens left")[0], "what was taken before counts"


def test_a_goal_that_is_too_long_to_be_written_fails_before_anything_is_asked(opencode: OpenCodeScene) -> None:
    (opencode.work / "goal.md").write_text("x" * 5_001)
    outcome = opencode.perform(say("never"), action={"prompt": None, "prompt_file": "goal.md", **aim()})
    assert (outcome.word, outcome.reason, outcome.side_effect, opencode.calls) == ("failed", "preflight", False, 0)
    assert "5,001 characters" in (outcome.error or "")
