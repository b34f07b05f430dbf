"""The gate: a program that is asked before each start whether the attempt may begin.

It runs under a keeper like the work, in a folder inside the attempt's, with the work's folder, environment and names.
That folder is there exactly while the gate is asked: as long as it is, nothing of the work has begun.
"""

import contextlib
import shutil
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Literal

from duly.core.spans import write_span
from duly.core.task import Gate
from duly.ports import Assignment, Detached, How, Outcome
from duly.runners import folders, logs
from duly.runners.command import Command
from duly.runners.keeping import ESCAPES
from duly.runners.nurseries import Nursery

NOT_NOW = frozenset({1, 75})
"""Exit statuses that say: not now. 0 says go; any other is no answer."""
GRACE = timedelta(seconds=5)
"""Between TERM and KILL for a gate that must end."""
READ_BYTES = 4_096
SAID_MOST = 200
"""Characters that are kept of what a gate says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Open:
    """The attempt may begin; `said`: the first line of the gate, or why it could not be asked and that is no matter."""

    said: str | None
    asked: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed:
    """The attempt does not begin: the gate said not now, or could not be asked."""

    reason: Literal["gate_closed", "gate_failed"]
    told: str
    exit_code: int | None = None
    said: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """The asking was ended by its holder, or the attempt was taken away meanwhile."""


class Asking:
    """One attempt's question to its gate. `stop` may come before, while and after it is asked, from any thread."""

    def __init__(self, nursery: Nursery, gate: Gate) -> None:
        self._gate = gate
        self._command = Command(nursery, grace=GRACE)

    def ask(self, assignment: Assignment) -> Open | Closed | Stopped:
        """Ask in the caller's thread, and come back when nothing of the gate lives."""
        try:
            folders.make_folder(assignment.folder)
        except OSError as error:
            return self._unasked(f"the attempt's folder cannot be made: {error}")
        outcome = self._command.perform(_of_gate(assignment, self._gate), None)
        said = _first_line(_folder(assignment))
        if not _clear(assignment):
            return Closed(reason="gate_failed", told="the gate's folder cannot be removed")
        assert not isinstance(outcome, Detached), "nobody asks a gate to be let go"
        return self._answer(outcome, said)

    def stop(self, how: How) -> None:
        """End the asking; a gate is never handed over."""
        self._command.stop("kill" if how == "kill" else "term")

    def _answer(self, outcome: Outcome, said: str | None) -> Open | Closed | Stopped:
        if outcome.word == "cancelled" or outcome.reason == "fence_lost":
            return Stopped()
        if outcome.confirmed and outcome.exit_code == 0 and outcome.word == "succeeded":
            return Open(said=said)
        if outcome.confirmed and outcome.exit_code in NOT_NOW and outcome.word == "failed":
            told = f"the gate said not now (exit status {outcome.exit_code})"
            return Closed(reason="gate_closed", told=_with(told, said), exit_code=outcome.exit_code, said=said)
        why = outcome.error or outcome.reason or outcome.word
        if outcome.confirmed and outcome.word == "timed_out":
            why = f"it took longer than {write_span(self._gate.timeout)}"
        elif outcome.confirmed and outcome.exit_code is not None:
            why = f"exit status {outcome.exit_code}"
        return self._unasked(why, exit_code=outcome.exit_code, said=None if said == why else said)

    def _unasked(self, why: str, *, exit_code: int | None = None, said: str | None = None) -> Open | Closed:
        told = _with(f"the gate could not be asked: {why}", said)
        if self._gate.on_error == "go":
            return Open(said=told, asked=False)
        return Closed(reason="gate_failed", told=told, exit_code=exit_code, said=said)


def is_asked(folder: Path) -> bool:
    """Whether an attempt's gate was being asked when its holder was last there, so that its work had not begun."""
    return (folder / folders.GATE).is_dir()


def end(assignment: Assignment) -> bool:
    """End the gate that a former holder may be asking, as who holds the attempt now; whether one was being asked.

    Nobody asks it for this attempt any more: who was to do so may only be frozen, and finds a mark that forbids it.
    """
    asked = is_asked(assignment.folder)
    folder = _folder(assignment)
    folders.make_folder(assignment.folder)
    command = Command(Nursery(), grace=GRACE)
    command.stop("kill")
    command.perform(replace(assignment, folder=folder), {})
    # Who was asking may have woken, and clears up behind its own question.
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            if path.name != "begun":
                path.unlink(missing_ok=True)
    return asked


def _of_gate(assignment: Assignment, gate: Gate) -> Assignment:
    work = assignment.action
    return replace(
        assignment,
        action={"kind": "command", "argv": gate.argv, "cwd": work.get("cwd"), "env": work.get("env")},
        args=(),
        timeout=gate.timeout,
        idle_timeout=None,
        leftovers="end",
        success_when=None,
        folder=_folder(assignment),
    )


def _folder(assignment: Assignment) -> Path:
    return assignment.folder / folders.GATE


def _clear(assignment: Assignment) -> bool:
    """Remove the gate's folder, and the attempt's where nothing else is in it; False where that cannot be done."""
    shutil.rmtree(_folder(assignment), ignore_errors=True)
    with contextlib.suppress(OSError):
        assignment.folder.rmdir()
    return not _folder(assignment).exists()


def _first_line(folder: Path) -> str | None:
    text = ESCAPES.sub("", logs.read(folder, most=READ_BYTES).data.decode("utf-8", "replace"))
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        return None
    return lines[0] if len(lines[0]) <= SAID_MOST else lines[0][: SAID_MOST - 1] + "…"


def _with(told: str, said: str | None) -> str:
    return f"{told}: {said}" if said else told
