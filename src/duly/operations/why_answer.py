"""The answer of `why` in words: its first line, the sentence of its reason, and that of each trouble."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from duly.core import sentences
from duly.core.figures import UTC_WALL, Wall, distance
from duly.core.lateness import GRACE_MOST
from duly.core.run import Run
from duly.operations.lookup import ending, told
from duly.operations.why_since import Line
from duly.operations.why_values import Fate, Trouble, Why

QUIET = frozenset({"succeeded", "never_due"})
"""Fates after which the next instant is what one wants to know."""
WAITS = frozenset({"waiting", "parked"})
RAN = frozenset({"succeeded", "failed", "timed_out", "cancelled", "abandoned"})


def first_line(found: Why, wall: Wall = UTC_WALL) -> str:
    """Say the answer in one sentence, with instants on a zone's wall or in UTC.

    Asked without an instant, what stands in the way of every start comes before what became of the last one.
    """
    if found.asked_at is None and found.kind == "task" and found.troubles:
        figures = {"name": _name(found), "because": trouble(found.troubles[0], wall)}
        return sentences.first_line("stands_still", figures, wall)
    said = sentences.first_line(found.fate.word, _figures(found, wall), wall)
    following = found.after
    if found.asked_at is None and found.kind == "task" and following is not None and found.fate.word in QUIET:
        return f"{said}; next due in {distance(following.due_at - found.now)}"
    return said


def because(found: Why, wall: Wall = UTC_WALL) -> str | None:
    """Say the reason of a fate with its figures; None where there is none."""
    fate = found.fate
    if fate.word in WAITS and found.waiting_for is not None:
        figures = waiting_figures(found.waiting_for)
        return sentences.sentence("waiting", str(found.waiting_for["what"]), figures, wall)
    return None if fate.reason is None else _because(fate, wall)


def _because(fate: Fate, wall: Wall) -> str:
    assert fate.reason is not None
    said = sentences.sentence(fate.use, fate.reason, fate.figures, wall)
    refused = fate.figures.get("refused")
    if fate.use == "ended" and isinstance(refused, str) and refused != fate.reason:
        return f"{said}; it was not tried again: {sentences.sentence('no_start', refused, fate.figures, wall)}"
    tries = fate.run.attempt if fate.run is not None and fate.use == "ended" else 1
    return f"{said} (attempt {tries})" if tries > 1 else said


def line_text(line: Line, wall: Wall = UTC_WALL) -> str | None:
    """Say why an instant, or a stretch of them, did not run as planned."""
    if line.fate == "succeeded":
        return sentences.sentence("ended", "late", line.figures, wall)
    return None if line.reason is None else sentences.sentence(line.use, line.reason, line.figures, wall)


def trouble(one: Trouble, wall: Wall = UTC_WALL) -> str:
    """Say what stands in the way of a start."""
    return sentences.sentence("ahead", one.what, one.figures, wall)


def waiting_figures(waits: Mapping[str, object]) -> dict[str, object]:
    """Give the figures of what a run waits for, those that are there."""
    return {name: value for name, value in waits.items() if value is not None and name != "what"}


def reason_of(fate: Fate, waits: Mapping[str, object] | None) -> str | None:
    """Give the word of a fate's reason; of a waiting run what it waits for."""
    return str(waits["what"]) if fate.word in WAITS and waits is not None else fate.reason


def _named(found: Why) -> str:
    """The task by its name; asked without an instant, with how long ago its last one was."""
    name = _name(found)
    if found.kind == "run" and found.run is not None:
        return f"{name}, run {ending(found.run.id)},"
    if found.asked_at is not None or found.at is None:
        return name
    return f"{name}, last due {distance(found.now - found.at)} ago,"


def _name(found: Why) -> str:
    name = found.run.task if found.task is None and found.run is not None else ""
    return told(found.task) if found.task is not None else name


def _figures(found: Why, wall: Wall = UTC_WALL) -> dict[str, object]:
    past = found.at is not None and found.at <= found.now
    figures: dict[str, object] = {
        **found.fate.figures,
        "name": _named(found),
        "is": "was" if past else "is",
        "because": because(found, wall),
    }
    figures.pop("late_by_s", None)
    run = found.fate.run
    if run is not None:
        figures |= _run_figures(found, run)
    elif found.at is not None and past:
        figures["late_by_s"] = (found.now - found.at).total_seconds()
    return {name: value for name, value in figures.items() if value is not None}


def _run_figures(found: Why, run: Run) -> dict[str, object]:
    figures: dict[str, object] = {}
    if run.state == "held" and run.started_at is not None and found.asked_at in (None, found.at):
        figures["running_for_s"] = _whole(found.now, run.started_at)
        if found.waiting_for is not None and found.waiting_for["what"] == "gate":
            figures["asking_for_s"] = figures["running_for_s"]
        if found.waiting_for is not None and found.waiting_for["what"] == "question":
            figures |= {"question": found.waiting_for["key"], "answer_until": found.waiting_for["until"]}
        if run.stopping_since is not None:
            figures["stopping_for_s"] = _whole(found.now, run.stopping_since)
        if found.held_by is not None and found.held_by.row is not None:
            figures |= {"host": found.held_by.row.host, "pid": str(found.held_by.row.pid)}
    if run.outcome in RAN and run.started_at is not None:
        late = run.started_at - run.due_at
        if late > GRACE_MOST or (run.opened_by == "catch_up" and late > timedelta(0)):
            figures["late_by_s"] = late.total_seconds()
    return figures


def _whole(now: datetime, since: datetime) -> int:
    return int((now - since).total_seconds())
