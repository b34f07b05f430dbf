"""What the tests of edits share."""

from typing import Any

from store_scene import HOUR, NINE, Scene

from duly.core.task import Task
from duly.operations import edits

TEN = NINE + HOUR


def edit(s: Scene, word: str = "one", **more: Any) -> edits.Edited:
    told = {name: more.pop(name) for name in ("if_version", "dry_run", "cleared", "by") if name in more}
    return edits.edit(s.store, word, more, **{"by": "ann", **told})


def versions(s: Scene, task: Task) -> list[tuple[int, Any]]:
    with s.store.read() as session:
        return [(one.version, one.era_from_us) for one in session.versions.all(task.id)]


def us(moment: Any) -> int:
    return int(moment.timestamp() * 1_000_000)
