"""What `verify` reads of fates: from its first day to its cursor every occurrence of a task has exactly one."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from duly.core.occurrences import instant_of, is_of_time
from duly.core.run import Entry
from duly.core.schedule import TICK, count_due, is_due, next_due
from duly.core.task import Definition, Task
from duly.store import Session
from duly.store.eras import eras, eras_from


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A promise that was not kept: which, by which task and run, and what shows it."""

    promise: str
    task: str | None
    run: str | None
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """The fate of one occurrence, or of a counted stretch of them."""

    first: datetime
    last: datetime
    count: int
    told: str
    opened: bool = False


ASKED_LATER = frozenset({"offer", "backfill"})
"""Who opens an occurrence that has its fate already: it keeps that fate, and has a run besides."""
ANSWERS = {"accepted": "accepted", "declined": "declined", "expired": "expired"}
"""States of a missed record, each with the entry that tells of it."""


def fates(session: Session, task: Task, entries: Sequence[Entry]) -> Iterator[Finding]:
    """P6: from its first day, or from what was pruned on, to its cursor every occurrence has exactly one fate."""
    if not session.versions.all(task.id):
        yield Finding(promise="P6", task=task.id, run=None, text="no version of its definition is there")
        return
    told = sorted(_told(entries), key=lambda fate: fate.first)
    held = eras(session, task)
    claimed = _claimed_after(task, told)
    for era in held:
        if not era.known:
            continue
        since = era.since if claimed is None else max(era.since, claimed)
        mine = [fate for fate in told if since < fate.first <= era.until]
        # Beyond the last of its times a task owed nothing more, however long that version stood.
        times, opened = era.definition.rules.times, sum(fate.opened for fate in told if fate.first <= era.until)
        over = times is not None and (opened >= times or (claimed is not None and task.done))
        until = era.until if not over else mine[-1].last if mine else since
        for text in _gaps(era.definition, era.zone, since, until, mine):
            yield Finding(promise="P6", task=task.id, run=None, text=text)
    if told and told[-1].last > task.planned_until:
        text = f"{told[-1].told} lies beyond the cursor {_shown(task.planned_until)}"
        yield Finding(promise="P6", task=task.id, run=None, text=text)
    yield from _opened_later(session, task, entries)
    yield from _answered(session, task, entries)


def _claimed_after(task: Task, told: Sequence[Fate]) -> datetime | None:
    """Give the instant up to which nothing is claimed: the watermark, or the end of a stretch that reaches over it."""
    watermark = task.pruned_until
    if watermark is None:
        return None
    return max([watermark, *(fate.last for fate in told if fate.first <= watermark)])


def _opened_later(session: Session, task: Task, entries: Sequence[Entry]) -> Iterator[Finding]:
    """What people had opened of the past are occurrences of the schedule of that time, and none that is to come."""
    later = [
        (instant_of(entry.occurrence), entry)
        for entry in entries
        if entry.kind == "opened"
        and entry.reason in ASKED_LATER
        and entry.occurrence is not None
        and is_of_time(entry.occurrence)
    ]
    if not later:
        return
    held = eras_from(session, task, min(due for due, _ in later) - TICK)
    for due, entry in later:
        told = f"{entry.occurrence} (opened by {entry.reason})"
        if due > task.planned_until:
            text = f"{told} lies beyond the cursor {_shown(task.planned_until)}"
            yield Finding(promise="P6", task=task.id, run=entry.run, text=text)
            continue
        if any(
            era.known and era.since < due <= era.until and not is_due(era.definition, era.zone, due) for era in held
        ):
            yield Finding(promise="P6", task=task.id, run=entry.run, text=f"{told} is no occurrence of the task")


def _answered(session: Session, task: Task, entries: Sequence[Entry]) -> Iterator[Finding]:
    """Each missed record stands as its entries tell: answered once, by the entry that says so, or not at all."""
    told: dict[str, list[str]] = {}
    for entry in entries:
        if entry.kind in ANSWERS.values():
            told.setdefault(str(entry.details.get("missed")), []).append(entry.kind)
    for one in session.missed.all_of(task.id):
        said = told.get(one.id, [])
        # One that was expired, or closed with its task, may be accepted or be said to be over as well.
        if task.pruned_until is not None and one.noticed_at < task.pruned_until:
            continue
        wanted = ANSWERS.get(one.state)
        answers = [kind for kind in said if kind != "expired"]
        if (wanted is not None and wanted not in said) or len(answers) > 1 or (one.state == "open" and said):
            text = f"{one.id} is {one.state}, and the ledger tells {' and '.join(said) or 'of no answer'}"
            yield Finding(promise="P6", task=task.id, run=one.run, text=text)


def _gaps(
    definition: Definition, zone: ZoneInfo, since: datetime, until: datetime, fates: Sequence[Fate]
) -> Iterator[str]:
    cursor = since
    for fate in fates:
        expected = next_due(definition, zone, cursor)
        if fate.first <= cursor:
            yield f"{fate.told} overlaps another fate"
            cursor = max(cursor, fate.last)
            continue
        if expected is None or expected < fate.first:
            yield f"no fate for {_shown(expected)}, before {fate.told}"
        elif expected > fate.first or not is_due(definition, zone, fate.last):
            yield f"{fate.told} is no occurrence of the task"
        number = count_due(definition, zone, fate.first - TICK, fate.last)
        if number != fate.count:
            yield f"{fate.told} counts {fate.count} and should count {number}"
        cursor = fate.last
    following = next_due(definition, zone, cursor)
    if following is not None and following <= until:
        yield f"no fate for {_shown(following)}, which is not after the cursor"


def _told(entries: Sequence[Entry]) -> Iterator[Fate]:
    for entry in entries:
        if entry.occurrence is None or not is_of_time(entry.occurrence):
            continue
        if entry.kind == "opened" and entry.reason not in ASKED_LATER:
            due = instant_of(entry.occurrence)
            yield Fate(first=due, last=due, count=1, told=f"{entry.occurrence} (opened)", opened=True)
        elif entry.kind in {"missed", "stretch"}:
            first = instant_of(entry.occurrence)
            told = f"{entry.occurrence} ({entry.reason})"
            yield Fate(first=first, last=entry.until_at or first, count=entry.count or 1, told=told)


def _shown(instant: datetime | None) -> str:
    return "nothing" if instant is None else instant.isoformat().replace("+00:00", "Z")
