"""Traces of runs, made when they have ended, for whoever collects them."""

import sys
import time
from collections.abc import Sequence

import pytest
from holder_scene import Stage, until_idle

pytest.importorskip("opentelemetry.sdk.trace", reason="the extra `otel` is not installed")

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from duly.clock import to_us
from duly.metrics import traces
from duly.metrics.traces import Traces, traced
from duly.operations import runs


def ended(stage: Stage, exporter: InMemorySpanExporter) -> Sequence[ReadableSpan]:
    """Run one task to its end, with traces made of it."""
    stage.script.over.set()
    holder = stage.holder()
    made = Traces(stage.store, holder._tell, SimpleSpanProcessor(exporter))
    holder._tell = made.told
    made.start()
    runs.run_now(stage.store, "traced", by="ann")
    until = time.monotonic() + 60
    while not stage.read().runs or stage.read().runs[0].state != "ended":
        assert time.monotonic() < until
        until_idle(holder)
    made.stop()
    return exporter.get_finished_spans()


def test_a_run_that_ended_is_a_trace_with_a_span_an_attempt(stage: Stage) -> None:
    stage.add("traced", "manual")
    spans = ended(stage, InMemorySpanExporter())
    attempt, whole = spans
    [run] = stage.read().runs
    assert (whole.name, attempt.name) == ("run traced", "attempt 1")
    assert whole.context.trace_id == attempt.context.trace_id
    assert attempt.parent is not None
    assert attempt.parent.span_id == whole.context.span_id
    assert whole.parent is None
    assert run.ended_at is not None
    assert (whole.start_time, whole.end_time) == (to_us(run.opened_at) * 1000, to_us(run.ended_at) * 1000)
    told = dict(whole.attributes or {})
    assert (told["duly.run"], told["duly.outcome"], told["duly.attempts"]) == (run.id, "succeeded", 1)
    assert whole.status.is_ok
    assert whole.resource.attributes["service.name"] == "duly"
    assert ("run ended", run.id) in [(event, figures.get("run")) for event, figures in stage.told]


def test_the_ids_of_a_trace_follow_from_its_run(stage: Stage) -> None:
    stage.add("traced", "manual")
    spans = ended(stage, InMemorySpanExporter())
    again = InMemorySpanExporter()
    made = Traces(stage.store, lambda *_: None, SimpleSpanProcessor(again))
    made.start()
    made.told("run ended", {"run": stage.read().runs[0].id})
    made.told("run ended", {"run": "run_nobody"})
    made.stop()
    assert [one.context for one in again.get_finished_spans()] == [one.context for one in spans]


def test_without_a_collector_in_the_environment_nothing_is_made(stage: Stage) -> None:
    def tell(event: str, figures: object) -> None:
        raise AssertionError(event)

    off = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_SDK_DISABLED": "true"}
    for environ in ({}, off):
        with traced(stage.store, tell, environ) as told:
            assert told is tell


def test_a_collector_without_the_extra_is_told_and_nothing_else_changes(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    said: list[str] = []

    def tell(event: str, figures: object) -> None:
        said.append(event)

    with traced(stage.store, tell, {traces.ENDPOINTS[0]: "http://127.0.0.1:9"}) as told:
        assert told is tell
    assert said == ["traces are not made: they need the extra `otel`"]
