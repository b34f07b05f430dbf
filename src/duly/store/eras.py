"""Eras: the spans in which each of a task's schedules was in force, from its first day to its cursor."""

from dataclasses import dataclass, replace
from datetime import datetime
from zoneinfo import ZoneInfo

from duly import zones
from duly.clock import from_us
from duly.core.schedule import TICK, asks_the_wall
from duly.core.task import Broken, Definition, Task
from duly.errors import DulyError
from duly.store.rows import parsed
from duly.store.store import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class Era:
    """A schedule that held after one instant and until another, that one included."""

    since: datetime
    until: datetime
    version: int
    definition: Definition
    zone: ZoneInfo
    known: bool
    """Its instants were computed by the zone data that this process has; else they cannot be computed again here."""


def eras(session: Session, task: Task) -> list[Era]:
    """All eras of a task that are not empty, the oldest first; one whose definition no longer reads is left out."""
    return [era for era in _all(session, task) if era.since < era.until]


def eras_from(session: Session, task: Task, since: datetime) -> list[Era]:
    """The eras of a task after an instant, also one before its first day: for that time its first schedule stands.

    So what a task was due at never depends on when it is asked: no later edit changes the past.
    """
    held = _all(session, task)
    if held and since < held[0].since:
        # Not the second in which it was written: an interval without a beginning is anchored there, and due later.
        written = held[0].since.replace(microsecond=0) - TICK
        held.insert(0, replace(held[0], since=since, until=min(written, task.planned_until)))
    found = [replace(era, since=max(era.since, since)) for era in held]
    return [era for era in found if era.since < era.until]


def _all(session: Session, task: Task) -> list[Era]:
    versions = session.versions.all(task.id)
    found = []
    for index, held in enumerate(versions):
        since = from_us(held.era_from_us)
        until = from_us(versions[index + 1].era_from_us) if index + 1 < len(versions) else task.planned_until
        definition = parsed(held.definition)
        if isinstance(definition, Broken):
            continue
        try:
            zone = zones.zone(definition.zone)
        except DulyError:
            continue
        known = (
            held.zone_data in {None, zones.zone_data_version()}
            or not asks_the_wall(definition.triggers)
            or zones.stands_still(definition.zone)
        )
        found.append(Era(since=since, until=until, version=held.version, definition=definition, zone=zone, known=known))
    return found
