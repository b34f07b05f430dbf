"""Projects: the owners of tasks, by the names they go by."""

from datetime import datetime

from sqlalchemy import bindparam, insert, select

from duly.clock import to_us
from duly.store.engine import Line
from duly.store.sql import Statement
from duly.store.tables import projects

PROJECT = Statement(lambda: select(projects.c.name).where(projects.c.name_key == bindparam("key")))
PROJECTS = Statement(lambda: select(projects.c.name).order_by(projects.c.name_key))
INSERT_PROJECT = Statement(
    lambda: insert(projects).values(
        name_key=bindparam("name_key"), name=bindparam("name"), created_us=bindparam("created_us")
    )
)


class Projects:
    """Projects are made with their first task."""

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
