"""Asking an attempt that ended by itself for what its task calls a success: its status, its output, its file."""

import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from duly.core import successes
from duly.core.successes import TEXT_MOST, Seen, Written
from duly.core.turns import Judged
from duly.ports import Assignment, Outcome
from duly.runners import keeping, logs
from duly.runners.keeping import Exit

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIRST = "lock"
"""What is made first of an attempt's traces, and never written again."""


def outcome_of(ended: Exit, assignment: Assignment) -> Outcome:
    """Read an exit file as the outcome of this attempt, by its task's own rule where it has one."""
    outcome = keeping.outcome_from_exit(ended)
    rule = assignment.success_when
    if rule is None or not outcome.confirmed or outcome.reason not in (None, "exit_status"):
        return outcome
    if outcome.reason == "exit_status" and not successes.counts(rule, outcome.exit_code):
        return outcome  # its status is a failure with or without the rule, and has the better words
    data = logs.tail(assignment.folder, TEXT_MOST) if rule.matches is not None else b""
    seen = Seen(
        exit_code=outcome.exit_code,
        text=data.decode("utf-8", "replace"),
        asked=successes.asked(len(data), max(0, outcome.log_bytes - len(data)), "bytes"),
        file=_written(rule.file, cwd_of(assignment), assignment.folder),
    )
    fault = successes.unmet(rule, seen)
    if fault is not None:
        return replace(outcome, word="failed", reason="success_rule", error=fault)
    return replace(outcome, word="succeeded", reason=None, error=None)


def of_turn(judged: Judged, assignment: Assignment, *, said: str, cwd: str) -> Judged:
    """Ask the rule of an agent's turn that has succeeded so far; `said`: its answer, `cwd`: where it worked."""
    rule = assignment.success_when
    if rule is None or judged.word != "succeeded":
        return judged
    seen = Seen(
        text=said[-TEXT_MOST:],
        of="its answer",
        asked=successes.asked(min(len(said), TEXT_MOST), max(0, len(said) - TEXT_MOST), "characters"),
        file=_written(rule.file, cwd, assignment.folder),
    )
    fault = successes.unmet(rule, seen)
    return judged if fault is None else Judged(word="failed", reason="success_rule", error=fault)


def cwd_of(assignment: Assignment) -> str:
    """Give the folder in which an attempt works."""
    cwd = assignment.action.get("cwd")
    return cwd if isinstance(cwd, str) else str(Path.home())


def _written(name: str | None, cwd: str, folder: Path) -> Written:
    """Look at a file, and at what was made right before the work was started."""
    if name is None:
        return Written()
    try:
        at = _stamped(Path(cwd) / name)
    except FileNotFoundError:
        return Written()
    except (OSError, ValueError) as error:
        return Written(fault=error.strerror or "error" if isinstance(error, OSError) else "it is no file's name")
    try:
        since = _stamped(folder / FIRST)
    except OSError:
        return Written(at=at)
    return Written(at=at, since=since)


def _stamped(path: Path) -> datetime:
    return EPOCH + timedelta(microseconds=os.stat(path).st_mtime_ns // 1000)  # noqa: PTH116 - no stat of a Path is whole
