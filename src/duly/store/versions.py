"""Definitions by version: what a task was, version by version, and from when on each held."""

from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import bindparam, insert, select

from duly.clock import to_us
from duly.core.definition_json import definition_to_json
from duly.core.task import Broken, Definition, Task
from duly.store.line import Line
from duly.store.rows import dump
from duly.store.sql import Statement
from duly.store.tables import definitions

INSERT = Statement(
    lambda: insert(definitions).values({c.name: bindparam(c.name, type_=c.type) for c in definitions.columns})
)
VERSION = Statement(
    lambda: select(definitions.c.definition).where(
        definitions.c.task == bindparam("task"), definitions.c.version == bindparam("version")
    )
)
VERSIONS = Statement(
    lambda: (
        select(
            definitions.c.version,
            definitions.c.from_us,
            definitions.c.era_from_us,
            definitions.c.definition,
            definitions.c.zone_data,
        )
        .where(definitions.c.task == bindparam("task"))
        .order_by(definitions.c.version)
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """One version of a task's definition, the instant from which it held, and that from which its triggers did."""

    version: int
    from_us: int
    era_from_us: int
    definition: str
    zone_data: str | None
    """The version of the zone data by which its era was begun."""


class Versions:
    """Versions are written once, with the write of the task that makes them, and never changed."""

    def __init__(self, line: Line, reading: Callable[[str], Definition | Broken]) -> None:
        self._line = line
        self._reading = reading

    def insert(self, task: Task, *, era_from_us: int) -> None:
        """Add the version that a task's definition has now, in force from its last update on."""
        self._line.run(
            INSERT,
            task=task.id,
            version=task.definition_version,
            from_us=to_us(task.updated_at),
            era_from_us=era_from_us,
            definition=dump(definition_to_json(task.definition)),
            zone_data=task.zone_data,
        )

    def read(self, task: str, version: int) -> Definition | Broken | None:
        """One version of a task's definition; what does not read says why, and None is one that is not there."""
        row = self._line.row(VERSION, task=task, version=version)
        return None if row is None else self._reading(str(row[0]))

    def all(self, task: str) -> list[Held]:
        """All versions of a task's definition, oldest first."""
        return [
            Held(version=row[0], from_us=row[1], era_from_us=row[2], definition=row[3], zone_data=row[4])
            for row in self._line.rows(VERSIONS, task=task)
        ]
