"""Outages as people ask for them: each with what was missed, caught up and interrupted by it, and what nobody can know.

An event that its sender could not deliver left nothing here: so the last one before is named, to send again from there.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from duly.core.occurrences import instant_of, is_of_time
from duly.core.outages import LEAST
from duly.core.run import Entry, Missed
from duly.core.sentences import sentence
from duly.operations import serving, shapes
from duly.operations.lookup import told
from duly.store.rows import Written
from duly.store.store import Session, Store

PAGE = 200
MISSED_MOST = 20_000
"""Records of what was missed that one answer looks at."""
ENTRIES_MOST = 2_000
"""Entries after an outage that are asked whether they tell of what came of it."""
NOTED_WITHIN = timedelta(minutes=10)
"""What was interrupted or is caught up is found so soon after an outage, or belongs to another one."""
INTERRUPTIONS = frozenset({"holder_died", "lease_lost"})
REACHABLE = frozenset({"clock_step", "frozen"})
"""Whose senders could deliver all the same."""


@dataclass(slots=True, kw_only=True)
class OfTask:
    """What an outage did to one task."""

    missed: Counter[str] = field(default_factory=Counter)
    caught_up: int = 0
    interrupted: int = 0
    first: datetime | None = None
    last: datetime | None = None

    def at(self, first: datetime, last: datetime) -> None:
        """Widen its bounds."""
        self.first = first if self.first is None else min(self.first, first)
        self.last = last if self.last is None else max(self.last, last)


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One outage as it is told: still going on where it has no end."""

    seq: int | None
    cause: str
    since: datetime
    until: datetime | None
    noticed_at: datetime
    holder: str | None
    details: dict[str, object]


def outages(
    store: Store, session: Session, *, since: datetime | None, cursor: int | None, most: int
) -> tuple[list[dict[str, object]], int | None]:
    """List outages, the newest first; at the front the one that goes on, where nobody serves now."""
    page: list[Span] = []
    following = None
    for span in _spans(session, cursor):
        if since is not None and (span.until or session.now) < since:
            continue
        if len(page) == most:
            following = page[-1].seq
            break
        page.append(span)
    missed = _missed(session, page)
    found = [_shape(session, one, missed) for one in page]
    if cursor is None and (going_on := _going_on(store, session)) is not None:
        found.insert(0, _shape(session, going_on, ()))
    return found, following


def outage_at(session: Session, at: datetime) -> Written | None:
    """Give the outage that a moment lies in, of the newest ones; the shortest where it lies in several."""
    found = [
        one
        for one in session.ledger.outages(session.ledger.last() + 1, most=PAGE)
        if (span := _span(one)).until is not None and span.since <= at <= span.until
    ]
    return min(found, key=lambda one: (one.entry.until_at or at) - _span(one).since, default=None)


def _spans(session: Session, cursor: int | None) -> Iterator[Span]:
    before = cursor if cursor is not None else session.ledger.last() + 1
    while page := session.ledger.outages(before, most=PAGE):
        yield from map(_span, page)
        before = page[-1].seq


def _span(written: Written) -> Span:
    entry = written.entry
    details = dict(entry.details)
    since = _instant(details.get("since")) or entry.at
    until = entry.until_at or _instant(details.get("until")) or entry.at
    return Span(
        seq=written.seq,
        cause=entry.reason or str(details.get("cause")),
        since=since,
        until=until,
        noticed_at=entry.at,
        holder=entry.holder,
        details=details,
    )


def _going_on(store: Store, session: Session) -> Span | None:
    """Nobody serves now, and somebody did: since when, and whether that one left or died."""
    alive = serving.alive(store, session)
    if any(row.id in alive and row.slots > 0 for row in session.holders.living()):
        return None
    last = session.holders.last_seen("")
    if last is None or session.now - last.last_beat_at < LEAST:
        return None
    cause = "stopped" if last.state == "gone" else "died"
    if last.boot != store.clock.boot_id():
        cause = "boot"
    details: dict[str, object] = {"last": last.id, "host": last.host}
    details["for_s"] = round((session.now - last.last_beat_at).total_seconds(), 3)
    now = session.now
    return Span(
        seq=None, cause=cause, since=last.last_beat_at, until=None, noticed_at=now, holder=None, details=details
    )


