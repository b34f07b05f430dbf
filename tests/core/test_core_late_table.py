"""Every row of the late table, through the core."""

import sys
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from core_values import NINE, held, task_of, waiting

from duly.core import lifecycle
from duly.core.admission import Admitted, Skipped, admit
from duly.core.fates import Opening
from duly.core.planning import plan
from duly.core.retrying import retried
from duly.core.run import Run
from duly.core.spreading import share_of
from duly.core.task import Task
from duly.core.triggers import Every, Once

sys.path.insert(0, str(Path(__file__).parent.parent))
from late_table import Row, rows

UTC = ZoneInfo("UTC")
TICK = timedelta(microseconds=1)
ROWS = rows()


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_row_of_the_late_table_is_what_the_core_says(row: Row) -> None:
    assert ROADS[row.road](row) == (row.fate, row.reason)


def test_the_table_has_rows_enough_on_every_road_under_every_policy_and_on_both_sides_of_each_boundary() -> None:
    assert len(ROWS) >= 200
    assert {row.road for row in ROWS} == set(ROADS)
    for road in ROADS:
        assert {row.policy for row in ROWS if row.road == road} == {"run", "run_all", "skip", "offer"}
    assert len({replace(row, number=0) for row in ROWS}) == len(ROWS), "no row stands twice"
    assert sum(row.processes for row in ROWS) >= 20


def _task(row: Row, **more: Any) -> Task:
    trigger = Once(at=NINE) if row.period is None else Every(span=row.period, anchor=NINE)
    rules: dict[str, Any] = {"on_missed": row.policy, "max_age": row.max_age, "spread": row.spread} | more
    if row.grace is not None:
        rules["grace"] = row.grace
    return task_of(trigger, cursor=NINE - TICK, **rules)


def _share(row: Row, task: Task) -> timedelta:
    following = None if row.period is None else NINE + row.period
    share = share_of(task.id, NINE, spread=row.spread, following=following)
    assert bool(share) == bool(row.spread), "a spread that is none would prove nothing"
    return share


def _now(row: Row, task: Task) -> datetime:
    return NINE + _share(row, task) + row.lateness


def _run(row: Row, task: Task, make: Any = waiting, **more: Any) -> Run:
    made: Run = make(**more)
    return replace(made, not_before=NINE + _share(row, task), spread=_share(row, task), worked_for=row.worked)


def _opening(row: Row) -> tuple[str, str | None]:
    task = _task(row)
    made = plan(task, UTC, _now(row, task))
    found: list[Any] = [*made.openings, *made.stretches]
    mine = [fate for fate in found if (fate.due_at if isinstance(fate, Opening) else fate.first) == NINE]
    (fate,) = mine
    if isinstance(fate, Opening):
        return "opened", fate.opened_by
    return ("offered" if fate.reason == "missed_offer" else "missed"), fate.reason


def _start(row: Row, run: Run, task: Task) -> tuple[str, str | None]:
    now = _now(row, task)
    verdict = admit(run, task, task.definition.rules, paused=False, kinds={"command"}, now=now)
    if isinstance(verdict, Admitted):
        return "starts", None
    assert isinstance(verdict, Skipped)
    ended = lifecycle.skip(run, reason=verdict.reason, now=now, details={}).after
    return str(ended.outcome), ended.reason


def _waited(row: Row) -> tuple[str, str | None]:
    task = _task(row)
    return _start(row, _run(row, task), task)


def _retry(row: Row) -> tuple[str, str | None]:
    task = _task(row, retries=3)
    run = _run(row, task, attempt=1, retries=1, tried="failed", tried_reason="exit_status")
    return _start(row, run, task)


def _interrupted(row: Row) -> tuple[str, str | None]:
    task = _task(row, on_interrupt="retry")
    now = _now(row, task)
    # The attempt that was cut off began so long ago that it worked for as long as the row says, and then was lost.
    began = NINE + _share(row, task)
    run = replace(_run(row, task, held), worked_for=timedelta(0), started_at=began)
    step = lifecycle.interrupted(
        run,
        task.definition.rules,
        why="holder_died",
        now=now,
        ended_at=began + row.worked,
        following=None if row.period is None else NINE + row.period,
        by="hld_b",
    )
    if step.after.state == "waiting":
        return "tried again", None
    return str(step.after.outcome), step.after.reason


def _adopted(row: Row) -> tuple[str, str | None]:
    task = _task(row)
    run = _run(row, task, held)
    step = lifecycle.take_over(
        run, holder="hld_b", token="t", lease_end_us=9, boot="boot", now=_now(row, task), why="holder_died"
    )
    assert (step.after.state, step.after.fence, step.after.attempt) == ("held", run.fence, run.attempt)
    return "goes on", None


def _asked(opened_by: str) -> Any:
    def judge(row: Row) -> tuple[str, str | None]:
        task = _task(row)
        return _start(row, _run(row, task, opened_by=opened_by), task)

    return judge


ROADS: dict[str, Any] = {
    "opening": _opening,
    "waited": _waited,
    "retry": _retry,
    "interrupted": _interrupted,
    "adopted": _adopted,
    "manual": _asked("manual"),
    "offer": _asked("offer"),
    "backfill": _asked("backfill"),
}


@pytest.mark.parametrize("row", [row for row in ROWS if row.road == "retry"], ids=str)
def test_a_retry_that_would_be_too_late_is_refused_as_soon_as_it_is_planned(row: Row) -> None:
    """By the same figure, when the attempt before it fails: nobody waits for a retry that will not be."""
    task = _task(row, retries=3, retry_after=timedelta(seconds=1))
    rules = task.definition.rules
    run = _run(row, task, held, started_at=NINE)
    # It ends so that the retry, a second later, is exactly as late as the row says.
    ends_at = _now(row, task) - timedelta(seconds=1)
    run = replace(run, started_at=ends_at)
    step = lifecycle.settle(run, "failed", now=ends_at, reason="exit_status")
    made = retried(step, rules, ended_at=ends_at, draw=0.0)
    found = ("starts", None) if made.after.state == "waiting" else (made.after.outcome, made.after.reason)
    assert found == (row.fate, row.reason)
