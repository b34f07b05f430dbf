"""Slash commands: a prompt whose first line is `/name arguments`, put into the template of that name.

Done before places of the prompt are filled, so that what is filled in is never taken apart, and a value that happens
to begin with a slash commands nothing. Agents that know their commands themselves are sent the prompt as it stands.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

CALL = re.compile(r"/(\S+)(?:[ \t]+|(?=\n)|$)", re.ASCII)
WORD = re.compile(r"""(?>\{\{[^{}]*\}\}|"[^"]*"|'[^']*'|[^\s"'{]|[{"'])++""")
"""One argument: blanks may stand in quotes, and in a place that will be filled. It never goes back."""
NUMBERED = re.compile(r"\$([0-9]{1,3})(?![0-9])")
ALL = "$ARGUMENTS"


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """What a prompt calls: a name, and all that follows it, further lines too, as it was written."""

    name: str
    arguments: str


def call_of(text: str) -> Call | None:
    """Give what a prompt calls, None where its first line begins with no slash and name."""
    found = CALL.match(text)
    return None if found is None else Call(name=found[1], arguments=text[found.end() :].strip("\n"))


def expand(text: str, commands: Mapping[str, str]) -> str:
    """Put a call into its template; a prompt that calls nothing, or nothing of these, stays as it is.

    `$ARGUMENTS` takes all that follows the name; else `$1`, `$2`, … take a word each, the highest of them the rest, and
    one that is missing is empty; else the arguments follow the template under a blank line.
    """
    call = call_of(text)
    template = None if call is None else commands.get(call.name)
    if call is None or template is None:
        return text
    if ALL in template:
        return template.replace(ALL, call.arguments)
    highest = max((int(one) for one in NUMBERED.findall(template)), default=0)
    if highest:
        values = _words(call.arguments, highest)
        return NUMBERED.sub(lambda one: values.get(int(one[1]), one[0]), template)
    return f"{template.rstrip()}\n\n{call.arguments}" if call.arguments else template


def _words(arguments: str, highest: int) -> dict[int, str]:
    """The arguments by their numbers from 1; the highest has all that is left, as it was written."""
    values = dict.fromkeys(range(1, highest + 1), "")
    at = 0
    for number in range(1, highest):
        found = WORD.search(arguments, at)
        if found is None:
            return values
        values[number] = _bare(found[0])
        at = found.end()
    rest = arguments[at:].strip()
    whole = WORD.fullmatch(rest)
    values[highest] = rest if whole is None else _bare(rest)
    return values


def _bare(word: str) -> str:
    """One word without the quotes that are around all of it."""
    quoted = len(word) > 1 and word[0] in "\"'" and word.find(word[0], 1) == len(word) - 1
    return word[1:-1] if quoted else word
