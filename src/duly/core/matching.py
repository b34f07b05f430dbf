"""Regular expressions that cannot hang: a text is read once from its begin to its end, whatever the expression says.

The syntax is Python's, without what goes back in the text: a group again, what stands ahead or behind. `^` and
`$` stand at the begin and the end of each line. All ways that an expression can go are followed at once, so that the
time grows with the text and the size of the expression, and never with the number of ways.
"""

import importlib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from duly.errors import Invalid

EXPRESSION_MOST = 500
"""Characters of an expression."""
STATES_MOST = 1_000
"""Places in an expression, with its counted repetitions written out."""
KEPT_MOST = 4_096
"""Steps that are remembered while one text is read."""
Test = Callable[[str], bool]
Edge = tuple[int, str | None]
"""Where a way goes on without a character, and what must hold at that place of the text."""
REFUSED: Mapping[str, str] = {
    "ASSERT": "looks ahead or behind",
    "ASSERT_NOT": "looks ahead or behind",
    "GROUPREF": "refers back to a group",
    "GROUPREF_EXISTS": "refers back to a group",
    "ATOMIC_GROUP": "forbids going back",
    "POSSESSIVE_REPEAT": "forbids going back",
}
CATEGORIES: Mapping[str, Test] = {
    "CATEGORY_DIGIT": str.isdecimal,
    "CATEGORY_SPACE": str.isspace,
    "CATEGORY_WORD": lambda char: char.isalnum() or char == "_",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Expression:
    """An expression as the places between which it moves: by nothing but what stands around, and by a character."""

    text: str
    edges: tuple[tuple[Edge, ...], ...]
    steps: tuple[tuple[Test, int] | None, ...]
    start: int
    end: int


@lru_cache(maxsize=64)
def expression(text: str) -> Expression:
    """Read an expression; Invalid where it is none, or one that needs to go back or is too large."""
    if len(text) > EXPRESSION_MOST:
        raise Invalid(f"it has {len(text):,} characters, and {EXPRESSION_MOST:,} are allowed")
    parser: Any = importlib.import_module("re._parser")  # what `re` itself reads with, in every version of ours
    try:
        read = parser.parse(text, re.MULTILINE)
    except (re.error, OverflowError) as bad:
        at = getattr(bad, "pos", None)
        raise Invalid(f"it is no regular expression: {getattr(bad, 'msg', bad)}", text=text, at=at) from bad
    except RecursionError as deep:
        raise Invalid("it is no regular expression that can be read: it is nested too deeply") from deep
    if read.state.flags & re.ASCII:
        raise Invalid("it has the flag a, and text is read as Unicode here")
    maker = _Maker()
    start = maker.place()
    end = maker.follow(read, start, read.state.flags)
    return Expression(text=text, edges=tuple(map(tuple, maker.edges)), steps=tuple(maker.steps), start=start, end=end)


def found(wanted: Expression, text: str) -> bool:
    """Say whether the expression is met anywhere in the text."""
    closed: dict[tuple[frozenset[int], str, str], frozenset[int]] = {}
    moved: dict[tuple[frozenset[int], str], frozenset[int]] = {}
    states: frozenset[int] = frozenset()
    before = "start"
    for at in range(len(text) + 1):
        char = text[at] if at < len(text) else ""
        after = _kind(char) if char else "end"
        if char == "\n" and at == len(text) - 1:
            after = "last"
        key = (states, before, after)
        if key not in closed:
            closed[key] = _closed(wanted, states, before, after)
        states = closed[key]
        if wanted.end in states:
            return True
        if (states, char) not in moved:
            steps = (wanted.steps[one] for one in states)
            moved[states, char] = frozenset(step[1] for step in steps if char and step is not None and step[0](char))
        states, before = moved[states, char], _kind(char)
        if len(closed) > KEPT_MOST or len(moved) > KEPT_MOST:
            closed.clear()
            moved.clear()
    return False


def _closed(wanted: Expression, states: frozenset[int], before: str, after: str) -> frozenset[int]:
    """All places reached from these, and anew from the start, without taking a character."""
    reached = {wanted.start, *states}
    open_ = list(reached)
    while open_:
        for place, holds in wanted.edges[open_.pop()]:
            if place not in reached and (holds is None or _holds(holds, before, after)):
                reached.add(place)
                open_.append(place)
    return frozenset(reached)


def _kind(char: str) -> str:
    return "line" if char == "\n" else "word" if CATEGORIES["CATEGORY_WORD"](char) else "other"


def _holds(what: str, before: str, after: str) -> bool:
    match what:
        case "AT_BEGINNING_LINE":
            return before in ("start", "line")
        case "AT_BEGINNING" | "AT_BEGINNING_STRING":
            return before == "start"
        case "AT_END_LINE":
            return after in ("end", "line", "last")
        case "AT_END":
            return after in ("end", "last")
        case "AT_END_STRING":
            return after == "end"
        case "AT_BOUNDARY":
            return (before == "word") != (after == "word")
        case _:
            assert what == "AT_NON_BOUNDARY"
            return (before == "word") == (after == "word") and not (before == "start" and after == "end")


class _Maker:
    """Gathers places and the ways between them while an expression is walked through."""

    def __init__(self) -> None:
        self.edges: list[list[Edge]] = []
        self.steps: list[tuple[Test, int] | None] = []

    def place(self) -> int:
        if len(self.edges) >= STATES_MOST:
            raise Invalid("it is too large, with its counted repetitions written out", hint="+ or * in their place")
        self.edges.append([])
        self.steps.append(None)
        return len(self.edges) - 1

    def follow(self, items: Iterable[tuple[Any, Any]], at: int, flags: int) -> int:
        """Add these parts, one after the other, from a place on; give the place behind them."""
        for code, given in items:
            at = self._part(str(code), given, at, flags)
        return at

    def _part(self, code: str, given: Any, at: int, flags: int) -> int:
        if code in REFUSED:
            raise Invalid(f"it {REFUSED[code]}, which can take time without end, and is not read here")
        match code:
            case "BRANCH":
                behind = self.place()
                for one in given[1]:
                    self._join(self.follow(one, self._from(at), flags), behind)
                return behind
            case "SUBPATTERN":
                _, added, removed, inside = given
                return self.follow(inside, at, (flags | added) & ~removed)
            case "MAX_REPEAT" | "MIN_REPEAT":
                least, most, inside = given
                return self._repeated(least, most, inside, at, flags)
            case "AT":
                behind = self.place()
                holds = str(given)
                if flags & re.MULTILINE and holds in ("AT_BEGINNING", "AT_END"):
                    holds += "_LINE"
                self.edges[at].append((behind, holds))
                return behind
            case _:
                behind = self.place()
                self.steps[at] = (_test(code, given, flags), behind)
                return behind

    def _repeated(self, least: int, most: Any, inside: Any, at: int, flags: int) -> int:
        for _ in range(least):
            at = self.follow(inside, self._from(at), flags)
        if str(most) == "MAXREPEAT":
            around = self._from(at)
            self._join(self.follow(inside, self._from(around), flags), around)
            return self._from(around)
        behind = self.place()
        for _ in range(int(most) - least):
            self._join(at, behind)
            at = self.follow(inside, self._from(at), flags)
        self._join(at, behind)
        return behind

    def _from(self, at: int) -> int:
        """A new place right behind one, so that nothing else leads away from it."""
        behind = self.place()
        self._join(at, behind)
        return behind

    def _join(self, at: int, to: int) -> None:
        self.edges[at].append((to, None))


def _test(code: str, given: Any, flags: int) -> Test:
    """Give what says whether one character fits."""
    test = _exact(code, given, flags)
    if not flags & re.IGNORECASE:
        return test
    if code == "NOT_LITERAL" or (code == "IN" and str(given[0][0]) == "NEGATE"):
        return lambda char: all(test(one) for one in (char, char.lower(), char.upper()) if len(one) == 1)
    return lambda char: any(test(one) for one in (char, char.lower(), char.upper()) if len(one) == 1)


def _exact(code: str, given: Any, flags: int) -> Test:
    match code:
        case "LITERAL":
            return chr(given).__eq__
        case "NOT_LITERAL":
            return chr(given).__ne__
        case "ANY":
            return (lambda _: True) if flags & re.DOTALL else "\n".__ne__
        case "RANGE":
            low, high = map(chr, given)
            return lambda char: low <= char <= high
        case "CATEGORY":
            name = str(given)
            known = CATEGORIES[name.replace("_NOT_", "_")]
            return (lambda char: not known(char)) if "_NOT_" in name else known
        case _:
            assert code == "IN", code
            negated = str(given[0][0]) == "NEGATE"
            tests = [_exact(str(part), value, flags) for part, value in given[1 if negated else 0 :]]
            return lambda char: any(test(char) for test in tests) != negated
