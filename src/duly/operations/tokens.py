"""Tokens as people make and revoke them, how one is recognised, and how a browser gets a session of its own.

A secret is told once, where it is made; the store keeps its digest. It has 256 bits of chance, so that a plain digest
says nothing about it.
"""

import hmac
from collections.abc import Sequence
from datetime import timedelta

from duly.core.reading import read_name, shown
from duly.core.run import Entry
from duly.errors import Refused
from duly.operations.askers import RIGHTS, Asker, read_rights
from duly.operations.lookup import project_key
from duly.operations.shapes import instant
from duly.store import Session, Store
from duly.store.secrets_made import MARK, Made, digest, make_in
from duly.store.tokens import Kind, Token

SECRET_MOST = 200
LOGIN_FOR = timedelta(minutes=5)
SESSION_FOR = timedelta(hours=12)
NOBODY = "0" * 64
"""The digest that an unknown token is compared with, so that it takes as long."""


def create(store: Store, name: str, *, rights: Sequence[str], projects: Sequence[str], by: str) -> Made:
    """Make a token; held to projects where some are named. Refused `already_exists` where its name is taken."""
    word = read_name(name, "NAME")
    allowed = read_rights(rights)
    with store.write() as session:
        keys = frozenset(project_key(session, one) for one in projects) if projects else None
        made = make_in(session, kind="token", name=word, rights=allowed, projects=keys, by=by)
        if made is None:
            raise Refused(
                "already_exists",
                f"there is a token {shown(word)} already",
                details={"name": word},
                hint=f"another name, or duly token revoke {word}",
            )
        session.ledger.add([_entry(session, made.token, by, "made")])
        return made


def revoke(store: Store, word: str, *, by: str) -> Token:
    """Let a token or a browser's session count no longer, from the next request on; `unknown_id` where none does."""
    with store.write() as session:
        session.tokens.delete_expired(session.now)
        found = session.tokens.by_name(word) or session.tokens.by_id(word)
        if found is None or found.revoked_at is not None or found.kind == "login":
            names = [one.name for one in session.tokens.all() if one.kind == "token" and one.revoked_at is None]
            raise Refused(
                "unknown_id",
                f"no token {shown(word)} counts",
                details={"word": word, "tokens": names[:5]},
                hint=f"one of {', '.join(names[:5])}" if names else "duly token list",
            )
        session.tokens.revoke(found.id, at=session.now, by=by)
        session.ledger.add([_entry(session, found, by, "revoked")])
        again = session.tokens.by_id(found.id)
        assert again is not None
        return again


def listed(session: Session) -> list[Token]:
    """List the tokens that people made, revoked ones too, and the sessions that are not over; never a link."""
    return [
        one for one in session.tokens.all() if one.kind == "token" or (one.kind == "session" and _counts(session, one))
    ]


def shape(session: Session, token: Token) -> dict[str, object]:
    """Show a token without its secret, which nobody has any more."""
    projects = None
    if token.projects is not None:
        projects = [session.projects.name(key) or key for key in sorted(token.projects)]
    return {
        "id": token.id,
        "name": token.name,
        "kind": token.kind,
        "rights": [right for right in RIGHTS if right in token.rights],
        "projects": projects,
        "created_at": instant(token.created_at),
        "created_by": token.created_by,
        "expires_at": instant(token.expires_at),
        "revoked_at": instant(token.revoked_at),
        "revoked_by": token.revoked_by,
    }


def asker_of(session: Session, secret: str, kinds: Sequence[Kind] = ("token", "run")) -> Asker | None:
    """Recognise who has this secret; None where nobody does, or it counts no longer. Compares in constant time."""
    id_ = _id_of(secret)
    token = None if id_ is None else session.tokens.by_id(id_)
    same = hmac.compare_digest(digest(secret), NOBODY if token is None else token.digest)
    if token is None or not same or token.kind not in kinds or not _counts(session, token):
        return None
    session_id = token.id if token.kind == "session" else None
    return Asker(name=token.name, rights=token.rights, projects=token.projects, run=token.run, session=session_id)


def begin_login(store: Store, *, by: str) -> Made:
    """Make a link's secret: whoever brings it first, within LOGIN_FOR, gets a session with all rights."""
    with store.write() as session:
        session.tokens.delete_expired(session.now)
        made = make_in(session, kind="login", name=by, rights=frozenset({"admin"}), by=by, lasts=LOGIN_FOR)
        assert made is not None
        return made


def log_in(store: Store, secret: str) -> Made | None:
    """Take a link's secret for a session; None where it does not count, and it counts once."""
    with store.read() as session:
        if asker_of(session, secret, ("login",)) is None:
            return None
    with store.write() as session:
        asker = asker_of(session, secret, ("login",))
        id_ = _id_of(secret)
        if asker is None or id_ is None or not session.tokens.delete(id_):
            return None
        made = make_in(session, kind="session", name=asker.name, rights=asker.rights, by=asker.name, lasts=SESSION_FOR)
        assert made is not None
        session.ledger.add([_entry(session, made.token, asker.name, "made")])
        return made


def log_out(store: Store, id_: str) -> None:
    """End a browser's session."""
    with store.write() as session:
        session.tokens.delete(id_)


def _counts(session: Session, token: Token) -> bool:
    if token.revoked_at is not None or (token.expires_at is not None and token.expires_at <= session.now):
        return False
    if token.run is None:
        return True
    run = session.runs.by_id(token.run)
    return run is not None and run.state != "ended"


def _id_of(secret: str) -> str | None:
    """The id inside a secret; None where it is none of ours."""
    mark, _, rest = secret.partition("_")
    id_, _, tail = rest.rpartition("_")
    ours = f"{mark}_" == MARK and id_.startswith("tok_") and bool(tail) and len(secret) <= SECRET_MOST
    return id_ if ours and secret.isascii() and secret.isprintable() else None


def _entry(session: Session, token: Token, by: str, what: str) -> Entry:
    details: dict[str, object] = {
        "token": token.name,
        "change": what,
        "kind": token.kind,
        "rights": sorted(token.rights),
        "projects": None if token.projects is None else sorted(token.projects),
    }
    return Entry(kind="defined", at=session.now, by=by, details=details)
