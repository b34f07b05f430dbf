"""How an agent's turn ended, judged: the agent's own word is believed only as far as the turn bears it out.

One table for all kinds of agents. A success is a turn that the agent itself ended, with something said, and with
nothing denied on which it then gave up.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Word = Literal["succeeded", "failed", "timed_out", "cancelled"]
End = Literal["ended", "refused", "cut_off", "max_steps", "cancelled", "error", "gone"]
"""What the agent's side came to: its own words for the end of a turn; `error`: it told one; `gone`: it told no end."""
Ours = Literal["cancel", "timeout", "idle", "question", "park", "max_steps", "goal"]
"""Why we asked for the end, the first reason first."""

PAGE = re.compile(r"\s*(?:<!doctype\s+html|<html)[\s>]", re.IGNORECASE)
API_ERROR = re.compile(r"\s*API Error\b[^\n]*\s*", re.IGNORECASE)
SHOWN_MOST = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """All that is known of a turn that is over."""

    end: End
    error: str | None = None
    """The agent's own words about an error, or how it went away."""
    said: str = ""
    """What the agent said since the last tool it used, or all of it where that was nothing."""
    said_anything: bool = False
    tools: int = 0
    stirred: bool = False
    """It showed something else of its work: thoughts, a plan, a question."""
    denied: tuple[str, ...] = ()
    """What it asked for and was denied."""
    said_since_denial: bool = False
    ours: Ours | None = None
    last_line: str | None = None
    """The last line of its standard error."""
    missed: tuple[str, str] | None = None
    """Why it has not reached its goal, though it ended: a reason and words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """The outcome's word, its reason of the closed set, and the text that every failure has."""

    word: Word
    reason: str | None = None
    error: str | None = None


def judge(turn: Turn) -> Judged:
    """Judge a turn. What we asked to end did not succeed, whatever the agent calls it afterwards."""
    if turn.ours is not None:
        return _ended_by_us(turn, turn.ours)
    match turn.end:
        case "error":
            return _failed("agent_error", turn.error or "the agent told an error without a word", turn)
        case "gone":
            return _failed("agent_error", turn.error or "the agent went away in the middle of its turn", turn)
        case "refused":
            return _failed("agent_refused", "the agent refused", turn, quote=True)
        case "cut_off":
            return _failed("cut_off", "the agent's answer was cut off at its limit of tokens", turn)
        case "max_steps":
            return _failed("max_steps", "the agent reached its own limit of requests in one turn", turn)
        case "cancelled":
            return _failed("agent_error", "the agent says that its turn was cancelled, and nobody here did", turn)
        case "ended":
            return _ended(turn)


def is_unseen(turn: Turn) -> bool:
    """Whether it failed before anything of it could be seen: nothing said, thought or used, and not ended by us."""
    stirred = turn.said_anything or turn.stirred or turn.tools or turn.denied or turn.said.strip()
    return turn.end in ("error", "gone") and turn.ours is None and not stirred


def _ended_by_us(turn: Turn, ours: Ours) -> Judged:
    match ours:
        case "cancel":
            return Judged(word="cancelled", reason="cancelled_by_hand", error="cancelled in the middle of its turn")
        case "timeout":
            return Judged(word="timed_out", reason="timeout", error=_with("ran longer than its timeout", turn))
        case "idle":
            text = "was silent for longer than its idle timeout"
            return Judged(word="timed_out", reason="idle", error=_with(text, turn))
        case "question" | "park":
            return Judged(word="failed", reason="question_denied", error=f"it asked for {_denied(turn)}")
        case "goal":
            text = "its goal is not reached, and the tokens for it are used up"
            return Judged(word="failed", reason="budget_exceeded", error=_with(text, turn))
        case "max_steps":
            text = "the agent asked its model again and again, more often than a turn may"
            return Judged(word="failed", reason="max_steps", error=_with(text, turn))


def _ended(turn: Turn) -> Judged:
    fault = fault_of(turn.said)
    if turn.denied and not turn.said_since_denial:
        text = f"the agent gave up when it was denied {_denied(turn)}"
        return Judged(word="failed", reason="question_denied", error=text)
    if not turn.said_anything:
        tools = f", after {turn.tools} uses of tools" if turn.tools > 1 else ", after one use of a tool"
        text = "the agent ended its turn without a word" + (tools if turn.tools else "")
        return Judged(word="failed", reason="agent_empty", error=_with(text, turn))
    if fault is not None:
        return Judged(word="failed", reason="agent_error", error=fault)
    if turn.missed is not None:
        return Judged(word="failed", reason=turn.missed[0], error=turn.missed[1])
    return Judged(word="succeeded")


def fault_of(said: str) -> str | None:
    """Say what an answer is that is none: a page of a web server, or the error of an API in the place of the answer."""
    if PAGE.match(said):
        return f"the answer is a web page, not an answer: {_short(said)}"
    if API_ERROR.fullmatch(said):
        return _short(said)
    text = said.strip()
    if text.startswith("{") and text.endswith("}"):
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            return None
        if isinstance(found, Mapping) and found.get("error") and (len(found) == 1 or found.get("type") == "error"):
            return f"the answer is an error: {_short(text)}"
    return None


def _failed(reason: str, text: str, turn: Turn, *, quote: bool = False) -> Judged:
    if quote and turn.said.strip():
        text = f"{text}: {_short(turn.said)}"
    return Judged(word="failed", reason=reason, error=_with(text, turn))


def _with(text: str, turn: Turn) -> str:
    return text if not turn.last_line or turn.last_line in text else f"{text}; its last line: {turn.last_line}"


def _denied(turn: Turn) -> str:
    return _short(turn.denied[-1]) if turn.denied else "a permission"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SHOWN_MOST else line[: SHOWN_MOST - 1] + "…"
