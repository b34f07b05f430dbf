"""An attempt's folder: made for this user alone, opened where it is there, cleared of all but its log."""

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from duly import clock
from duly.runners import processes
from duly.runners.logs import CUT, LOG

MARK_WITHIN_S = 0.2
LOOK_EVERY_S = 0.01
GATE = "gate"
"""The folder inside an attempt's in which its gate is asked."""


def folder_of(run_folder: Path, run: str, fence: int) -> Path:
    """An attempt's folder in the run folder."""
    return run_folder / f"attempts/{run}.{fence}"


def attempt_of(folder: Path) -> tuple[str, int]:
    """The run and the fence that an attempt's folder is named by."""
    run, _, fence = folder.name.rpartition(".")
    return run, int(fence)


def make_folder(folder: Path) -> None:
    """Make an attempt's folder, and the two above it where they are gone, each for this user alone."""
    for made in (folder.parent.parent, folder.parent, folder):
        made.mkdir(mode=0o700, exist_ok=True)


def write_private(path: Path, text: str) -> None:
    """Write a text for the work to read, byte for byte; OSError where that cannot be done."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(text.encode("utf-8", "surrogateescape"))


def remove_traces(folder: Path) -> None:
    """Leave of a settled attempt its log and where that was cut, or no folder at all where there was no output.

    A mark that forbids the start stays until the run is pruned: who was to start it may only be frozen.
    """
    with opened(folder) as descriptor:
        if descriptor is None:
            return
        mark = read_mark(descriptor)
        ended = processes.read_whole(descriptor, "exit")
        if ended is not None and ended.get("log_cut"):
            processes.write_whole(descriptor, CUT, {"at": ended.get("cut_at"), "bytes": ended["log_cut"]})
        forbidden = mark is not None and bool(mark.get("forbidden"))
        kept = {CUT, "begun"} if forbidden else {CUT}
        if not forbidden:
            shutil.rmtree(folder / GATE, ignore_errors=True)
        for name in [path.name for path in folder.iterdir()]:
            if name not in kept and not (name == LOG or name.startswith(f"{LOG}.")):
                with contextlib.suppress(OSError):
                    os.unlink(name, dir_fd=descriptor)
    with contextlib.suppress(OSError):
        folder.rmdir()


def read_mark(descriptor: int) -> dict[str, object] | None:
    """Read the mark; one that was created this instant is waited for. {} if whoever created it never wrote it."""
    until = clock.monotonic_s() + MARK_WITHIN_S
    while (mark := processes.read_whole(descriptor, "begun")) is None:
        try:
            os.stat("begun", dir_fd=descriptor)
        except FileNotFoundError:
            return None
        if clock.monotonic_s() > until:
            return {}
        clock.pause(LOOK_EVERY_S)
    return mark


@contextlib.contextmanager
def opened(folder: Path) -> Iterator[int | None]:
    """Give a descriptor of the folder while inside, or None where there is none."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        yield None
        return
    try:
        yield descriptor
    finally:
        os.close(descriptor)
