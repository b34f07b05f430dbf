"""Values for the tests of events: tasks that listen, events to hear."""

from datetime import UTC, datetime

from duly import zones
from duly.core import when
from duly.core.events import Event
from duly.core.task import Definition, Rules, Task

NOW = datetime(2026, 12, 1, 8, tzinfo=UTC)


def event(
    source: str = "deploy", body: str = "null", *, key: str | None = None, at: datetime = NOW, **more: object
) -> Event:
    return Event(id="evt_1", source=source, key=key, body=body, at=at, by="somebody", **more)  # type: ignore[arg-type]


def task(
    *texts: str, id_: str = "tsk_1", name: str = "t", enabled: bool = True, done: bool = False, **rules: object
) -> Task:
    triggers = when.read_all(texts, now=NOW, zone=zones.zone("UTC"))
    definition = Definition(
        name=name,
        triggers=triggers,
        enabled=enabled,
        action={"kind": "command", "argv": ["true"]},
        rules=Rules(**rules),  # type: ignore[arg-type]
    )
    return Task(
        id=id_,
        definition=definition,
        broken=None,
        version=1,
        definition_version=3,
        planned_until=NOW,
        next_due_at=None,
        next_start_at=None,
        done=done,
        fence=0,
        runs=0,
        scheduled_runs=0,
        failures_in_a_row=0,
        last_run=None,
        source={},
        created_at=NOW,
        created_by="t",
        updated_at=NOW,
        removed_at=None,
    )
