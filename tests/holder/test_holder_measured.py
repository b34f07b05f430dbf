"""What is measured of a store: what happened since the counting began, each once, and how things stand."""

import time
from collections.abc import Mapping
from datetime import timedelta

import pytest
from holder_scene import Stage, until_idle
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_open
from prometheus_client.parser import text_string_to_metric_families as read_plain

from duly.holder.holder import Holder
from duly.metrics import counting
from duly.metrics.counting import Counting
from duly.metrics.page import OPENMETRICS, page

MINUTE = timedelta(minutes=1)


def values(stage: Stage, count: Counting, *, holder: str | None = None, accept: str = "") -> Mapping[str, float]:
    """The page as a reader of it has it: each sample by its name and labels."""
    with stage.store.read() as session:
        text, kind = page(session, count, holder=holder, readers=3, accept=accept)
    read = read_open if OPENMETRICS in accept else read_plain
    assert kind.startswith(OPENMETRICS if OPENMETRICS in accept else "text/plain; version=0.0.4")
    found = {}
    for family in read(text.decode()):
        for one in family.samples:
            labels = ",".join(f"{name}={value}" for name, value in one.labels.items())
            found[f"{one.name}{{{labels}}}" if labels else one.name] = one.value
    return found


def counted_from_here(stage: Stage) -> Counting:
    count = Counting()
    with stage.store.read() as session:
        count.begin(session)
    return count


def until_ended(stage: Stage, holder: Holder) -> None:
    """Turn until all that was opened has ended."""
    end = time.monotonic() + 60
    until_idle(holder)
    while any(run.state != "ended" for run in stage.read().runs):
        assert time.monotonic() < end
        until_idle(holder)


def test_what_happened_since_the_counting_began_is_counted_once_over_any_number_of_looks(stage: Stage) -> None:
    stage.script.over.set()
    stage.add("before", "every 1m")
    holder = stage.holder(slots=8)
    stage.clock.pass_(MINUTE)
    until_ended(stage, holder)
    count = counted_from_here(stage)
    assert values(stage, count)["duly_occurrences_opened_total"] == 0

    stage.add("one", "every 1m")
    stage.add("skipper", "every 1m", on_missed="skip")
    stage.clock.pass_(MINUTE + timedelta(seconds=2))
    until_ended(stage, holder)
    first = values(stage, count)
    stage.clock.pass_(30 * MINUTE)
    until_ended(stage, holder)
    for _ in range(2):
        found = values(stage, count)
        seen = stage.read()
        mine = [run for run in seen.runs if run.opened_at > stage.clock.civil - 31 * MINUTE]
        opened = len(mine)
        assert opened > first["duly_occurrences_opened_total"] > 0
        assert found["duly_occurrences_opened_total"] == opened
        assert found["duly_claims_total"] == opened
        assert found["duly_runs_ended_total{outcome=succeeded}"] == opened
        assert found["duly_runs_ended_total{outcome=failed}"] == 0
        assert found["duly_occurrences_unstarted_total{reason=missed_skip}"] == sum(
            one.count for one in seen.missed if one.reason == "missed_skip"
        )
        late = [(run.started_at - run.due_at).total_seconds() for run in mine if run.started_at is not None]
        assert found["duly_run_late_seconds_count"] == opened
        assert found["duly_run_late_seconds_bucket{le=+Inf}"] == opened
        assert found["duly_run_late_seconds_bucket{le=5.0}"] == sum(one <= 5 for one in late)
        assert abs(found["duly_run_late_seconds_sum"] - sum(late)) < 1e-6
        assert found["duly_run_duration_seconds_count"] == opened


def test_what_is_more_than_one_look_counts_is_counted_by_the_next(stage: Stage) -> None:
    count = counted_from_here(stage)
    for name in "abcde":
        stage.add(name, "every 1h")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting, "ENTRIES_A_LOOK", 2)
        told = [values(stage, count).get("duly_ledger_entries_total{kind=defined}") for _ in range(4)]
        assert told == [2, 4, 5, 5]


def test_the_page_tells_how_the_store_and_the_process_stand_in_both_forms_that_prometheus_reads(stage: Stage) -> None:
    stage.add("now", "every 1m")
    stage.add("late", "every 3h")
    stage.add("off", "every 1h")
    holder = stage.holder(slots=2)
    stage.clock.pass_(MINUTE)
    until_idle(holder)
    stage.script.wait_for_starts(1)
    for accept in ("", f"{OPENMETRICS};version=1.0.0,text/plain;q=0.5", "text/plain;version=oops;escaping=oops"):
        found = values(stage, counted_from_here(stage), holder=holder.id, accept=accept)
        assert found["duly_tasks{state=enabled}"] == 3
        assert found["duly_runs{state=running}"] == 1
        assert found["duly_runs{state=waiting}"] == 0
        assert found["duly_holders{state=alive}"] == 1
        assert found["duly_holder_slots"] == 2
        assert found["duly_holder_running"] == 1
        assert found["duly_holder_heartbeat_age_seconds"] == 60
        assert found["duly_stream_readers"] == 3
        assert found["duly_next_due_timestamp_seconds"] == (stage.clock.civil + MINUTE).timestamp()
        assert found["process_resident_memory_bytes"] > 0
        assert "duly_waiting_since_timestamp_seconds" not in found
    elsewhere = values(stage, counted_from_here(stage))
    assert "duly_holder_slots" not in elsewhere


def test_a_run_that_waits_is_told_with_since_when(stage: Stage) -> None:
    task = stage.add("now", "every 1m", queue=3, overlap="queue")
    holder = stage.holder(slots=1)
    for _ in range(2):
        stage.clock.pass_(MINUTE)
        until_idle(holder)
    found = values(stage, counted_from_here(stage))
    assert found["duly_runs{state=waiting}"] == 1
    [waiting] = [run for run in stage.read().runs if run.task == task.id and run.state == "waiting"]
    assert found["duly_waiting_since_timestamp_seconds"] == waiting.opened_at.timestamp()
