"""What a success is for a task that says it itself: an exit status, words in what was written, a file.

All that the rule names must hold. It judges attempts that ended by themselves: what was cancelled, ran out of its
time, or failed before it began has failed whatever the rule says.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from duly.core import matching
from duly.core.spans import write_instant

PARTS = ("exit", "matches", "file")
TEXT_MOST = 65_536
"""Bytes of a command's output, or characters of an agent's answer, of which `matches` is asked: the last ones."""
KINDS: Mapping[str, tuple[str, ...]] = {"command": PARTS, "agent": ("matches", "file"), "http": ("matches",)}
"""What can be asked of which kind of action."""
SHOWN_MOST = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Success:
    """A rule; None where it does not ask. `exit`: any of them will do; `file` is relative to the folder of the work."""

    exit: tuple[int, ...] | None = None
    matches: str | None = None
    file: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A file as it stands after the attempt: when it was written, None where there is none; why it cannot be seen."""

    at: datetime | None = None
    since: datetime | None = None
    """When the attempt began, by the clock that stamps files; None where that is not known."""
    fault: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What an attempt that ended by itself has left, as far as its rule asks."""

    exit_code: int | None = None
    text: str = ""
    of: str = "its output"
    asked: str = ""
    """How much `text` is, and how much before it was left out, in words."""
    file: Written = Written()


def success_to_json(rule: Success) -> dict[str, object]:
    """Write a rule as JSON has it."""
    exits = rule.exit and (rule.exit[0] if len(rule.exit) == 1 else list(rule.exit))
    given = {"exit": exits, "matches": rule.matches, "file": rule.file}
    return {name: value for name, value in given.items() if value is not None}


def counts(rule: Success, exit_code: int | None) -> bool:
    """Whether an attempt with this exit status has succeeded, as far as the status goes."""
    return exit_code in (rule.exit or (0,))


def unmet(rule: Success, seen: Seen) -> str | None:
    """Say in words, with the figures, what of the rule does not hold; None where all of it does."""
    if rule.exit is not None and not counts(rule, seen.exit_code):
        wanted = " or ".join(map(str, rule.exit))
        return f"exit status {seen.exit_code}, and the task's success is exit status {wanted}"
    if rule.matches is not None and not matching.found(matching.expression(rule.matches), seen.text):
        return f"nothing in {seen.of} matches {_shown(rule.matches)} ({seen.asked})"
    return None if rule.file is None else _unwritten(rule.file, seen.file)


def asked(count: int, left_out: int, unit: str) -> str:
    """Say of how much of what was written a rule was asked."""
    if left_out:
        return f"the last {count:,} {unit} were asked, {left_out:,} before them were not"
    return f"all {count:,} {unit} were asked"


def _unwritten(name: str, file: Written) -> str | None:
    if file.fault is not None:
        return f"the file {_shown(name)} cannot be looked at: {file.fault}"
    if file.at is None:
        return f"there is no file {_shown(name)}"
    if file.since is None:
        return f"whether the file {_shown(name)} is new cannot be told: when the attempt began is not known"
    if file.at < file.since:
        at, since = write_instant(file.at), write_instant(file.since)
        return f"the file {_shown(name)} is old: it was written {at}, and the attempt began {since}"
    return None


def _shown(text: str) -> str:
    return text if len(text) <= SHOWN_MOST else text[: SHOWN_MOST - 1] + "…"
