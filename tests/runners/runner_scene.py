"""What the tests of runners share: assignments, waiting for conditions, and looking at processes."""

import hashlib
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from duly.ports import Assignment, Detached, Outcome
from duly.runners import processes
from duly.runners.command import Command
from duly.runners.nurseries import Nursery

WITHIN_S = 20.0
HOLDER = "hld_first"
T = TypeVar("T")


def assign(folder: Path, action: Mapping[str, object] | str, **changes: Any) -> Assignment:
    """Make an assignment in a folder of its own; a text is a shell line."""
    told: dict[str, Any] = {
        "run": f"run_{_of_this_folder_alone(folder)}",
        "attempt": 2,
        "fence": 7,
        "holder": HOLDER,
        "task": "tsk_one",
        "task_name": "tidy up",
        "project": "house",
        "occurrence": "at:2026-12-01T08:00:00Z",
        "due_at": datetime(2026, 12, 1, 8, tzinfo=UTC),
        "opened_by": "schedule",
        "action": {"kind": "command", "shell": action, "cwd": str(folder)} if isinstance(action, str) else action,
        "input": None,
        "timeout": timedelta(seconds=60),
    }
    told |= changes
    return Assignment(**({"folder": folder / "attempts" / f"{told['run']}.{told['fence']}"} | told))


def _of_this_folder_alone(folder: Path) -> str:
    # What is left of a run is sought through the whole machine by the run's id, and tests run side by side.
    return hashlib.blake2b(bytes(folder), digest_size=10).hexdigest()


def perform(nursery: Nursery, assignment: Assignment, grace_s: float = 10) -> Outcome:
    """Perform it to its end, in this thread."""
    outcome = Command(nursery, grace=timedelta(seconds=grace_s)).perform(assignment, None)
    assert isinstance(outcome, Outcome)
    return outcome


@contextmanager
def performing(
    nursery: Nursery, assignment: Assignment, grace_s: float = 10, *, attach: bool = False
) -> Iterator[tuple[Command, Future[Outcome | Detached]]]:
    """Perform it in a thread; what still runs in the end is killed."""
    command = Command(nursery, grace=timedelta(seconds=grace_s))
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(command.perform, assignment, {} if attach else None)
        try:
            yield command, future
        finally:
            command.stop("kill")


def until(condition: Callable[[], T | None], within_s: float = WITHIN_S) -> T:
    """Wait for a condition and give its value."""
    end = time.monotonic() + within_s
    while not (value := condition()):
        assert time.monotonic() < end, "it did not come true in time"
        time.sleep(0.005)
    return value


def numbers(path: Path) -> list[int]:
    """Read the process numbers that a work has written so far, one a line."""
    return (
        [int(line) for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]
        if path.exists()
        else []
    )


def lives(pid: int) -> bool:
    """Say whether the process is there and no zombie."""
    found = processes.read(pid)
    return found is not None and found.state not in processes.DEAD


def kill(pid: int, signum: int = signal.SIGKILL) -> None:
    """Signal one process that the test has started."""
    found = processes.read(pid)
    assert found is not None
    assert processes.send(found, signum)


def keeper_of(assignment: Assignment) -> int:
    """Wait for the mark and give the keeper's process number."""
    return int(until(lambda: mark_of(assignment))["keeper"][0])


def mark_of(assignment: Assignment) -> dict[str, Any]:
    """Give the mark as it stands; empty if there is none."""
    try:
        descriptor = os.open(assignment.folder, os.O_RDONLY)
    except FileNotFoundError:
        return {}
    try:
        mark: dict[str, Any] = processes.read_whole(descriptor, "begun") or {}
    finally:
        os.close(descriptor)
    return mark


def children_of(pid: int) -> list[processes.Process]:
    """Give every child, zombies too."""
    return [one for one in processes.table().values() if one.parent == pid]
