"""What work may ask about the run it is part of: the same in a process of its own and in a thread."""

import os
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """The event that a run was opened for; `data` is what was read from its JSON."""

    source: str
    key: str | None
    data: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ThisRun:
    """The run that the caller is part of; `fence` is higher than that of any run of the task that came before."""

    id: str
    task: str
    project: str
    attempt: int
    fence: int
    occurrence: str
    due_at: datetime | None
    opened_by: str
    input: str | None
    """What the run was given by hand, whole."""
    event: Cause | None = None
    """What it was opened for, where that was an event."""


IN_THREAD: ContextVar[ThisRun | None] = ContextVar("duly_this_run", default=None)
"""Set for a function that runs in a thread, where the environment is that of the whole process."""


def this_run(environ: Mapping[str, str] | None = None) -> ThisRun | None:
    """Give the run that the caller is part of; None outside of any."""
    if (here := IN_THREAD.get()) is not None:
        return here
    told = os.environ if environ is None else environ
    if not told.get("DULY_RUN") or not told.get("DULY_FENCE", "").isdecimal():
        return None
    due = told.get("DULY_DUE_AT")
    return ThisRun(
        id=told["DULY_RUN"],
        task=told.get("DULY_TASK", ""),
        project=told.get("DULY_PROJECT", ""),
        attempt=int(told.get("DULY_ATTEMPT", "1")),
        fence=int(told["DULY_FENCE"]),
        occurrence=told.get("DULY_OCCURRENCE", ""),
        due_at=datetime.fromisoformat(due) if due else None,
        opened_by=told.get("DULY_OPENED_BY", ""),
        input=_input(told),
        event=_event(told),
    )


def _event(told: Mapping[str, str]) -> Cause | None:
    file = told.get("DULY_EVENT_FILE")
    if not file:
        return None
    import json

    try:
        data = json.loads(Path(file).read_bytes())
    except OSError:
        return None
    return Cause(source=told.get("DULY_EVENT_SOURCE", ""), key=told.get("DULY_EVENT_KEY") or None, data=data)


def _input(told: Mapping[str, str]) -> str | None:
    """Read the input from its file, which holds all of it; the null device stands for none."""
    file = told.get("DULY_INPUT_FILE", os.devnull)
    if file == os.devnull:
        return None
    try:
        return Path(file).read_bytes().decode("utf-8", "surrogateescape")
    except OSError:
        return told.get("DULY_INPUT")
