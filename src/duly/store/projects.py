"""Projects: the owners of tasks, by the names they go by."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import bindparam, delete, insert, select, update

from duly.clock import from_us, to_us
from duly.store.line import Line
from duly.store.rows import dump, mapping
from duly.store.sql import Statement
from duly.store.tables import projects

PROJECT = Statement(lambda: select(projects.c.name).where(projects.c.name_key == bindparam("key")))
PROJECTS = Statement(lambda: select(projects.c.name).order_by(projects.c.name_key))
_columns = [projects.c[name] for name in ("name_key", "name", "dir", "created_us", "dir_host", "loops")]
WHOLE = Statement(lambda: select(*_columns).where(projects.c.name_key == bindparam("key")))
ALL = Statement(lambda: select(*_columns).order_by(projects.c.name_key))
INSERT_PROJECT = Statement(
    lambda: insert(projects).values(
        name_key=bindparam("name_key"), name=bindparam("name"), created_us=bindparam("created_us")
    )
)
SET_DIR = Statement(
    lambda: (
        update(projects)
        .where(projects.c.name_key == bindparam("of"))
        .values(dir=bindparam("dir"), dir_host=bindparam("dir_host"))
    )
)
SET_LOOPS = Statement(
    lambda: update(projects).where(projects.c.name_key == bindparam("of")).values(loops=bindparam("loops"))
)
DELETE = Statement(lambda: delete(projects).where(projects.c.name_key == bindparam("of")))


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A project: its key, the name it goes by, and the folder in which its tasks work unless they name another."""

    key: str
    name: str
    dir: str | None
    created_at: datetime
    dir_host: str | None = None
    """The host on which the folder was named; None where no folder is, or it was named by an older version."""
    loops: Mapping[str, object] = field(default_factory=dict)
    """What the last look at its loop files found wrong: `missing`, and `faults` of files that have no task."""


class Projects:
    """Projects are made with their first task, or by a person."""

    def __init__(self, line: Line) -> None:
        self._line = line

    def ensure(self, key: str, name: str, now: datetime) -> str:
        """Make a project unless there is one of this key; gives the name it goes by."""
        row = self._line.row(PROJECT, key=key)
        if row is not None:
            return str(row[0])
        self._line.run(INSERT_PROJECT, name_key=key, name=name, created_us=to_us(now))
        return name

    def names(self) -> list[str]:
        """The names of all projects."""
        return [str(row[0]) for row in self._line.rows(PROJECTS)]

    def name(self, key: str) -> str | None:
        """The name of the project of this key."""
        row = self._line.row(PROJECT, key=key)
        return None if row is None else str(row[0])

    def all(self) -> list[Project]:
        """All projects, by their keys."""
        return [_of(*row) for row in self._line.rows(ALL)]

    def by_key(self, key: str) -> Project | None:
        """The project of this key."""
        row = self._line.row(WHOLE, key=key)
        return None if row is None else _of(*row)

    def set_dir(self, key: str, folder: str | None, host: str | None = None) -> None:
        """Write the folder in which a project's tasks work; the session's defaults must forget what they read."""
        self._line.run(SET_DIR, of=key, dir=folder, dir_host=None if folder is None else host)

    def set_loops(self, key: str, found: Mapping[str, object]) -> None:
        """Write what a look at a project's loop files found wrong."""
        self._line.run(SET_LOOPS, of=key, loops=dump(found) if found else None)

    def delete(self, key: str) -> None:
        """Remove a project's row; its removed tasks keep its name."""
        self._line.run(DELETE, of=key)


def _of(key: str, name: str, folder: str | None, created_us: int, host: str | None, loops: str | None) -> Project:
    found = mapping(loops)
    return Project(key=key, name=name, dir=folder, created_at=from_us(created_us), dir_host=host, loops=found)
