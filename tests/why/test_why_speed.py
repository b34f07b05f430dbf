"""Why is answered by indexes: a store with a long past answers as fast as a short one."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest
from why_scene import Stage, instant

import databases
from by_hand import by_hand
from duly.clock import to_us
from duly.operations.why import why
from duly.operations.why_since import not_as_planned
from duly.store import moments, postgres
from duly.store.engine import DIALECT
from duly.store.sql import Statement

RUNS = 100_000
ENTRIES_A_RUN = 5
STORE_TIME_S = 0.100
TRIES = 5
MINUTE_US = 60_000_000
ASKED = {name: one for name, one in vars(moments).items() if isinstance(one, Statement)}


@pytest.mark.parametrize("name", ASKED)
def test_no_question_reads_the_ledger_or_the_runs_from_end_to_end(stage: Stage, name: str) -> None:
    compiled = ASKED[name].on(postgres.DIALECT if databases.ON_SERVER else DIALECT)
    given = [1 if column not in {"task", "before", "from_id"} else "x" for column in compiled.order]
    with stage.store.read() as session:
        if isinstance(session.line, postgres.ServerLine):
            # Where nothing stands in the tables all plans cost the same, but for those that are made unthinkable.
            session.line.raw.execute("SET LOCAL enable_seqscan = off")
            plan = session.line.raw.execute(f"EXPLAIN {compiled.text}".encode(), given).fetchall()
            assert "Index" in str(plan), plan
            assert "Seq Scan" not in str(plan), plan
            return
        plan = by_hand(session.line, f"EXPLAIN QUERY PLAN {compiled.text}", *given)
    steps = [row[3] for row in plan]
    assert steps
    bounded = ("SEARCH", "USE TEMP B-TREE FOR RIGHT PART OF ORDER BY")  # the latter sorts what has one instant
    assert all(step.startswith(bounded) for step in steps), steps
    assert all("task=?" in step for step in steps if step.startswith("SEARCH")), steps


@pytest.fixture(scope="module")
def long_past(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        made = Stage(tmp_path_factory.mktemp("past"), patch)
        _fill(made)
        yield made
        made.close()


def _fill(stage: Stage) -> None:
    """A task that ran each minute for ten weeks, now and then skipped or paused, as the tables have it."""
    stage.at("2026-09-01 00:00")
    task = stage.add("busy", "every 1m from 2026-09-01T00:00:00Z")
    start = to_us(stage.now)
    stage.now += timedelta(minutes=RUNS)
    times, number = "strftime('%Y-%m-%dT%H:%M:%SZ', due / 1000000, 'unixepoch')", "printf('%026d', i)"
    if databases.ON_SERVER:
        times = "to_char(to_timestamp(due / 1000000) AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')"
        number = "lpad(i::text, 26, '0')"
    due = f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {RUNS}), "
    due += f"d AS (SELECT i, {start} + CAST(i AS BIGINT) * {MINUTE_US} AS due FROM n) "
    with stage.store.write() as session:
        by_hand(
            session.line,
            "INSERT INTO runs (id, task, occurrence, due_us, opened_us, opened_by, state, outcome, reason, version,"
            " attempt, fence, not_before_us, definition_version, anyway, queued, started_us, ended_us, worked_us,"
            f" interruptions, log_bytes, log_cut, project) {due} SELECT 'run_' || {number}, '{task.id}',"
            f" 'at:' || {times}, due, due, 'schedule', 'ended', CASE i % 50 WHEN 0 THEN 'skipped' ELSE 'succeeded' END,"
            " CASE i % 50 WHEN 0 THEN 'already_running' END, 3, 1, i, due, 1, 0, 0, due, due + 1000000, 0, 0,"
            " 0, 0, 'default' FROM d",
        )
        for kind in ("opened", "claimed", "began", "handed_over", "ended")[:ENTRIES_A_RUN]:
            by_hand(
                session.line,
                f"INSERT INTO ledger (at_us, kind, task, occurrence, run, attempt) {due} SELECT due, '{kind}',"
                f" '{task.id}', 'at:' || {times}, 'run_' || {number}, 1 FROM d",
            )
        by_hand(
            session.line,
            f"INSERT INTO ledger (at_us, kind, task, occurrence, reason, count, until_us) {due} SELECT due, 'stretch',"
            f" '{task.id}', 'at:' || {times}, 'paused', 1, due FROM d WHERE i % 500 = 0",
        )
        by_hand(session.line, "UPDATE tasks SET planned_until_us = ?", start + RUNS * MINUTE_US)
        if databases.ON_SERVER:
            by_hand(session.line, "ANALYZE")  # as a server does by itself once so much has come


QUESTIONS: dict[str, Callable[[Any], object]] = {
    "the last and the next": lambda session: why(session, "busy", alive=()),
    "the oldest": lambda session: why(session, "busy", instant("2026-09-01 00:05"), alive=()),
    "the middle": lambda session: why(session, "busy", instant("2026-10-01 12:00"), alive=()),
    "not due": lambda session: why(session, "busy", instant("2026-10-01 12:00:30"), alive=()),
    "to come": lambda session: why(session, "busy", instant("2027-10-01 12:00"), alive=()),
    "a week": lambda session: not_as_planned(session, "busy", session.now - timedelta(days=7)),
}


@pytest.mark.slow
@pytest.mark.parametrize("question", QUESTIONS)
def test_why_takes_less_than_a_tenth_of_a_second_after_a_hundred_thousand_runs(long_past: Stage, question: str) -> None:
    took = []
    for _ in range(TRIES):
        with long_past.store.read() as session:
            began = perf_counter()
            QUESTIONS[question](session)
            took.append(perf_counter() - began)
    # The machine is shared: the best of a few tries is what the store needs.
    assert min(took) < STORE_TIME_S, took


@pytest.mark.slow
def test_the_past_is_as_long_as_it_says(long_past: Stage, tmp_path: Path) -> None:
    with long_past.store.read() as session:
        counts = [session.line.scalar(f"SELECT count(*) FROM {table}") for table in ("runs", "ledger")]
    assert counts[0] >= RUNS
    assert counts[1] >= RUNS * ENTRIES_A_RUN
