"""Traces: a span a run and one an attempt, made when the run has ended, for collectors that speak OpenTelemetry.

Ids follow from the run's, so that whoever makes spans of the same run makes them of one trace.
"""

import hashlib
import queue
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from duly import __version__
from duly.clock import to_us
from duly.core.ledger import attempts
from duly.core.run import Attempt, Run
from duly.core.spans import write_instant
from duly.errors import DulyError
from duly.store.store import Session, Store

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import SpanProcessor, TracerProvider

ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
OFF = "OTEL_SDK_DISABLED"
RUNS_WAITING_MOST = 2_000
"""Runs that have ended and are not told yet; what is more is left out, and counted."""
ENDS_WITHIN_S = 5.0
FINE = frozenset({"succeeded", "skipped"})

Tell = Callable[[str, Mapping[str, object]], None]


@contextmanager
def traced(store: Store, tell: Tell, environ: Mapping[str, str]) -> Iterator[Tell]:
    """Give what is to be told while inside: the same, and traces where a collector is named in the environment."""
    if not any(environ.get(name) for name in ENDPOINTS) or environ.get(OFF, "").lower() == "true":
        yield tell
        return
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        tell("traces are not made: they need the extra `otel`", {"hint": "pip install 'duly[otel]'"})
        yield tell
        return
    traces = Traces(store, tell, BatchSpanProcessor(OTLPSpanExporter()))
    traces.start()
    try:
        yield traces.told
    finally:
        traces.stop()


class Traces:
    """Makes spans of runs that it hears the end of, in a thread of its own; nobody waits for it."""

    def __init__(self, store: Store, tell: Tell, processor: "SpanProcessor") -> None:
        self._store = store
        self._tell = tell
        self._ended: queue.Queue[str | None] = queue.Queue(RUNS_WAITING_MOST)
        self._left_out = 0
        self._ids = _Ids()
        self._provider = _provider(processor, self._ids)
        self._thread = threading.Thread(target=self._run, name="duly-traces", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Hand on what is known, and wait for that a little."""
        try:
            self._ended.put(None, timeout=ENDS_WITHIN_S)
        except queue.Full:
            return
        self._thread.join(ENDS_WITHIN_S)

    def told(self, event: str, figures: Mapping[str, object]) -> None:
        """Tell on, and note the run that has ended."""
        self._tell(event, figures)
        if event != "run ended":
            return
        try:
            self._ended.put_nowait(str(figures["run"]))
        except queue.Full:
            self._left_out += 1

    def step(self, session: Session, id_: str) -> None:
        """Make the spans of one run."""
        run = session.runs.by_id(id_)
        if run is None or run.ended_at is None:
            return
        task = session.tasks.by_id(run.task)
        name = run.task if task is None else task.definition.name
        self._make(run, name, attempts(one.entry for one in session.ledger.of_run(run.id)))

    def _make(self, run: Run, name: str, tries: tuple[Attempt, ...]) -> None:
        from opentelemetry import trace
        from opentelemetry.trace import SpanKind, Status, StatusCode

        assert run.ended_at is not None
        tracer = self._provider.get_tracer("duly", __version__)
        self._ids.next = _digest(run.id)
        whole = tracer.start_span(
            f"run {name}",
            context=trace.set_span_in_context(trace.INVALID_SPAN),
            kind=SpanKind.CONSUMER,
            start_time=_ns(run.opened_at),
            attributes=_known(_of_run(run, name)),
        )
        for one in tries:
            self._ids.next = _digest(f"{run.id}.{one.fence}")
            span = tracer.start_span(
                f"attempt {one.attempt}",
                context=trace.set_span_in_context(whole),
                start_time=_ns(one.started_at),
                attributes=_known(
                    {
                        "duly.run": run.id,
                        "duly.attempt": one.attempt,
                        "duly.fence": one.fence,
                        "duly.holder": one.holder,
                        "duly.outcome": one.outcome,
                        "duly.reason": one.reason,
                    }
                ),
            )
            span.end(_ns(one.ended_at or run.ended_at))
        if run.outcome not in FINE:
            whole.set_status(Status(StatusCode.ERROR, run.error or run.reason or run.outcome))
        whole.end(_ns(run.ended_at))

    def _run(self) -> None:
        own: Store | None = None
        try:
            while (id_ := self._ended.get()) is not None:
                try:
                    own = own or self._store.another()
                    with own.read() as session:
                        self.step(session, id_)
                except DulyError as error:
                    self._tell("a run is missing from the traces", {"run": id_, "error": error.message})
                    if own is not None:
                        own.close()
                    own = None
            self._provider.shutdown()
        finally:
            if own is not None:
                own.close()
            if self._left_out:
                self._tell("runs are missing from the traces: too many ended at once", {"runs": self._left_out})


class _Ids:
    """Gives the ids that were said beforehand."""

    def __init__(self) -> None:
        self.next = b""

    def generate_span_id(self) -> int:
        """The id of the next span."""
        return int.from_bytes(self.next[16:24]) or 1

    def generate_trace_id(self) -> int:
        """The id of the next trace."""
        return int.from_bytes(self.next[:16]) or 1

    def is_trace_id_random(self) -> bool:
        """Whether its bits are drawn evenly, which a digest's are."""
        return True


def _provider(processor: "SpanProcessor", ids: _Ids) -> "TracerProvider":
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider

    resource = Resource.create({"service.name": "duly", "service.version": __version__})
    made = TracerProvider(resource=resource, id_generator=ids, shutdown_on_exit=False)  # type: ignore[arg-type]
    made.add_span_processor(processor)
    return made


def _of_run(run: Run, name: str) -> dict[str, Any]:
    late = None if run.started_at is None else (run.started_at - run.due_at - run.spread).total_seconds()
    return {
        "duly.run": run.id,
        "duly.task": run.task,
        "duly.task_name": name,
        "duly.project": run.project,
        "duly.occurrence": run.occurrence,
        "duly.due_at": write_instant(run.due_at),
        "duly.opened_by": run.opened_by,
        "duly.attempts": run.attempt,
        "duly.fence": run.fence,
        "duly.outcome": run.outcome,
        "duly.reason": run.reason,
        "duly.late_by_s": late,
        "duly.exit_code": run.exit_code,
    }


def _known(given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value is not None}


def _ns(at: Any) -> int:
    return to_us(at) * 1_000


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()
