"""Defaults of the store and of projects, and definitions read with them."""

import json
from collections.abc import Mapping
from functools import lru_cache

from sqlalchemy import bindparam, delete, insert, literal, select, union_all, update

from duly.core.defaults import NO_RULES, readable_defaults, with_defaults, without_defaults
from duly.core.names import key_of
from duly.core.task import Broken, Definition
from duly.store.line import Line
from duly.store.rows import DEFINITIONS_CACHED, dump, parsed
from duly.store.sql import Statement
from duly.store.tables import defaults, projects

STORE = ""
"""The scope of the store's own defaults; a project's are under its key."""
RULES, FOLDER = 0, 1
TEXTS_CACHED = 256
KNOWN = Statement(
    lambda: union_all(
        select(literal(RULES).label("kind"), defaults.c.scope, defaults.c.rules),
        select(literal(FOLDER), projects.c.name_key, projects.c.dir).where(projects.c.dir.is_not(None)),
    )
)
ALL = Statement(lambda: select(defaults.c.scope, defaults.c.rules).order_by(defaults.c.scope))
UPDATE = Statement(lambda: update(defaults).where(defaults.c.scope == bindparam("of")).values(rules=bindparam("rules")))
INSERT = Statement(lambda: insert(defaults).values(scope=bindparam("scope"), rules=bindparam("rules")))
DELETE = Statement(lambda: delete(defaults).where(defaults.c.scope == bindparam("of")))


class Defaults:
    """Default rules by scope. They are read once a transaction, with the first definition that it reads."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._known: tuple[dict[str, str], dict[str, str]] | None = None

    def definition(self, text: str, name: str | None = None) -> Definition | Broken:
        """Read a stored definition with what its project and the store fill in; what does not read says why.

        It costs less where the name is given that the text has.
        """
        read = parsed(text, name)
        rules, folders = self._read()
        if isinstance(read, Broken) or not (rules or folders):
            return read
        return filled_in(text, rules.get(STORE), *self._of_project(read.project))

    def fill_in(self, definition: Definition) -> Definition:
        """Give a definition that is not stored yet with what its project and the store fill in, and nothing else."""
        definition = without_defaults(definition)
        rules, _ = self._read()
        of_project, folder = self._of_project(definition.project)
        return with_defaults(definition, store=_values(rules.get(STORE)), project=_values(of_project), folder=folder)

    def all(self) -> dict[str, dict[str, object]]:
        """Every scope's default rules as JSON has them, what no longer reads too."""
        return {str(row[0]): _mapping(str(row[1])) for row in self._line.rows(ALL)}

    def set(self, scope: str, rules: Mapping[str, object]) -> None:
        """Write all default rules of a scope, as JSON has them; none takes the scope away."""
        if not rules:
            self._line.run(DELETE, of=scope)
        elif not self._line.run(UPDATE, of=scope, rules=dump(rules)):
            self._line.run(INSERT, scope=scope, rules=dump(rules))
        self.forget()

    def forget(self) -> None:
        """Read again at the next definition: default rules or a project's folder were changed in this transaction."""
        self._known = None

    def _read(self) -> tuple[dict[str, str], dict[str, str]]:
        if self._known is None:
            known: tuple[dict[str, str], dict[str, str]] = ({}, {})
            for kind, key, text in self._line.rows(KNOWN):
                known[kind][key] = text
            self._known = known
        return self._known

    def _of_project(self, project: str) -> tuple[str | None, str | None]:
        rules, folders = self._read()
        key = key_of(project)
        return rules.get(key), folders.get(key)


@lru_cache(maxsize=DEFINITIONS_CACHED)
def filled_in(text: str, of_store: str | None, of_project: str | None, folder: str | None) -> Definition | Broken:
    """A definition from its stored text and the texts of the defaults that hold for it."""
    read = parsed(text)
    if isinstance(read, Broken):
        return read
    return with_defaults(read, store=_values(of_store), project=_values(of_project), folder=folder)


@lru_cache(maxsize=TEXTS_CACHED)
def _values(text: str | None) -> Mapping[str, object]:
    return NO_RULES if text is None else readable_defaults(_mapping(text))


def _mapping(text: str) -> dict[str, object]:
    try:
        read = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return read if isinstance(read, dict) else {}
