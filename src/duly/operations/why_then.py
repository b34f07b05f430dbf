"""How a task stood at a moment: the definition in force, whether it was on, and what held it; read from the ledger."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from duly import zones
from duly.clock import from_us
from duly.core.names import key_of
from duly.core.run import Entry
from duly.core.schedule import TICK, count_due, last_due, next_due
from duly.core.task import Broken, Definition, Task
from duly.errors import DulyError
from duly.store.moments import Moments
from duly.store.rows import Written
from duly.store.store import Session
from duly.store.versions import Held

LOOKED_AT = 200
"""Switches and holds before a moment that are read to tell how things stood."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InForce:
    """A version of a task's definition with the span in which it was in force: after `since`, up to `until`."""

    version: int
    definition: Definition | Broken
    since: datetime
    until: datetime | None
    era_since: datetime

    def zone(self) -> ZoneInfo | None:
        """Give the zone of its walls; None where definition or zone do not read."""
        if isinstance(self.definition, Broken):
            return None
        try:
            return zones.zone(self.definition.zone)
        except DulyError:
            return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """A pause that was in force at a moment; `ended_at` where it has been lifted since."""

    scope: str
    target: str
    since: datetime
    until: datetime | None
    note: str | None
    by: str | None
    ended_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Off:
    """That a task was switched off at a moment: since when, by whom, and until when where it is on again."""

    since: datetime | None
    by: str | None
    until: datetime | None


class Versions:
    """A task's versions, each read when it is asked for."""

    def __init__(self, session: Session, task: Task) -> None:
        self.task = task
        self._session = session
        self._held: Sequence[Held] = session.versions.all(task.id)
        self._read: dict[int, Definition | Broken] = {}

    def at(self, moment: datetime) -> InForce | None:
        """Give the version in force at a moment; the instant at which one began still belongs to the one before."""
        found = None
        for index, held in enumerate(self._held):
            began = from_us(held.from_us)
            if began > moment or (index and began == moment):
                break
            found = index
        return None if found is None else self._made(found)

    def newest(self) -> InForce | None:
        """Give the version in force now."""
        return self._made(len(self._held) - 1) if self._held else None

    def numbered(self, version: int) -> InForce | None:
        """Give a version by its number."""
        found = next((index for index, held in enumerate(self._held) if held.version == version), None)
        return None if found is None else self._made(found)

    def first(self) -> datetime | None:
        """Give the moment from which the task was there."""
        return from_us(self._held[0].from_us) if self._held else None

    def before(self, moment: datetime) -> datetime | None:
        """Give the last instant strictly before a moment at which the task was due, by the version of its time."""
        ceiling = moment - TICK
        for index in reversed(range(len(self._held))):
            ends = self._ends(index)
            until = ceiling if ends is None else min(ceiling, ends)
            if until <= from_us(self._held[index].era_from_us):
                continue
            one = self._made(index)
            zone = one.zone()
            if zone is None or isinstance(one.definition, Broken):
                continue
            found = last_due(one.definition, zone, until)
            if found is not None and found > one.era_since:
                return found
        return None

    def after(self, moment: datetime) -> datetime | None:
        """Give the first instant strictly after a moment at which the task is due, by the version of its time."""
        for index, held in enumerate(self._held):
            ends, since = self._ends(index), max(moment, from_us(held.era_from_us))
            if ends is not None and ends <= since:
                continue
            one = self._made(index)
            zone = one.zone()
            if zone is None or isinstance(one.definition, Broken):
                continue
            found = next_due(one.definition, zone, since) if one.definition.triggers else None
            if found is not None and (one.until is None or found <= one.until):
                return found
        return None

    def count(self, after: datetime, until: datetime) -> int:
        """Count the instants in (after, until] at which the task was due, each by the version of its time."""
        total = 0
        for index, held in enumerate(self._held):
            # A version that began no era of its own has the triggers of the one before it.
            last = index + 1 == len(self._held)
            ends = until if last else min(until, from_us(self._held[index + 1].era_from_us))
            since = max(after, from_us(held.era_from_us))
            if ends <= since:
                continue
            one = self._made(index)
            zone = one.zone()
            if zone is not None and not isinstance(one.definition, Broken) and one.definition.triggers:
                total += count_due(one.definition, zone, since, ends)
        return total

    def _ends(self, index: int) -> datetime | None:
        return from_us(self._held[index + 1].from_us) if index + 1 < len(self._held) else None

    def _made(self, index: int) -> InForce:
        held = self._held[index]
        return InForce(
            version=held.version,
            definition=self._definition(held.version),
            since=from_us(held.from_us),
            until=self._ends(index),
            era_since=from_us(held.era_from_us),
        )

    def _definition(self, version: int) -> Definition | Broken:
        """Read a version; what is broken now is told as the task tells it, for not every fault is one of its text."""
        if version not in self._read:
            found = self._session.versions.read(self.task.id, version)
            if version == self.task.definition_version:
                found = self.task.broken or self.task.definition
            assert found is not None, "it was read in this transaction"
            self._read[version] = found
        return self._read[version]


