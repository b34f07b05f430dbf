"""The late table, row by row: every road, every policy, both sides of every boundary."""

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from core_values import NINE, TICK, every, held, task_of, waiting

from duly.core import interrupting, lifecycle
from duly.core.admission import Admitted, Skipped, admit
from duly.core.planning import Plan, plan
from duly.core.retrying import retried
from duly.core.run import Run, Step
from duly.core.schedule import next_due
from duly.core.skips import Range
from duly.core.spreading import start_of
from duly.core.task import Task
from duly.core.triggers import Once
from late_rows import Row, counted, rows, span

ROWS = rows()
POLICIES = {"run", "run_all", "skip", "offer"}
ROADS = {"opening", "waited", "retry", "interrupted", "adoption", "asked for"}
UTC_ZONE = ZoneInfo("UTC")
SECOND = timedelta(seconds=1)


def of_road(*roads: str) -> list[Row]:
    return [row for row in ROWS if row.road in roads]


def titled(row: Row) -> str:
    return row.title


def task_for(row: Row, **more: object) -> Task:
    """The task of a row: its newest occurrence is due at nine."""
    trigger = Once(at=NINE) if row.distance is None else every(row.distance, NINE - row.older * row.distance)
    cursor = NINE - row.older * (row.distance or timedelta(0)) - TICK
    until = NINE if row.until_newest else None
    return task_of(trigger, cursor=cursor, until=until, **{**row.rules, **more})


def moment_of(row: Row, task: Task) -> datetime:
    return start_of(task.id, task.definition, UTC_ZONE, NINE) + row.lateness


@pytest.mark.parametrize("row", of_road("opening"), ids=titled)
def test_an_occurrence_that_is_found_has_the_fate_of_its_row(row: Row) -> None:
    task = task_for(row)
    now = moment_of(row, task)
    following = next_due(task.definition, UTC_ZONE, NINE)
    assert now >= NINE, "its share must be longer than it is early"
    assert following is None or now < following, "else it is not the newest"
    older = [NINE - place * row.distance for place in range(row.older, 0, -1)] if row.distance else []
    ranges = {"newest": [(NINE, NINE)], "older": [(older[0], older[-1])] if older else []}
    skipped = [
        Range(first=first, last=last, by="ann", note=None)
        for first, last in ranges.get(row.more.get("skipped", ""), [])
    ]
    made = plan(task, UTC_ZONE, now, skipped)
    assert counted([fate_of(made, due)[1] or fate_of(made, due)[0] for due in older]) == row.older_fates
    assert fate_of(made, NINE) == (row.fate, row.reason)


def fate_of(made: Plan, due: datetime) -> tuple[str, str]:
    """The fate of one occurrence in a plan, in the words of the table."""
    words = {"missed_offer": "offered", "skipped_by_hand": "skipped"}
    found: list[tuple[str, str]] = [(one.opened_by, "") for one in made.openings if one.due_at == due]
    found += [(words.get(one.reason, "missed"), one.reason) for one in made.stretches if one.first <= due <= one.last]
    assert len(found) <= 1, "one occurrence, one fate"
    return found[0] if found else ("none", "")


def run_of(row: Row, task: Task, **more: object) -> Run:
    share = start_of(task.id, task.definition, UTC_ZONE, NINE) - NINE
    told = {"due_at": NINE, "opened_at": NINE, "not_before": NINE + share, "spread": share}
    opened_by = row.more.get("opened_by", "schedule")
    return (held if "started_at" in more else waiting)(**{**told, "opened_by": opened_by, **more})


@pytest.mark.parametrize(
    "row", [row for row in of_road("waited", "asked for") if "interrupted" not in row.more], ids=titled
)
def test_a_run_that_waited_starts_or_ends_as_its_row_says(row: Row) -> None:
    task = task_for(row)
    run = run_of(row, task)
    now = moment_of(row, task)
    found = admit(run, task, task.definition.rules, paused=False, kinds={"command"}, now=now)
    if isinstance(found, Admitted):
        assert (row.fate, row.reason) == ("starts", "")
    else:
        assert isinstance(found, Skipped)
        step = lifecycle.skip(run, reason=found.reason, now=now, details=dict(found.details))
        assert became(step) == (row.fate, row.reason)


