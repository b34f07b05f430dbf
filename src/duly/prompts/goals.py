"""Goals: what an agent is told that goes on, turn after turn, until its goal is reached; and its own word for that."""

import re
from dataclasses import dataclass

TURNS_MOST = 100
WHY_MOST = 300
TRIMMED = " \t*_`#>.!"
REACHED = "GOAL REACHED"
BEYOND = "GOAL OUT OF REACH"
BEYOND_WHY = re.compile(rf"{BEYOND}[\W_]*(.*)", re.IGNORECASE)
WORDS = (
    f"End your answer with the line {REACHED} when it is reached and you have checked that, or with the line"
    f" {BEYOND}: and why, when you cannot reach it. Without one of these lines you will be told to go on."
)
ASKED = "{objective}\n\nThat is a goal, and you have {tokens:,} tokens for it. Work on until it is reached. " + WORDS
AGAIN = (
    "You did not say that the goal is reached. Go on with it from where you are, and do not repeat what is done. You"
    " have {left:,} of {tokens:,} tokens left. " + WORDS + " The goal is:\n\n{objective}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """What is to be reached, and for how many tokens."""

    objective: str
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Missed:
    """Why a goal is not pursued any more: a reason of an end, and words."""

    reason: str
    told: str


def asked(goal: Goal) -> str:
    """Give what is asked first."""
    return ASKED.format(objective=goal.objective, tokens=goal.tokens)


def after(goal: Goal, said: str, *, left: int, turns: int) -> str | Missed | None:
    """Judge an answer, after so many turns: what is asked next, why nothing is, or None where the goal is reached."""
    last = said.strip().rpartition("\n")[2].strip(TRIMMED)
    if last.upper() == REACHED:
        return None
    beyond = BEYOND_WHY.fullmatch(last)
    if beyond is not None:
        why = beyond[1][:WHY_MOST] or "it does not say why"
        return Missed(reason="agent_refused", told=f"the agent says that its goal is out of reach: {why}")
    if left <= 0:
        told = f"its goal is not reached, and the {goal.tokens:,} tokens for it are used up"
        return Missed(reason="budget_exceeded", told=told)
    if turns >= TURNS_MOST:
        return Missed(reason="max_steps", told=f"its goal is not reached after {turns} turns")
    return AGAIN.format(left=left, tokens=goal.tokens, objective=goal.objective)
