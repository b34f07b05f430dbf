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

NOTHING_INHERITED: Mapping[str, str] = {}
ALWAYS_TOLD = frozenset({"on_missed", "max_age", "grace", "overlap", "timeout", "on_interrupt"})
TOLD_WITH: Mapping[str, tuple[str, str]] = {
    "answer_within": ("unattended", "park"),
    "then": ("unattended", "park"),
    # A rule that counts only where another has this value.
    "at_most": ("on_missed", "run_all"),
    "offer_for": ("on_missed", "offer"),
    "queue": ("overlap", "queue"),
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


def rules_told(
    rules: Mapping[str, object], own: Collection[str], inherited: Mapping[str, str] = NOTHING_INHERITED
) -> list[str]:
    """Tell rules a line each with whose they are; a built-in default that does not matter for the task is left out."""
    from duly.core.rule_fields import RULES

    told = []
    for field in RULES:
        name = field.name
        if name not in rules:
            continue
        whose = "" if name in own else f" ({inherited[name]}'s default)" if name in inherited else " (default)"
        if whose == " (default)" and not _matters(name, rules):
            continue
        text = field.default_text if rules[name] is None else rule_text(rules[name])
        told.append(f"{name} {text}{whose}")
    return told


def rule_text(value: object) -> str:
    """Write one rule's value as a person would type it."""
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case {"argv": argv, "timeout": timeout, "on_error": on_error}:
            line = argv[2] if list(argv[:2]) == ["sh", "-c"] and len(argv) == 3 else shlex.join(argv)
            return f"{line} (within {timeout}, {on_error} on error)"
        case {"exit": _} | {"matches": _} | {"file": _}:
            parts = cast(Mapping[str, object], value)
            return " ".join(shlex.quote(f"{part}={_numbers(asked)}") for part, asked in parts.items())
        case Mapping():
            return " ".join(f"{key}={weight}" for key, weight in value.items()) or "none"
        case [{"tool": _}, *_]:
            return " ".join(permission_text(one) for one in cast(Sequence[Mapping[str, object]], value))
        case list() | tuple():
            return " ".join(str(one) for one in value) or "none"
        case _:
            return str(value)


def _numbers(asked: object) -> str:
    return ",".join(map(str, asked)) if isinstance(asked, list) else str(asked)


def permission_text(one: Mapping[str, object]) -> str:
    """Write one permission as it would be typed."""
    pattern = "" if one.get("pattern", "*") == "*" else f":{one['pattern']}"
    return shlex.quote(f"{one['tool']}{pattern}={one['action']}")


def _matters(name: str, rules: Mapping[str, object]) -> bool:
    """Whether a person wants to know a built-in default: it is asked for this task sooner or later."""
    if name in ALWAYS_TOLD:
        return True
    if name in {"retry_after", "retry_up_to"}:
        return rules.get("retries") not in (0, None)
    if name in {"idle_timeout", "unattended"}:
        return rules.get("idle_timeout") is not None
    partner = TOLD_WITH.get(name)
    return partner is not None and rules.get(partner[0]) == partner[1]
