"""Small words for people: marks and colours of outcomes, states, what a command is."""

import shlex
import sys
from collections.abc import Collection, Mapping, Sequence
from typing import cast

MARKS: Mapping[str, tuple[str, str, str]] = {
    # outcome or state → (mark, mark in plain letters, colour)
    "succeeded": ("✓", "+", "green"),
    "failed": ("✗", "x", "red"),
    "timed_out": ("⏱", "t", "red"),
    "cancelled": ("⊘", "c", "yellow"),
    "abandoned": ("‼", "!", "red"),
    "skipped": ("↷", "s", "yellow"),
    "running": ("▶", ">", "blue"),
    "waiting": ("…", ".", "cyan"),
    "parked": ("⏸", "p", "yellow"),
}


def mark(word: str) -> str:
    """Give the mark of an outcome or state, in letters where the stream has no others."""
    fancy, letter, _ = MARKS.get(word, ("·", "-", ""))
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    return fancy if encoding == "utf8" else letter


def colour(word: str) -> tuple[str, ...]:
    """Give the colour of an outcome or state; the mark and the word say the same."""
    found = MARKS.get(word, ("", "", ""))[2]
    return (found,) if found else ()


def told(word: str) -> str:
    """Tell an outcome or state with its mark."""
    return f"{mark(word)} {word.replace('_', ' ')}"


def failure(*, reason: object, error: object, exit_code: object) -> str:
    """Tell why a run ended as it did: a status that was not 0 comes before the words the command left."""
    said = str(error or reason or "").strip()
    if reason != "exit_status" or exit_code is None:
        return said
    return f"exit {exit_code}" if said in {reason, f"exit status {exit_code}"} else f"exit {exit_code}: {said}"


def command_text(action: Mapping[str, object]) -> str:
    """Write a command as it would be typed."""
    if "shell" in action:
        return f"sh -c {shlex.quote(str(action['shell']))}"
    return shlex.join(cast(Sequence[str], action.get("argv", ())))


def many(count: int, one: str, several: str | None = None) -> str:
    """Count things: `1 task`, `3 tasks`."""
    return f"{count:,} {one if count == 1 else several or one + 's'}"


def rules_told(rules: Mapping[str, object], own: Collection[str]) -> list[str]:
    """Tell rules a line each, defaults marked as such; a default that does not matter is left out."""
    from duly.core.rule_fields import RULES

    by_name = {field.name: field for field in RULES}
    told = []
    for name, value in rules.items():
        if name == "queue" and name not in own and rules.get("overlap") != "queue":
            continue
        text = by_name[name].default_text if value is None else value
        if text is not None:
            told.append(f"{name} {text}" + ("" if name in own else " (default)"))
    return told
