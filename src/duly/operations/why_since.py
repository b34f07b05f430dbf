"""What did not run as planned since a moment: each instant, or counted stretch of them, with its reason."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from duly.core.lateness import GRACE_MOST
from duly.core.offers import seen
from duly.core.run import Run
from duly.core.schedule import TICK
from duly.core.sentences import Use
from duly.core.task import Task
from duly.errors import Invalid
from duly.operations.why import asking_of, instant
from duly.operations.why_past import fate_at, of_passed, of_run
from duly.operations.why_values import Asking, Fate
from duly.store.moments import Moments, first_of
from duly.store.rows import Written
from duly.store.store import Session

LINES_MOST = 1000
"""Lines that one answer has; the next one goes on where it ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One instant, or `count` instants next to each other, with one fate; figures are those of the first."""

    first: datetime
    last: datetime
    count: int
    fate: str
    use: Use
    reason: str | None
    figures: Mapping[str, object] = field(default_factory=dict)
    run: str | None = None
    missed: str | None = None
    by_time: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Since:
    """The answer: how many instants time has brought since, those that did not run as planned, and where to go on."""

    task: Task
    zone: ZoneInfo | None
    now: datetime
    since: datetime
    due: int
    lines: Sequence[Line]
    following: datetime | None

    def count(self) -> int:
        """Count the instants of time among the lines."""
        return sum(line.count for line in self.lines if line.by_time)


def not_as_planned(session: Session, word: str, since: datetime) -> Since:
    """List, oldest first, what did not run in its time and succeed; Invalid for a run, which has one instant."""
    asking, run = asking_of(session, word)
    if run is not None:
        raise Invalid("a run has one instant: --since asks about a task", field="--since", hint=f"duly why {word}")
    now = session.now
    found = sorted(_lines(asking, since), key=lambda line: (line.first, line.last))
    joined = list(_joined(asking, found))
    kept, more = joined[:LINES_MOST], joined[LINES_MOST:]
    until = asking.task.removed_at or now
    in_force = asking.versions.at(now)
    return Since(
        task=asking.task,
        zone=None if in_force is None else in_force.zone(),
        now=now,
        since=since,
        due=asking.versions.count(since - TICK, until),
        lines=[_told(asking, line) for line in kept],
        following=more[0].first if more else None,
    )


def _lines(asking: Asking, since: datetime) -> Iterator[Line]:
    moments, task = Moments(asking.session.line), asking.task.id
    for run in moments.not_as_planned(task, since, LINES_MOST + 1):
        if run.outcome is not None or (run.state == "waiting" and _waits_long(run, asking.session.now)):
            yield _of_run(run)
    for written in moments.stretches_since(task, since, LINES_MOST + 1):
        yield _of_stretch(asking, written)
    for written in moments.passed_over(task, since, asking.session.now + TICK, LINES_MOST + 1):
        yield _of_event(asking, written)
    yield from _not_planned(asking, since)


def _of_run(run: Run) -> Line:
    return Line(
        first=run.due_at,
        last=run.due_at,
        count=1,
        fate=run.outcome or run.state,
        use="no_start" if run.outcome == "skipped" else "ended",
        reason=run.reason,
        run=run.id,
        by_time=run.occurrence.startswith("at:"),
    )


def _of_stretch(asking: Asking, written: Written) -> Line:
    entry, first = written.entry, first_of(written)
    assert first is not None
    word, missed = "not_opened", entry.details.get("missed")
    if isinstance(missed, str):
        record = asking.session.missed.by_id(missed)
        still = record is not None and seen(record, asking.session.now).state == "open"
        word = "offered" if still else "missed"
    return Line(
        first=first,
        last=entry.until_at or first,
        count=entry.count or 1,
        fate=word,
        use="no_start",
        reason=entry.reason,
        missed=missed if isinstance(missed, str) else None,
    )


def _of_event(asking: Asking, written: Written) -> Line:
    fate = of_passed(asking, written)
    return Line(
        first=written.entry.at,
        last=written.entry.at,
        count=1,
        fate=fate.word,
        use=fate.use,
        reason=fate.reason,
        figures=fate.figures,
        by_time=False,
    )


def _waits_long(run: Run, now: datetime) -> bool:
    return now - max(run.due_at, run.not_before) > GRACE_MOST


def _not_planned(asking: Asking, since: datetime) -> Iterator[Line]:
    """Instants whose time has come and that nobody has opened or counted yet, as one line."""
    task, now = asking.task, asking.session.now
    after = max(since - TICK, task.planned_until)
    until = min(now, task.removed_at or now)
    number = asking.versions.count(after, until)
    first, last = asking.versions.after(after), asking.versions.before(until + TICK)
    if not number or first is None or last is None:
        return
    fate = instant(asking, first).fate
    if fate.word in {"overdue", "not_opened"}:
        yield Line(
            first=first,
            last=last,
            count=number,
            fate=fate.word,
            use=fate.use,
            reason=fate.reason,
            figures=fate.figures,
        )


def _joined(asking: Asking, lines: Sequence[Line]) -> Iterator[Line]:
    """Join lines of one fate whose instants follow each other."""
    held: Line | None = None
    for line in lines:
        if held is not None and _alike(held, line) and asking.versions.after(held.last) == line.first:
            held = replace(held, last=line.last, count=held.count + line.count)
            continue
        if held is not None:
            yield held
        held = line
    if held is not None:
        yield held


def _alike(one: Line, other: Line) -> bool:
    return (one.fate, one.reason, one.by_time) == (other.fate, other.reason, other.by_time)


def _told(asking: Asking, line: Line) -> Line:
    """The line with the figures of its first instant."""
    if line.figures:
        return line
    fate: Fate | None = None
    if line.run is not None:
        run = asking.session.runs.by_id(line.run)
        assert run is not None, "it was read in this transaction"
        fate = of_run(asking, run, tuple(asking.session.ledger.of_run(run.id)))
        figures = dict(fate.figures)
        if run.outcome == "succeeded" and run.started_at is not None:
            figures["late_by_s"] = max(run.started_at - run.due_at, timedelta(0)).total_seconds()
        return replace(line, figures=figures)
    fate = fate_at(asking, line.first, due=True)
    return line if fate is None else replace(line, figures=fate.figures)
