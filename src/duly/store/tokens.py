"""Tokens: who may ask over the network, and how far; of a secret only its digest is kept."""

import json
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from sqlalchemy import bindparam, delete, insert, select, update

from duly.clock import from_us, to_us
from duly.core.names import key_of
from duly.errors import Taken
from duly.store.line import Line
from duly.store.sql import Statement
from duly.store.tables import runs
from duly.store.tables_outside import tokens

Kind = Literal["token", "login", "session", "run"]
MOST = 1_000
"""Tokens and sessions that are listed."""
COLUMNS = tuple(column.name for column in tokens.columns)

INSERT = Statement(lambda: insert(tokens).values({c.name: bindparam(c.name, type_=c.type) for c in tokens.columns}))
BY_ID = Statement(lambda: select(tokens).where(tokens.c.id == bindparam("id")))
BY_NAME = Statement(
    lambda: select(tokens).where(
        tokens.c.name_key == bindparam("key"), tokens.c.kind == "token", tokens.c.revoked_us.is_(None)
    )
)
ALL = Statement(lambda: select(tokens).order_by(tokens.c.id).limit(MOST))
REVOKE = Statement(
    lambda: (
        update(tokens)
        .where(tokens.c.id == bindparam("of"), tokens.c.revoked_us.is_(None))
        .values(revoked_us=bindparam("at_us"), revoked_by=bindparam("by"))
    )
)
DELETE = Statement(lambda: delete(tokens).where(tokens.c.id == bindparam("of")))
DELETE_OF_RUN = Statement(lambda: delete(tokens).where(tokens.c.run == bindparam("of")))
DELETE_ENDED = Statement(
    lambda: delete(tokens).where(
        tokens.c.run.is_not(None), tokens.c.run.in_(select(runs.c.id).where(runs.c.state == "ended"))
    )
)
DELETE_EXPIRED = Statement(
    lambda: delete(tokens).where(tokens.c.expires_us.is_not(None), tokens.c.expires_us <= bindparam("now_us"))
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A token: its name, what it may do, the projects it is held to (their keys; None: all), and how long it counts."""

    id: str
    kind: Kind
    name: str
    digest: str
    rights: frozenset[str]
    projects: frozenset[str] | None
    run: str | None
    """The run whose work has it."""
    created_at: datetime
    created_by: str
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    revoked_by: str | None = None


class Tokens:
    """Tokens are made and revoked by people, links and sessions by browsers; none is ever changed otherwise."""

    def __init__(self, line: Line) -> None:
        self._line = line

    def insert(self, token: Token) -> bool:
        """Add a token; False where its name is taken."""
        try:
            with self._line.savepoint():
                self._line.run(
                    INSERT,
                    id=token.id,
                    kind=token.kind,
                    name=token.name,
                    name_key=key_of(token.name),
                    digest=token.digest,
                    rights=json.dumps(sorted(token.rights)),
                    projects=_projects_text(token.projects),
                    run=token.run,
                    created_us=to_us(token.created_at),
                    created_by=token.created_by,
                    expires_us=None if token.expires_at is None else to_us(token.expires_at),
                    revoked_us=None,
                    revoked_by=None,
                )
        except Taken:
            return False
        return True

    def by_id(self, id_: str) -> Token | None:
        """The token of this id, revoked or over or not."""
        row = self._line.row(BY_ID, id=id_)
        return None if row is None else _of(row)

    def by_name(self, name: str) -> Token | None:
        """The token of this name that is not revoked."""
        row = self._line.row(BY_NAME, key=key_of(name))
        return None if row is None else _of(row)

    def all(self) -> list[Token]:
        """All tokens, links and sessions, the oldest first."""
        return [_of(row) for row in self._line.rows(ALL)]

    def revoke(self, id_: str, *, at: datetime, by: str) -> bool:
        """Let a token count no longer; False where it did not before."""
        return bool(self._line.run(REVOKE, of=id_, at_us=to_us(at), by=by))

    def delete(self, id_: str) -> bool:
        """Take a token away; False where there was none, as when somebody else took it first."""
        return bool(self._line.run(DELETE, of=id_))

    def delete_of_run(self, run: str) -> None:
        """Take the tokens of a run away."""
        self._line.run(DELETE_OF_RUN, of=run)

    def delete_ended(self) -> None:
        """Take away the tokens of runs that have ended, which count no longer."""
        self._line.run(DELETE_ENDED)

    def delete_expired(self, now: datetime) -> None:
        """Take away what is over."""
        self._line.run(DELETE_EXPIRED, now_us=to_us(now))


def _projects_text(projects: Collection[str] | None) -> str | None:
    return None if projects is None else json.dumps(sorted(projects))


def _of(row: tuple[object, ...]) -> Token:
    told = dict(zip(COLUMNS, row, strict=True))
    projects = told["projects"]
    return Token(
        id=str(told["id"]),
        kind=told["kind"],  # type: ignore[arg-type]
        name=str(told["name"]),
        digest=str(told["digest"]),
        rights=frozenset(json.loads(str(told["rights"]))),
        projects=None if projects is None else frozenset(json.loads(str(projects))),
        run=_text(told["run"]),
        created_at=from_us(int(str(told["created_us"]))),
        created_by=str(told["created_by"]),
        expires_at=_instant(told["expires_us"]),
        revoked_at=_instant(told["revoked_us"]),
        revoked_by=_text(told["revoked_by"]),
    )


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _instant(value: object) -> datetime | None:
    return None if value is None else from_us(int(str(value)))
