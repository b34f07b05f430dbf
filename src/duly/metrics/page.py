"""The page of metrics, as Prometheus reads it: the whole store's figures, and those of the process that serves."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from duly import __version__
from duly.core.values import value
from duly.metrics.counting import Counted, Counting, Histogram
from duly.store.measures import Measures
from duly.store.store import Session

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

OPENMETRICS = "application/openmetrics-text"
PUBLIC_STATES: Mapping[str, str] = {"waiting": "waiting", "held": "running", "parked": "parked"}
OUTCOMES = ("succeeded", "failed", "timed_out", "cancelled", "abandoned")
"""Counted from nothing on, so that the first of its kind is a rise."""


@value
class Standing:
    """How the store and one of its holders stand at a moment; instants and spans in seconds."""

    tasks: int
    enabled: int
    runs: Mapping[str, int]
    open_missed: int
    open_questions: int
    holders: Mapping[str, int]
    """By their state, those that are gone left out; one that died is counted until it is found out."""
    next_due_s: float | None
    waiting_since_s: float | None
    ledger: int
    beat_age_s: float | None
    slots: int | None
    running: int | None
    claims: int | None
    claims_lost: int | None


def page(session: Session, counting: Counting, *, holder: str | None, readers: int, accept: str) -> tuple[bytes, str]:
    """Give the page and what kind of text it is, by what the reader accepts; `holder`: who serves in this process."""
    from prometheus_client import CollectorRegistry, exposition
    from prometheus_client.openmetrics import exposition as openmetrics
    from prometheus_client.process_collector import ProcessCollector

    counted, standing = counting.look(session), standing_of(session, holder)
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Given([*_counters(counted), *_gauges(standing, readers)]))
    ProcessCollector(registry=registry)
    if OPENMETRICS in accept:
        written: bytes = openmetrics.generate_latest(registry)  # type: ignore[no-untyped-call]
        return written, openmetrics.CONTENT_TYPE_LATEST
    return exposition.generate_latest(registry), exposition.CONTENT_TYPE_PLAIN_0_0_4


def standing_of(session: Session, holder: str | None) -> Standing:
    """Ask the store how it stands, and how one of its holders does."""
    tasks, enabled, next_due_us = session.tasks.counts()
    counts, living = session.runs.counts(), session.holders.living()
    waiting_us = Measures(session.line).oldest_waiting_us()
    row = None if holder is None else session.holders.by_id(holder)
    return Standing(
        tasks=tasks,
        enabled=enabled,
        runs={word: counts.get(state, 0) for state, word in PUBLIC_STATES.items()},
        open_missed=sum(session.missed.open_counts(session.now).values()),
        open_questions=session.questions.open_count(session.now),
        holders={state: sum(one.state == state for one in living) for state in ("alive", "draining")},
        next_due_s=None if next_due_us is None else next_due_us / 1e6,
        waiting_since_s=None if waiting_us is None else waiting_us / 1e6,
        ledger=session.ledger.last(),
        beat_age_s=None if row is None else max(0.0, (session.now - row.last_beat_at).total_seconds()),
        slots=None if row is None else row.slots,
        running=None if row is None else len(session.runs.held_by(row.id)),
        claims=None if row is None else row.claims,
        claims_lost=None if row is None else row.claims_lost,
    )


class _Given:
    """Hands out what was made before."""

    def __init__(self, metrics: "Iterable[Metric]") -> None:
        self._metrics = list(metrics)

    def collect(self) -> "Iterable[Metric]":
        """All of it."""
        return self._metrics


def _counters(counted: Counted) -> "Iterable[Metric]":
    from prometheus_client.metrics_core import CounterMetricFamily, HistogramMetricFamily

    def by(name: str, what: str, label: str, values: Mapping[str, int]) -> "Metric":
        family = CounterMetricFamily(name, what, labels=[label])
        for one, count in sorted(values.items()):
            family.add_metric([one], count)
        return family

    def histogram(name: str, what: str, found: Histogram) -> "Metric":
        within = found.within or [0] * len(found.bounds)
        buckets = [(str(float(bound)), float(count)) for bound, count in zip(found.bounds, within, strict=True)]
        return HistogramMetricFamily(name, what, buckets=[*buckets, ("+Inf", float(found.count))], sum_value=found.sum)

    since = "of the whole store, since this process began"
    yield by("duly_ledger_entries", f"Entries of the ledger {since}", "kind", counted.entries)
    yield CounterMetricFamily("duly_occurrences_opened", f"Runs opened {since}", value=counted.entries.get("opened", 0))
    yield CounterMetricFamily("duly_claims", f"Attempts claimed {since}", value=counted.entries.get("claimed", 0))
    yield by("duly_occurrences_unstarted", f"Occurrences without a start {since}", "reason", counted.unstarted)
    ended = {**dict.fromkeys(OUTCOMES, 0), **counted.ended}
    yield by("duly_runs_ended", f"Runs that were started and have ended, {since}", "outcome", ended)
    yield histogram("duly_run_late_seconds", f"How late first attempts began, {since}", counted.late)
    yield histogram("duly_run_duration_seconds", f"From start to end of runs, {since}", counted.durations)


def _gauges(now: Standing, readers: int) -> "Iterable[Metric]":
    from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily

    def gauge(name: str, what: str, of: float | None) -> "Iterable[Metric]":
        return [] if of is None else [GaugeMetricFamily(name, what, value=of)]

    def by(name: str, what: str, label: str, values: Mapping[str, int]) -> "Metric":
        family = GaugeMetricFamily(name, what, labels=[label])
        for one, count in values.items():
            family.add_metric([one], count)
        return family

    yield by("duly_build", "The version that serves", "version", {__version__: 1})
    yield by("duly_tasks", "Tasks", "state", {"enabled": now.enabled, "disabled": now.tasks - now.enabled})
    yield by("duly_runs", "Runs that have not ended", "state", now.runs)
    yield by("duly_holders", "Processes on record that may hold runs", "state", now.holders)
    yield from gauge("duly_missed_open", "Missed occurrences that wait for a person", now.open_missed)
    yield from gauge("duly_questions_open", "Questions that wait for a person", now.open_questions)
    yield from gauge("duly_next_due_timestamp_seconds", "When a task is due next", now.next_due_s)
    yield from gauge(
        "duly_waiting_since_timestamp_seconds", "When the run was opened that has waited longest", now.waiting_since_s
    )
    yield from gauge("duly_ledger_last", "The number of the newest entry of the ledger", now.ledger)
    yield from gauge("duly_stream_readers", "Readers of streams of this process", readers)
    yield from gauge("duly_holder_heartbeat_age_seconds", "Since the last beat of this process", now.beat_age_s)
    yield from gauge("duly_holder_slots", "Runs that this process may perform at once", now.slots)
    yield from gauge("duly_holder_running", "Runs that this process holds", now.running)
    if now.claims is not None and now.claims_lost is not None:
        yield CounterMetricFamily("duly_holder_claims", "Claims of this process, as of its last beat", value=now.claims)
        yield CounterMetricFamily(
            "duly_holder_claims_lost", "Claims that another process was faster with", value=now.claims_lost
        )
