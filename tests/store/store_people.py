"""What people do to tasks in the tests of the store."""

from datetime import timedelta

from store_scene import (
    Scene,
)

from duly.core.run import Run
from duly.core.task import Task
from duly.operations import runs as run_operations
from duly.operations import tasks as task_operations


def pause(s: Scene, scope: str = "task", target: str = "one", until: timedelta | None = None) -> None:
    end = None if until is None else s.clock.now() + until
    task_operations.pause(s.store, scope, target, until=end, note="away", by="ann")


def unpause(s: Scene, scope: str = "task", target: str = "one") -> task_operations.Paused | None:
    return task_operations.unpause(s.store, scope, target, by="ann")


def switch(s: Scene, verb: str, name: str = "one") -> None:
    match verb:
        case "pause":
            pause(s, target=name)
        case "disable":
            task_operations.disable(s.store, name, by="ann")
        case "remove":
            task_operations.remove(s.store, name, by="ann")
        case "unpause":
            unpause(s, target=name)
        case "enable":
            task_operations.enable(s.store, name, by="ann")


def by_hand(s: Scene, name: str = "one", **told: object) -> Run:
    return run_operations.run_now(s.store, name, by="ann", **told)  # type: ignore[arg-type]


def stretches(s: Scene, task: Task) -> list[tuple[str | None, int | None]]:
    return [(one.reason, one.count) for one in s.entries(task.id) if one.kind == "stretch"]


REASONS = {"pause": "paused", "disable": "disabled", "remove": "task_removed"}
