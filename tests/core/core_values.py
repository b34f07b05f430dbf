"""What the tests of pure decisions share: tasks, runs and moments with only the telling parts written out."""

from datetime import UTC, datetime, timedelta
from typing import Any

from duly.core.run import Run
from duly.core.task import Definition, Rules, Task
from duly.core.triggers import Every, Trigger

NINE = datetime(2026, 3, 2, 9, tzinfo=UTC)
TICK = timedelta(microseconds=1)
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


def every(span: timedelta, anchor: datetime = NINE) -> Every:
    return Every(span=span, anchor=anchor)


def task_of(*triggers: Trigger, cursor: datetime = NINE, zone: str = "UTC", enabled: bool = True, **rules: Any) -> Task:
    definition = Definition(
        name="one",
        triggers=triggers,
        zone=zone,
        enabled=enabled,
        action={"kind": "command", "argv": ("true",)},
        rules=Rules(**rules),
    )
    return Task(
        id="tsk_one",
        definition=definition,
        broken=None,
        version=1,
        definition_version=1,
        planned_until=cursor,
        next_due_at=None,
        next_start_at=None,
        done=False,
        fence=0,
        runs=0,
        scheduled_runs=0,
        failures_in_a_row=0,
        last_run=None,
        source={},
        created_at=cursor,
        created_by="test",
        updated_at=cursor,
        removed_at=None,
    )


def waiting(**changes: Any) -> Run:
    told: dict[str, Any] = {
        "id": "run_one",
        "task": "tsk_one",
        "occurrence": "at:2026-03-02T09:00:00Z",
        "due_at": NINE,
        "opened_at": NINE,
        "opened_by": "schedule",
        "not_before": NINE,
        "definition_version": 1,
    }
    return Run(**(told | changes))


def held(**changes: Any) -> Run:
    told: dict[str, Any] = {
        "state": "held",
        "version": 2,
        "attempt": 1,
        "fence": 1,
        "seat": 1,
        "holder": "hld_a",
        "claim_token": "token",
        "lease_end_us": 100,
        "lease_boot": "boot",
        "started_at": NINE,
    }
    return waiting(**(told | changes))
