"""How an attempt ended, as its exit file says it: the status, who ended it, its last words, what lives on.

Standard library only and nothing of ours but its siblings of the same kind: keepers load it by path.
"""

import errno
import os
import time
from collections.abc import Sequence
from typing import NamedTuple

from duly.runners import output, processes

WRITTEN_WITHIN_S = 600.0  # a full disk has so long to take the exit file
AGAIN_AFTER_S = 1.0
NAMED = 20  # of leftovers and survivors so many are named


class Ending(NamedTuple):
    """What a keeper knows in the end; `left`: what is named as leftovers was allowed to live on."""

    run: str
    fence: int
    holder: str
    status: int | None
    ended_by: str
    start_error: tuple[str, str] | None
    leftovers: list[str]
    left: bool
    survivors: list[str]
    began_us: int
    spoken: bool


def write(folder: int, ending: Ending, log: output.Log) -> None:
    """Make the log whole and put the exit file in its place; a full disk is waited for."""
    fields = _fields(ending, log)
    until = time.monotonic() + WRITTEN_WITHIN_S
    while True:
        try:
            processes.write_whole(folder, "exit", fields)
        except OSError as failed:
            if failed.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EIO) or time.monotonic() > until:
                raise
            time.sleep(AGAIN_AFTER_S)
        else:
            break
    log.clear()


def names(members: Sequence[processes.Process]) -> list[str]:
    """Name processes for people, and count those beyond the first."""
    named = [f"{member.name} ({member.pid})" for member in members[:NAMED]]
    return [*named, f"{len(members) - NAMED} more"] if len(members) > NAMED else named


def _fields(ending: Ending, log: output.Log) -> dict[str, object]:
    cut = log.finish()
    code, signum = (None, None) if ending.status is None else _decode(ending.status)
    error = ending.start_error[1] if ending.start_error else None
    if error is None and ending.status != 0:
        error = _last_line(log.last)
    return {
        "run": ending.run,
        "fence": ending.fence,
        "holder": ending.holder,
        "exit_code": code,
        "signal": signum,
        "ended_by": "start" if ending.start_error else ending.ended_by,
        "start_error": ending.start_error[0] if ending.start_error else None,
        "error": error,
        "log_bytes": log.total,
        "log_cut": cut,
        "cut_at": min(output.HEAD_BYTES, log.stored) if cut else None,
        "log_error": log.error,
        "leftovers": ending.leftovers,
        "left": ending.left,
        "survivors": ending.survivors,
        "spoken": ending.spoken,
        "began_us": ending.began_us,
        "ended_us": time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000,
        "ended_at_us": time.time_ns() // 1000,
    }


def _decode(status: int) -> tuple[int | None, int | None]:
    if os.WIFSIGNALED(status):
        return None, os.WTERMSIG(status)
    return os.WEXITSTATUS(status), None


def _last_line(data: bytes) -> str | None:
    lines = [line for line in data.decode("utf-8", "replace").splitlines() if line.strip()]
    return lines[-1].strip() if lines else None