def _missed(session: Session, page: Sequence[Span]) -> list[Missed]:
    spans = [(one.since, one.until) for one in page if one.until is not None]
    if not spans:
        return []
    return session.missed.within(min(since for since, _ in spans), max(until for _, until in spans), most=MISSED_MOST)


def _shape(session: Session, one: Span, missed: Sequence[Missed]) -> dict[str, object]:
    found = _joined(session, one, missed)
    lasted = (one.until or session.now) - one.since
    return {
        "seq": one.seq,
        "cause": one.cause,
        "since": shapes.instant(one.since),
        "until": shapes.instant(one.until),
        "for_s": shapes.seconds(lasted),
        "words": sentence("outage", one.cause, {"for_s": shapes.seconds(lasted), **one.details}),
        "noticed_at": shapes.instant(one.noticed_at),
        "holder": one.holder,
        "host": one.details.get("host"),
        "others": one.details.get("others"),
        "missed": sum(of.missed.total() for of in found.values()),
        "caught_up": sum(of.caught_up for of in found.values()),
        "interrupted": sum(of.interrupted for of in found.values()),
        "tasks": [_task(session, id_, of) for id_, of in found.items()],
        "unknown": _unknown(session, one),
        "details": {key: value for key, value in one.details.items() if key not in {"host", "others"}},
    }


def _joined(session: Session, one: Span, missed: Sequence[Missed]) -> dict[str, OfTask]:
    """Give what came of an outage by task: missed in its span, and found after it."""
    found: dict[str, OfTask] = {}
    until = one.until
    if until is None:
        return found
    for row in missed:
        if row.due_at <= until and row.until_at >= one.since and row.noticed_at >= until - LEAST:
            of = found.setdefault(row.task, OfTask())
            of.missed[row.reason] += row.count
            of.at(row.due_at, row.until_at)
    for entry in _after(session, one, until):
        _join(found, entry, one.since, until)
    return found


def _join(found: dict[str, OfTask], entry: Entry, since: datetime, until: datetime) -> None:
    if entry.task is None:
        return
    if entry.kind == "opened" and entry.reason == "catch_up" and is_of_time(entry.occurrence or ""):
        due = instant_of(entry.occurrence or "")
        if since <= due <= until:
            of = found.setdefault(entry.task, OfTask())
            of.caught_up += 1
            of.at(due, due)
    elif (entry.kind, entry.reason) == ("ended", "end_not_confirmed") or (
        entry.kind == "swept" and entry.reason in INTERRUPTIONS
    ):
        found.setdefault(entry.task, OfTask()).interrupted += 1


def _after(session: Session, one: Span, until: datetime) -> Iterator[Entry]:
    assert one.seq is not None
    for written in session.ledger.after(one.seq, most=ENTRIES_MOST):
        if written.entry.at > until + NOTED_WITHIN or written.entry.kind == "outage":
            return
        yield written.entry


def _task(session: Session, id_: str, of: OfTask) -> dict[str, object]:
    task = session.tasks.by_id(id_)
    return {
        "task": id_,
        "task_name": None if task is None else task.definition.name,
        "project": None if task is None else task.definition.project,
        "told": id_ if task is None else told(task),
        "missed": of.missed.total(),
        "reasons": dict(of.missed),
        "caught_up": of.caught_up,
        "interrupted": of.interrupted,
        "first_due_at": shapes.instant(of.first),
        "last_due_at": shapes.instant(of.last),
    }


def _unknown(session: Session, one: Span) -> list[dict[str, object]]:
    """Name each source that tasks listen to, with the last event of it that came before."""
    if one.cause in REACHABLE:
        return []
    known = {source.name: source for source in session.events.known()}
    found: list[dict[str, object]] = []
    for name in session.events.listened():
        if name.startswith("duly."):
            continue  # told by whoever serves, of what happened here
        last = session.events.last_before(name, one.since)
        if last is None and name in known and known[name].last_at <= one.since:
            last = known[name].last_key, known[name].last_at
        key, at = last if last is not None else (None, None)
        found.append({"source": name, "last_key": key, "last_at": shapes.instant(at)})
    return found


def _instant(text: object) -> datetime | None:
    return datetime.fromisoformat(text) if isinstance(text, str) else None
