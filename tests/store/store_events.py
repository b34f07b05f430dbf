"""How the tests of the store emit events and let runs of them end."""

from typing import Any

from store_scene import SUCCEEDED, Scene

from duly import zones
from duly.core import when
from duly.core.run import Run
from duly.core.task import Task
from duly.core.triggers import On
from duly.operations import events
from duly.operations.events import Emitted
from duly.ports import Outcome
from duly.store import Store

FAILED = Outcome(word="failed", reason="exit_status", exit_code=3)


def on(text: str, s: Scene) -> On:
    trigger = when.read(f"on {text}", now=s.clock.moment, zone=zones.zone("UTC")).trigger
    assert isinstance(trigger, On)
    return trigger


def listen(s: Scene, name: str, *texts: str, project: str = "default", **rules: Any) -> Task:
    """Add a task that listens."""
    return s.add(name, *(on(text, s) for text in texts), project=project, **rules)


def emit(s: Scene, source: str, key: str | None = None, data: str | None = None, store: Store | None = None) -> Emitted:
    return events.emit(store or s.store, source, by="eve", key=key, data=data)


def opened(emitted: Emitted) -> list[str]:
    """The names of the tasks that an event started."""
    return [one.task.definition.name for one in emitted.opened if one.task is not None]


def passed(emitted: Emitted) -> dict[str, str | None]:
    """The tasks that listen and were not started, with the reasons."""
    return {one.task.definition.name: one.reason for one in emitted.not_opened if one.task is not None}


def end_all(s: Scene, outcome: Outcome = SUCCEEDED) -> list[str]:
    """Claim all that may start and let it end so; gives the tasks' names, in their order."""
    won = s.claim(free=100)
    for one in won:
        s.settle(one, outcome)
    return [one.definition.name for one in won]


def of_task(s: Scene, task: Task) -> list[Run]:
    return s.runs(task.id)


def suppressed(s: Scene, task: Task) -> list[dict[str, object]]:
    """The figures of what the ledger tells as suppressed."""
    return [dict(entry.details) for entry in s.entries(task.id) if entry.reason == "suppressed"]