def author_of(session: Session, task: Task, in_force: InForce | None) -> str | None:
    """Tell who wrote a version; None where the ledger does not say."""
    if in_force is None:
        return None
    entries = Moments(session.line).switches(task.id, in_force.since, LOOKED_AT)
    return next((one.entry.by for one in entries if one.entry.kind == "defined"), None)


def holds_at(session: Session, task: Task, moment: datetime) -> list[Hold]:
    """Give the pauses that held a task at a moment: its own, its project's, the store's."""
    moments = Moments(session.line)
    project = key_of(task.definition.project)
    entries = [*moments.switches(task.id, moment, LOOKED_AT), *moments.switches(None, moment, LOOKED_AT)]
    wanted = {("task", task.id), ("project", project), ("store", "")}
    found = []
    for key in sorted(wanted):
        last = next((one.entry for one in entries if _target(one.entry) == key), None)
        if last is None or last.kind != "paused" or (last.until_at is not None and last.until_at <= moment):
            continue
        found.append(_hold(session, key, last, entries))
    return sorted(found, key=lambda hold: hold.since)


def off_at(session: Session, task: Task, moment: datetime) -> Off | None:
    """Tell whether a task was switched off at a moment, and by whom; None: it was on."""
    moments = Moments(session.line)
    last = next(_switched(moments.switches(task.id, moment, LOOKED_AT)), None)
    following = next(_switched(moments.switches_after(task.id, moment, LOOKED_AT)), None)
    if last is not None:
        off = last.kind == "disabled"
    elif following is not None:
        off = following.kind == "enabled"
    else:
        off = not task.definition.enabled
    if not off:
        return None
    until = following.at if following is not None and following.kind == "enabled" else None
    return Off(since=last.at if last is not None else None, by=last.by if last is not None else None, until=until)


def _switched(entries: Sequence[Written]) -> Iterator[Entry]:
    return (one.entry for one in entries if one.entry.kind in {"enabled", "disabled"})


def _target(entry: Entry) -> tuple[str, str] | None:
    if entry.kind not in {"paused", "unpaused"}:
        return None
    return str(entry.details.get("scope")), str(entry.details.get("target"))


def _hold(session: Session, key: tuple[str, str], last: Entry, entries: Sequence[Written]) -> Hold:
    # A pause that was asked for again keeps its beginning: it began with the first of those not lifted in between.
    since = last.at
    for one in entries:
        if _target(one.entry) != key or one.entry.at > last.at:
            continue
        if one.entry.kind == "unpaused":
            break
        since = one.entry.at
    return Hold(
        scope=key[0],
        target=key[1],
        since=since,
        until=last.until_at,
        note=str(last.details["note"]) if last.details.get("note") else None,
        by=last.by,
        ended_at=_lifted(session, key, last),
    )


def _lifted(session: Session, key: tuple[str, str], paused: Entry) -> datetime | None:
    """Give when a pause ended, where it has: lifted by a person, or at its end."""
    moments = Moments(session.line)
    task = key[1] if key[0] == "task" else None
    later = moments.switches_after(task, paused.at, LOOKED_AT)
    lifted = next((one.entry for one in later if one.entry.kind == "unpaused" and _target(one.entry) == key), None)
    if lifted is None:
        return None
    return lifted.at if paused.until_at is None else min(lifted.at, paused.until_at)
