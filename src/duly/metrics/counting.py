"""Counting what the ledger was told since this process began, a stretch at each look."""

import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from duly.store.measures import DURATION_BOUNDS, LATE_BOUNDS, Measures
from duly.store.store import Session

ENTRIES_A_LOOK = 500_000
"""What is more is counted by the next look: a look is asked for by somebody who waits."""
UNSTARTED = frozenset({"missed", "skipped", "stretch"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram:
    """How many values there were, their sum, and how many of them lie within each bound."""

    bounds: Sequence[float]
    count: int = 0
    sum: float = 0.0
    within: Sequence[int] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """What has happened in the store since this process began, whoever did it."""

    entries: Mapping[str, int]
    """Entries of the ledger by their kind."""
    unstarted: Mapping[str, int]
    """Occurrences without a start, by reason."""
    ended: Mapping[str, int]
    """Runs that were started and have ended, by outcome."""
    late: Histogram
    durations: Histogram


@dataclass
class _Sums:
    entries: Counter[str] = field(default_factory=Counter)
    unstarted: Counter[str] = field(default_factory=Counter)
    ended: Counter[str] = field(default_factory=Counter)
    late: Histogram = field(default_factory=lambda: Histogram(bounds=LATE_BOUNDS))
    durations: Histogram = field(default_factory=lambda: Histogram(bounds=DURATION_BOUNDS))


class Counting:
    """Goes along the ledger; safe from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: int | None = None
        self._sums = _Sums()

    def begin(self, session: Session) -> None:
        """Count from here on."""
        with self._lock:
            self._seen = session.ledger.last()

    def look(self, session: Session) -> Counted:
        """Count what is new, and give the sums; the first look counts from there on where nobody began before."""
        with self._lock:
            last = session.ledger.last()
            seen = last if self._seen is None else min(self._seen, last)
            self._seen = min(last, seen + ENTRIES_A_LOOK)
            if self._seen > seen:
                self._add(Measures(session.line), seen, self._seen)
            sums = self._sums
            return Counted(
                entries=dict(sums.entries),
                unstarted=dict(sums.unstarted),
                ended=dict(sums.ended),
                late=sums.late,
                durations=sums.durations,
            )

    def _add(self, measures: Measures, after: int, until: int) -> None:
        sums = self._sums
        for kind, reason, entries, occurrences in measures.kinds(after, until):
            sums.entries[kind] += entries
            if kind in UNSTARTED:
                sums.unstarted[reason or ""] += occurrences
        sums.late = _with(sums.late, measures.starts(after, until))
        for outcome, found in measures.ends(after, until).items():
            sums.ended[outcome] += found[0]
            sums.durations = _with(sums.durations, found)


def _with(known: Histogram, found: tuple[int, float, list[int]]) -> Histogram:
    count, total, within = found
    before = known.within or [0] * len(known.bounds)
    return Histogram(
        bounds=known.bounds,
        count=known.count + count,
        sum=known.sum + total,
        within=[one + more for one, more in zip(before, within, strict=True)],
    )
