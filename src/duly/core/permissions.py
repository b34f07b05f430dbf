"""What an agent is answered that asks for a permission while nobody is there.

A question is about a tool (its kind in the agent's words: `execute`, `edit`, `read`, `fetch`, …; or its title) and
about subjects: the command line that it would run, else the places it would touch, else its title.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal

Unattended = Literal["deny", "allow", "fail", "park"]
Then = Literal["fail", "deny"]
"""What the deadline of a question decides that nobody has answered."""
Answer = Literal["allow", "deny"]
ANY = "*"
JOINING = ("\n", ";", "&", "|", "`", "$(", "<", ">")
"""What makes several commands of one line: a pattern that names none of these means none of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Permission:
    """One rule: a tool and a pattern of what it would do, both with `*` and `?`, and the answer."""

    tool: str
    pattern: str = ANY
    action: Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What an agent asks to be allowed."""

    tools: tuple[str, ...]
    """The names of the tool: its kind, and its title."""
    command: str | None
    places: tuple[str, ...]
    title: str


def permission_to_json(one: Permission) -> dict[str, object]:
    """Write a rule as JSON has it."""
    return {"tool": one.tool, "pattern": one.pattern, "action": one.action}


def answer_to(question: Question, permissions: Sequence[Permission], unattended: Unattended) -> Unattended:
    """Give the answer: of the rules that fit the last decides, and where none does, what holds for the unattended."""
    for one in reversed(permissions):
        if _fits(one, question):
            return one.action
    return unattended


def question_of(tool_call: Mapping[str, object]) -> Question:
    """Read what an agent says about the tool call that it asks for; whatever is missing or strange is left out."""
    title, kind = str(tool_call.get("title") or ""), str(tool_call.get("kind") or "other")
    given = tool_call.get("rawInput")
    command = _command(given.get("command", given.get("cmd"))) if isinstance(given, Mapping) else None
    locations = tool_call.get("locations")
    places = tuple(_places(locations if isinstance(locations, list) else ()))
    return Question(tools=(kind, title) if title else (kind,), command=command, places=places, title=title or kind)


def facts_of(question: Question) -> dict[str, object]:
    """Give what makes a question the same when it is asked again."""
    return {"tools": list(question.tools), "command": question.command, "places": list(question.places)}


def told(question: Question) -> str:
    """Tell in a line what was asked for."""
    what = question.command or ", ".join(question.places)
    return f"{question.title}: {what}" if what and what != question.title else question.title


def _fits(one: Permission, question: Question) -> bool:
    if not any(fnmatchcase(tool, one.tool) for tool in question.tools):
        return False
    if one.pattern == ANY:
        return True
    subjects = (question.command,) if question.command is not None else question.places or (question.title,)
    if one.action == "deny":
        return any(fnmatchcase(subject, one.pattern) for subject in subjects)
    return all(fnmatchcase(subject, one.pattern) for subject in subjects) and not _says_more(one, question)


def _says_more(one: Permission, question: Question) -> bool:
    """Whether the line joins commands in a way that the pattern does not: `git *` is no leave for `git x; rm y`."""
    return question.command is not None and any(
        mark in question.command and mark not in one.pattern for mark in JOINING
    )


def _command(given: object) -> str | None:
    if isinstance(given, str):
        return given
    if isinstance(given, list) and all(isinstance(word, str) for word in given):
        return " ".join(given)
    return None


def _places(locations: Iterable[object]) -> Iterable[str]:
    for one in locations:
        if isinstance(one, Mapping) and isinstance(one.get("path"), str):
            yield one["path"]
