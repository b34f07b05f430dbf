"""What users are shown of events: beside `shapes`, with the same rules."""

import json
from typing import TYPE_CHECKING

from duly.core.events import Event
from duly.core.task import Task
from duly.operations import shapes

if TYPE_CHECKING:
    from duly.operations.events import Emitted
    from duly.store.events import Source


def cause(id_: str, event: Event | None) -> dict[str, object]:
    """Show for which event a run was opened; one that is pruned has only its id left."""
    if event is None:
        return {"id": id_, "source": None, "key": None, "at": None}
    return {"id": event.id, "source": event.source, "key": event.key, "at": shapes.instant(event.at)}


def line(one: Event) -> dict[str, object]:
    """Show an event in a list, without its data."""
    return {
        "id": one.id,
        "source": one.source,
        "key": one.key,
        "at": shapes.instant(one.at),
        "by": one.by,
        "bytes": len(one.body.encode("utf-8", "surrogatepass")),
    }


def event(one: Event) -> dict[str, object]:
    """Show an event whole."""
    return {
        "id": one.id,
        "source": one.source,
        "key": one.key,
        "at": shapes.instant(one.at),
        "by": one.by,
        "through": list(one.through),
        "data": json.loads(one.body),
    }


def emitted(told: "Emitted") -> dict[str, object]:
    """Show what became of an event that was emitted."""
    return {
        **event(told.event),
        "again": told.again,
        "runs": [
            {
                "id": one.run.id,
                "state": shapes.state(one.run),
                "outcome": one.run.outcome,
                **_named(one.run.task, one.task),
            }
            for one in told.opened
        ],
        "not_opened": [
            {
                **_named(None if one.task is None else one.task.id, one.task),
                "reason": one.reason,
                "message": one.message,
            }
            for one in told.not_opened
        ],
    }


def source(known: "Source") -> dict[str, object]:
    """Show where events come from, with the last one received."""
    return {
        "name": known.name,
        "last_at": shapes.instant(known.last_at),
        "last_key": known.last_key,
        "received": known.received,
    }


def _named(id_: str | None, of: Task | None) -> dict[str, object]:
    name = None if of is None else of.definition.name
    return {"task": id_, "task_name": name, "project": None if of is None else of.definition.project}