@pytest.mark.parametrize("row", of_road("retry"), ids=titled)
def test_a_failed_run_is_tried_again_or_ends_as_its_row_says(row: Row) -> None:
    task = task_for(row, retries=1, retry_after=SECOND)
    again_at = moment_of(row, task)
    ended_at = again_at - SECOND
    run = run_of(row, task, started_at=ended_at - span(row.more["worked"]))
    failed = lifecycle.settle(run, "failed", now=ended_at, reason="exit_status", exit_code=1)
    step = retried(failed, task.definition.rules, ended_at=ended_at, draw=0.0)
    assert became(step) == (row.fate, row.reason)
    if step.after.state == "waiting":
        assert step.after.not_before == again_at
        found = admit(step.after, task, task.definition.rules, paused=False, kinds={"command"}, now=again_at)
        assert isinstance(found, Admitted), "what was allowed then is not refused at its start"


@pytest.mark.parametrize(
    "row",
    [row for row in of_road("interrupted", "asked for") if row.more.keys() & {"worked", "interrupted"}],
    ids=titled,
)
def test_an_interrupted_run_goes_on_or_ends_as_its_row_says(row: Row) -> None:
    task = task_for(row, on_interrupt="retry")
    now = moment_of(row, task)
    run = run_of(row, task, started_at=now - span(row.more.get("worked", "0s")))
    step = interrupting.interrupted(
        run,
        task.definition.rules,
        why="holder_died",
        now=now,
        ended_at=now,
        following=None if row.distance is None else NINE + row.distance,
        by="hld_b",
    )
    assert became(step) == (row.fate, row.reason)


@pytest.mark.parametrize("row", of_road("adoption"), ids=titled)
def test_work_that_lives_is_taken_over_however_late_it_is(row: Row) -> None:
    task = task_for(row)
    now = moment_of(row, task)
    run = run_of(row, task, started_at=now - span(row.more["worked"]))
    step = lifecycle.take_over(
        run, holder="hld_b", token="other", lease_end_us=200, boot="boot", now=now, why="holder_died"
    )
    assert (step.after.state, step.after.holder, step.after.fence) == ("held", "hld_b", run.fence)
    assert lifecycle.adopted(step.after, now=now, holder="hld_b").kind == "adopted"
    assert (row.fate, row.reason) == ("goes on", "")


def became(step: Step) -> tuple[str, str]:
    if step.after.state == "waiting":
        return "tried again", ""
    assert step.after.state == "ended"
    return f"ended {step.after.outcome}", step.after.reason or ""


def test_the_table_has_its_rows_and_leaves_no_road_policy_or_side_of_a_boundary_out() -> None:
    assert len(ROWS) >= 200
    assert sum(row.real for row in ROWS) >= 20
    assert {row.road for row in ROWS} == ROADS
    for road in ROADS - {"asked for"}:
        assert {row.on_missed for row in of_road(road)} == POLICIES
    reasons = {"coalesced", "too_many", "missed_skip", "missed_offer", "stale", "skipped_by_hand"}
    told = {row.reason for row in ROWS} | {word for row in ROWS for word in row.older_fates.replace(",", "").split()}
    assert reasons <= told
    beyond = [row for row in ROWS if row.lateness % SECOND]
    assert len(beyond) > 80, "a microsecond beyond"
    given = {asked(row) for row in ROWS}
    for row in beyond:
        if row.lateness > TICK and row.fate in {"missed", "offered", "ended skipped"}:
            assert asked(row, TICK) in given, f"the other side of {row.title}"


def asked(row: Row, earlier: timedelta = timedelta(0)) -> object:
    """What a row asks, whatever its answer; or what it would ask so much earlier."""
    rules, more = sorted(row.rules.items()), sorted(row.more.items())
    return (row.road, tuple(rules), row.until_newest, row.distance, row.older, row.lateness - earlier, tuple(more))
