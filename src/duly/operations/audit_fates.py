"""What `verify` reads of fates: from its first day to its cursor every occurrence of a task has exactly one."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import NamedTuple

from duly.clock import from_us
from duly.core.occurrences import instant_of, is_of_time
from duly.core.schedule import TICK, count_due, is_due, next_due, walk
from duly.core.task import Task
from duly.operations.audit_order import FarOutOfOrder, in_order, in_passes
from duly.store import Session
from duly.store.auditing import TaskLine
from duly.store.eras import Era, eras, eras_from


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A promise that was not kept: which, by which task and run, and what shows it."""

    promise: str
    task: str | None
    run: str | None
    text: str


class Fate(NamedTuple):
    """The fate of one occurrence, or of a counted stretch of them; they sort by their first, then as written."""

    first: datetime
    seq: int
    last: datetime
    number: int
    told: str
    opened: bool


ASKED_LATER = frozenset({"offer", "backfill"})
"""Who opens an occurrence that has its fate already: it keeps that fate, and has a run besides."""
BEFORE_ALL = datetime(1, 1, 1, tzinfo=UTC)


def fates(
    session: Session,
    task: Task,
    first_read: Iterable[Fate],
    read: Callable[[], Iterable[Fate]],
    *,
    most: int,
) -> list[Finding]:
    """P6: from its first day, or from what was pruned on, to its cursor every occurrence has exactly one fate.

    What was written far out of order is read again, as often as it needs. Gives at most so many findings.
    """
    found = partial(Finding, promise="P6", task=task.id, run=None)
    if not session.versions.all(task.id):
        return [found(text="no version of its definition is there")]
    held = eras(session, task)
    try:
        return [found(text=text) for text in _judged(task, held, in_order(first_read), most)]
    except FarOutOfOrder:
        return [found(text=text) for text in _judged(task, held, in_passes(read), most)]


class Later:
    """What people had opened of the past: occurrences of the schedule of that time, and none that is to come."""

    def __init__(self, session: Session, task: Task) -> None:
        self._task = task
        self._held = partial(eras_from, session, task, BEFORE_ALL)
        self._eras: list[Era] | None = None

    def is_asked(self, line: TaskLine) -> bool:
        """Say whether it tells of a run that was opened so."""
        return line.reason in ASKED_LATER and line.occurrence is not None and is_of_time(line.occurrence)

    def read(self, line: TaskLine) -> Iterator[Finding]:
        """Take one more entry that tells of such a run."""
        assert line.occurrence is not None
        if self._eras is None:
            self._eras = self._held()
        due, told = instant_of(line.occurrence), f"{line.occurrence} (opened by {line.reason})"
        if due > self._task.planned_until:
            text = f"{told} lies beyond the cursor {_shown(self._task.planned_until)}"
            yield Finding(promise="P6", task=self._task.id, run=line.run, text=text)
        elif any(
            era.known and era.since < due <= era.until and not is_due(era.definition, era.zone, due)
            for era in self._eras
        ):
            yield Finding(promise="P6", task=self._task.id, run=line.run, text=f"{told} is no occurrence of the task")


def _judged(task: Task, held: list[Era], told: Iterable[Fate], most: int) -> list[str]:
    """Judge all fates of a task, which come in order; stops where so many texts were found."""
    walk = _Walk(task, held)
    for fate in told:
        walk.take(fate)
        if len(walk.found) >= most:
            return walk.found[:most]
    walk.end()
    return walk.found[:most]


class _Walk:
    """A walk through a task's eras and its fates, side by side, each in its order."""

    def __init__(self, task: Task, held: list[Era]) -> None:
        self.found: list[str] = []
        self._task = task
        self._left = list(reversed(held))
        self._cursor: datetime | None = None
        """Up to where this era has its fates; None before its first."""
        self._claimed = task.pruned_until
        """Up to here nothing is claimed: the watermark, or the end of a stretch that reaches over it."""
        self._ahead: Iterator[datetime] | None = None
        """The instants after the cursor, while nothing but single ones is met."""
        self._opened = 0
        self._last: Fate | None = None

    def take(self, fate: Fate) -> None:
        """Take the next fate."""
        self._last = fate
        watermark = self._task.pruned_until
        if watermark is not None and self._claimed is not None and fate.first <= watermark:
            self._claimed = max(self._claimed, fate.last)
            self._opened += fate.opened
            return
        while self._left and fate.first > self._left[-1].until:
            self._close()
        if self._left and fate.first > self._since():
            self._judge(self._left[-1], fate)
        self._opened += fate.opened

    def end(self) -> None:
        """There are no more fates."""
        while self._left:
            self._close()
        if self._last is not None and self._last.last > self._task.planned_until:
            self.found.append(f"{self._last.told} lies beyond the cursor {_shown(self._task.planned_until)}")

    def _since(self) -> datetime:
        since = self._left[-1].since
        return since if self._claimed is None else max(since, self._claimed)

    def _judge(self, era: Era, fate: Fate) -> None:
        if not era.known:
            return
        cursor = self._since() if self._cursor is None else self._cursor
        self._cursor = max(cursor, fate.last)
        if fate.first <= cursor:
            self._ahead = None
            self.found.append(f"{fate.told} overlaps another fate")
            return
        if self._ahead is None:
            self._ahead = walk(era.definition, era.zone, cursor)
        expected = next(self._ahead, None)
        if expected == fate.first == fate.last and fate.number == 1:
            return  # as nearly all are
        self._ahead = None
        if expected is None or expected < fate.first:
            self.found.append(f"no fate for {_shown(expected)}, before {fate.told}")
        elif expected > fate.first or not is_due(era.definition, era.zone, fate.last):
            self.found.append(f"{fate.told} is no occurrence of the task")
        number = count_due(era.definition, era.zone, fate.first - TICK, fate.last)
        if number != fate.number:
            self.found.append(f"{fate.told} counts {fate.number} and should count {number}")

    def _close(self) -> None:
        """The era is over: nothing is left of it without a fate."""
        since = self._since()
        era, cursor = self._left.pop(), self._cursor
        self._cursor = self._ahead = None
        # Beyond the last of its times a task owed nothing more, however long that version stood.
        times = era.definition.rules.times
        over = times is not None and (self._opened >= times or (self._claimed is not None and self._task.done))
        if not era.known or over:
            return
        following = next_due(era.definition, era.zone, since if cursor is None else cursor)
        if following is not None and following <= era.until:
            self.found.append(f"no fate for {_shown(following)}, which is not after the cursor")


def fate_of(line: TaskLine) -> Fate | None:
    """Give the fate that an entry tells, if it tells one."""
    if line.occurrence is None:
        return None
    if line.kind == "opened" and line.reason not in ASKED_LATER:
        return fate_of_opened(line.seq, line.occurrence)
    if line.kind in {"missed", "stretch"} and is_of_time(line.occurrence):
        first = instant_of(line.occurrence)
        last = first if line.until_us is None else from_us(line.until_us)
        return Fate(first, line.seq, last, line.counted or 1, f"{line.occurrence} ({line.reason})", False)
    return None


def fate_of_opened(seq: int, occurrence: str) -> Fate | None:
    """Give the fate of an occurrence that was opened in its time, where time brought it."""
    if not is_of_time(occurrence):
        return None
    due = instant_of(occurrence)
    return Fate(due, seq, due, 1, f"{occurrence} (opened)", True)


def _shown(instant: datetime | None) -> str:
    return "nothing" if instant is None else instant.isoformat().replace("+00:00", "Z")
