"""What the messages of a session say about one turn: how far it came, how it ended, what was said, what it cost.

Pure functions over what the server answers; whatever is missing or strange in it is passed over.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from duly.core import usage
from duly.core.turns import End
from duly.runners.opencode.api import words_of

REJECTED = ("The user rejected permission", "The user dismissed this question")
"""How the error of a tool begins that asked, and was denied."""
SAID_MOST = 1024 * 1024
DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
TAG = 7
TAGGED = slice(16, 16 + TAG)
"""Where the id of a message of ours says of which run it is: behind `msg_` and twelve digits of its time."""
STIRS = frozenset({"text", "reasoning", "tool", "patch", "file", "subtask", "agent"})
"""Parts of messages that show something of the agent's work."""
ENDS: Mapping[str, End] = {"stop": "ended", "length": "cut_off", "content-filter": "refused"}

Message = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A turn as its messages tell it; `end` is None where the last of them is not complete."""

    steps: int
    end: End | None
    error: str | None
    said: str
    said_anything: bool
    said_since_denial: bool
    tools: int
    stirred: bool
    """It shows anything of its work at all: words, thoughts, tools, more than one step."""
    rejected: int
    aborted: bool


def read(messages: Sequence[Message], asked: str) -> Reading:
    """Read what was answered since this message of ours; a summary made on the way is a step, and no words."""
    answers = since(messages, asked)
    said, anything, after, tools, rejected, last_error = "", False, False, 0, 0, None
    for part in _parts(one for one in answers if not _info(one).get("summary")):
        if part.get("type") == "text" and isinstance(part.get("text"), str):
            said = (said + part["text"])[:SAID_MOST]
            anything = anything or bool(part["text"].strip())
            after = after or bool(part["text"].strip())
        elif part.get("type") == "tool":
            said, tools = "", tools + 1
            state = part.get("state")
            last_error = str(state.get("error") or "") if isinstance(state, Mapping) else ""
            if last_error.startswith(REJECTED):
                rejected, after = rejected + 1, False
    end, error = _end(_info(answers[-1]), last_error) if answers else (None, None)
    return Reading(
        steps=len(answers),
        end=end,
        error=error,
        said=said,
        said_anything=anything,
        said_since_denial=after,
        tools=tools,
        stirred=len(answers) > 1 or any(part.get("type") in STIRS for part in _parts(answers)),
        rejected=rejected,
        aborted=bool(answers) and _name(_info(answers[-1]).get("error")) == "MessageAbortedError",
    )


def since(messages: Sequence[Message], asked: str) -> list[Message]:
    """Give the agent's messages that came after this one, oldest first: also those of a turn that was summed up."""
    at = next((at for at, one in enumerate(messages) if _info(one).get("id") == asked), len(messages))
    return [one for one in messages[at:] if _info(one).get("role") == "assistant"]


def cost(messages: Iterable[Message]) -> dict[str, float]:
    """Sum what these messages cost."""
    total: dict[str, float] = {}
    for message in messages:
        info = _info(message)
        if info.get("role") != "assistant":
            continue
        tokens = info.get("tokens")
        tokens = tokens if isinstance(tokens, Mapping) else {}
        cache = tokens.get("cache")
        cache = cache if isinstance(cache, Mapping) else {}
        given = (tokens.get("input"), cache.get("read"), cache.get("write"))
        for name, numbers in (
            ("tokens_in", given),
            ("tokens_out", (tokens.get("output"), tokens.get("reasoning"))),
            (usage.COST, (info.get("cost"),)),
        ):
            total[name] = total.get(name, 0) + sum(usage.number(one) or 0 for one in numbers)
    return total


def tokens(messages: Iterable[Message]) -> int:
    """Count the tokens that these messages took, in and out."""
    total = cost(messages)
    return int(sum(total.get(name, 0) for name in usage.TOKENS))


def summed(one: Mapping[str, float], other: Mapping[str, float]) -> dict[str, float]:
    """Add up what two sessions cost."""
    return {name: one.get(name, 0) + other.get(name, 0) for name in {**one, **other}}


def last_asked(messages: Sequence[Message], run: str | None = None) -> str | None:
    """Give the last message that was sent to the agent; by this run, where one is named."""
    asked = [str(_info(one).get("id")) for one in messages if _info(one).get("role") == "user"]
    asked = [one for one in asked if run is None or one[TAGGED] == tag_of(run)]
    return asked[-1] if asked else None


def was_asked_since(messages: Sequence[Message], asked: str) -> bool:
    """Whether anybody has asked something after this message; what the server tells itself is no asking."""
    at = next((at for at, one in enumerate(messages) if _info(one).get("id") == asked), len(messages))
    later = (one for one in messages[at + 1 :] if _info(one).get("role") == "user")
    return any(part.get("type") == "text" and not part.get("synthetic") for part in _parts(later))


def tag_of(run: str) -> str:
    """Give what the ids of a run's messages have in common, in the letters of the server's own."""
    return "".join(DIGITS[byte % len(DIGITS)] for byte in hashlib.sha256(run.encode()).digest()[:TAG])


def is_there(messages: Iterable[Message], asked: str) -> bool:
    """Whether a message of ours was taken."""
    return any(_info(one).get("id") == asked for one in messages)


def _end(info: Mapping[str, Any], tool_error: str | None) -> tuple[End | None, str | None]:
    error, finish, time = info.get("error"), info.get("finish"), info.get("time")
    if error:
        name = _name(error)
        words = words_of(error) or name
        if name == "MessageAbortedError":
            return "cancelled", None
        return ("cut_off", None) if name == "MessageOutputLengthError" else ("error", words)
    if not isinstance(time, Mapping) or not time.get("completed"):
        return None, None
    if finish == "tool-calls":
        return ("ended", None) if (tool_error or "").startswith(REJECTED) else ("error", _after_tools(tool_error))
    if finish is None:
        return "cancelled", None  # this is how a turn ends that is aborted while it waits for its provider
    return ENDS.get(str(finish), "error"), None if finish in ENDS else f"the model's answer ended by {finish!r}"


def _after_tools(tool_error: str | None) -> str:
    told = "the agent ended after a tool, and did not go on"
    return f"{told}: {tool_error}" if tool_error else told


def _parts(messages: Iterable[Message]) -> Iterator[Mapping[str, Any]]:
    for message in messages:
        parts = message.get("parts")
        yield from (one for one in parts if isinstance(one, Mapping)) if isinstance(parts, list) else ()


def _info(message: Message) -> Mapping[str, Any]:
    found = message.get("info")
    return found if isinstance(found, Mapping) else {}


def _name(error: object) -> str:
    return str(error.get("name")) if isinstance(error, Mapping) else ""
