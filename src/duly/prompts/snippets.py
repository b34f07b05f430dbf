"""Snippets: `#name` in a prompt stands for a text of that name, which may name others; their number is bounded."""

import re
from collections.abc import Callable
from dataclasses import dataclass

NAMED = re.compile(r"(?<![\w#&/\\-])#([\w-]{1,80})(?![\w-])")
EXPANSIONS_MOST = 15
"""Snippets that are put into one prompt, those inside of others too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expanded:
    """A prompt with its snippets put in: how many there are, and the names that were left as they stand."""

    text: str
    count: int
    left: tuple[str, ...]


def expand(text: str, find: Callable[[str], str | None]) -> Expanded:
    """Put in what `find` has for each name; what it has not stays, and so does a snippet inside of itself."""
    maker = _Expanding(find)
    made = maker.of(text, ())
    return Expanded(text=made, count=maker.count, left=tuple(dict.fromkeys(maker.left)))


class _Expanding:
    """Counts what was put into one prompt, and finds each text once."""

    def __init__(self, find: Callable[[str], str | None]) -> None:
        self._find = find
        self._known: dict[str, str | None] = {}
        self.count = 0
        self.left: list[str] = []

    def of(self, text: str, around: tuple[str, ...]) -> str:
        return NAMED.sub(lambda found: self._put(found, around), text)

    def _put(self, found: re.Match[str], around: tuple[str, ...]) -> str:
        name = found[1]
        if name not in self._known:
            self._known[name] = self._find(name)
        text = self._known[name]
        if text is None:
            return found[0]
        if name in around or self.count >= EXPANSIONS_MOST:
            self.left.append(name)
            return found[0]
        self.count += 1
        return self.of(text.strip("\n"), (*around, name))
