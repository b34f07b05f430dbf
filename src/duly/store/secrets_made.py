"""Secrets of tokens as they are made: told once, and kept as digests alone; among them those that a run's work is lent.

A secret has 256 bits of chance, so that a plain digest says nothing about it.
"""

import base64
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta

from duly import chance, ids
from duly.core.names import key_of
from duly.core.run import Run
from duly.core.task import Definition, StoreAccess
from duly.store.store import Session
from duly.store.tokens import Kind, Token

SECRET_BYTES = 32
MARK = "duly_"
"""What every secret begins with, so that who finds one knows what it is."""
RIGHTS: Mapping[StoreAccess, frozenset[str]] = {
    "none": frozenset(),
    "read": frozenset({"read"}),
    "run": frozenset({"read", "run"}),
}
"""What the work of a run may do at the store, in the project of its task."""
BY = "duly"


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A token with its secret, which is told this once."""

    token: Token
    secret: str


def make_in(
    session: Session,
    *,
    kind: Kind,
    name: str,
    rights: frozenset[str],
    by: str,
    projects: frozenset[str] | None = None,
    run: str | None = None,
    lasts: timedelta | None = None,
) -> Made | None:
    """Make a token in the caller's transaction; None where its name is taken. One of a `run` counts until its end."""
    id_ = ids.new("tok")
    secret = f"{MARK}{id_}_{_chance()}"
    token = Token(
        id=id_,
        kind=kind,
        name=name,
        digest=digest(secret),
        rights=rights,
        projects=projects,
        run=run,
        created_at=session.now,
        created_by=by,
        expires_at=None if lasts is None else session.now + lasts,
    )
    return Made(token=token, secret=secret) if session.tokens.insert(token) else None


def lend(session: Session, won: Iterable[tuple[Run, Definition]]) -> dict[str, str]:
    """Make a token for each of these claimed runs whose task says so; gives the secrets by runs.

    In the claim's transaction. It counts until the run's end, and an earlier attempt's counts no longer.
    """
    lent: dict[str, str] = {}
    for run, definition in won:
        rights = RIGHTS[definition.rules.store_access]
        if not rights:
            continue
        if not lent:
            session.tokens.delete_ended()
        session.tokens.delete_of_run(run.id)
        projects = frozenset({key_of(definition.project)})
        made = make_in(session, kind="run", name=definition.name, rights=rights, projects=projects, run=run.id, by=BY)
        assert made is not None, "only the names of people's tokens are taken once"
        lent[run.id] = made.secret
    return lent


def digest(secret: str) -> str:
    """Give what the store keeps of a secret."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _chance() -> str:
    return base64.b32encode(chance.token_bytes(SECRET_BYTES)).decode().rstrip("=").lower()
