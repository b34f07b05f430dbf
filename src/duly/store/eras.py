"""Eras: the spans in which each of a task's schedules was in force, from its first day to its cursor."""

from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from duly import zones
from duly.clock import from_us
from duly.core.schedule import asks_the_wall
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
    versions = session.versions.all(task.id)
    found = []
    for index, held in enumerate(versions):
        since = from_us(held.era_from_us)
        until = from_us(versions[index + 1].era_from_us) if index + 1 < len(versions) else task.planned_until
        definition = parsed(held.definition)
        if until <= since or isinstance(definition, Broken):
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
