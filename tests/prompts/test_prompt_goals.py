"""What an agent says at the end of its answer about its goal, and what follows from that."""

import pytest

from duly.prompts.goals import TURNS_MOST, Goal, Missed, after, asked

GOAL = Goal(objective="Make it green.", tokens=50_000)


@pytest.mark.parametrize("said", ["GOAL REACHED", "All green.\n\n**Goal reached.**\n", "Yes\n> goal reached!"])
def test_a_goal_is_reached_when_the_agent_says_so_in_its_last_line(said: str) -> None:
    assert after(GOAL, said, left=-5, turns=TURNS_MOST) is None, "whatever it took"


@pytest.mark.parametrize(
    "said",
    ["", "Is the GOAL REACHED?", "GOAL REACHED\nNo, wait.", "I say GOAL REACHED then", "goal reached soon"],
)
def test_a_goal_that_the_agent_does_not_call_reached_is_gone_on_with(said: str) -> None:
    told = after(GOAL, said, left=1_234, turns=TURNS_MOST - 1)
    assert isinstance(told, str)
    assert "1,234 of 50,000 tokens left" in told
    assert told.endswith("The goal is:\n\nMake it green.")


def test_a_goal_ends_out_of_reach_with_the_agents_words_or_with_its_tokens_or_its_turns() -> None:
    beyond = after(GOAL, "Hm.\nGOAL OUT OF REACH: there is no compiler", left=9, turns=1)
    assert beyond == Missed(
        reason="agent_refused", told="the agent says that its goal is out of reach: there is no compiler"
    )
    spent = after(GOAL, "More to do.", left=0, turns=1)
    assert isinstance(spent, Missed)
    assert (spent.reason, "50,000 tokens" in spent.told) == ("budget_exceeded", True)
    turned = after(GOAL, "More to do.", left=9, turns=TURNS_MOST)
    assert isinstance(turned, Missed)
    assert turned.reason == "max_steps"


def test_what_is_asked_first_is_the_goal_with_what_it_may_take() -> None:
    told = asked(GOAL)
    assert told.startswith("Make it green.\n\n")
    assert "50,000 tokens" in told
