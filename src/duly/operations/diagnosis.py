"""`doctor`: what is wrong with a store, with who serves it and with this machine, and what to do about it.

It changes nothing. What the promises say is `verify`'s; here stands what keeps them from being kept.
"""

import sqlite3
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from duly import __version__, zones
from duly.errors import DulyError
from duly.operations import diagnosis_agents, diagnosis_channels, diagnosis_host, diagnosis_rows
from duly.operations import serving as servers
from duly.operations.ailment import Ailment
from duly.operations.serving import holders_alive
from duly.store import Session, Store, copies, engine, making
from duly.store.address import Address, Place, ServerAddress
from duly.store.migrations import REVISIONS

Looks = dict[str, Callable[[], Iterator[Ailment]]]
ROWS: Mapping[str, diagnosis_rows.Look] = {**diagnosis_rows.LOOKS, "channels": diagnosis_channels.channels}
"""What is looked at in the rows of a store."""
FULL = 2
"""The level of `PRAGMA synchronous` at which a commit is on disk when it is answered."""
ONE_CHECK_MOST = 50
"""Ailments of one kind that are told; of more, how many there are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """What an examination found, what it looked at, and the figures of the store as it stands."""

    ailments: Sequence[Ailment]
    checks: Sequence[str]
    facts: Mapping[str, object]


def examine(address: Place, environ: Mapping[str, str]) -> Examined:
    """Look at everything; StoreAway and StoreNewer only where there is nothing that could be looked at."""
    looks: Looks = {
        "settings": lambda: diagnosis_host.settings(environ),
        "stores": lambda: diagnosis_host.stores(environ),
        "agents": lambda: diagnosis_agents.agents(environ),
    }
    facts: dict[str, object] = {"version": __version__, "store": str(address), "zone_data": zones.zone_data_version()}
    facts |= {"python": sys.version.split()[0], "revision": None}
    if not isinstance(address, ServerAddress):
        facts |= {"sqlite": sqlite3.sqlite_version}
    store = None
    if isinstance(address, ServerAddress):
        store = _served(address, environ, facts, looks)
    elif address.path.exists():
        facts |= _of_file(address)
        looks |= {
            "file": lambda: _file(address, facts),
            "place": lambda: diagnosis_host.place(address),
            "rights": lambda: diagnosis_host.rights(address.run_folder, address.path),
            "locks": lambda: diagnosis_host.locks(address.run_folder),
        }
        store = _opened(address, environ, facts)
    else:
        Store.find(address, environ)
    try:
        if store is not None:
            looks |= {name: _on(store, look) for name, look in ROWS.items()}
        found = [one for look in looks.values() for one in _limited(look)]
    finally:
        if store is not None:
            store.close()
    return Examined(ailments=found, checks=tuple(looks), facts=facts)


def shape(found: Examined) -> dict[str, object]:
    """Show an examination."""
    return {
        "ok": not found.ailments,
        "items": [
            {
                "check": one.check,
                "subject": one.subject,
                "message": one.text,
                "details": dict(one.details),
                "hint": one.hint,
            }
            for one in found.ailments
        ],
        "next": None,
        "checks": list(found.checks),
        "facts": dict(found.facts),
    }


def reasons() -> list[dict[str, str]]:
    """List the closed set of reasons by use, each with its sentence."""
    from duly.core.reasons import ENDED, NO_START, NOT_DUE, OUTAGES, REFUSED

    uses = {"no_start": NO_START, "refused": REFUSED, "ended": ENDED, "not_due": NOT_DUE, "outage": OUTAGES}
    return [
        {"use": use, "reason": reason, "sentence": sentence}
        for use, table in uses.items()
        for reason, sentence in table.items()
    ]


def _on(store: Store, look: diagnosis_rows.Look) -> Callable[[], Iterator[Ailment]]:
    def looked() -> Iterator[Ailment]:
        with store.read() as session:
            yield from look(store, session)

    return looked


def _limited(look: Callable[[], Iterator[Ailment]]) -> Iterator[Ailment]:
    """Tell the first ailments of each kind; what keeps a check from its end is one itself."""
    seen: dict[str, int] = {}
    try:
        for one in look():
            seen[one.check] = seen.get(one.check, 0) + 1
            if seen[one.check] <= ONE_CHECK_MOST:
                yield one
    except (DulyError, OSError) as error:
        yield Ailment(check="not_examined", text=f"a check could not be made: {error}", hint="duly doctor again")
    for check, count in seen.items():
        if count > ONE_CHECK_MOST:
            yield Ailment(
                check=check,
                text=f"and {count - ONE_CHECK_MOST:,} more of this kind",
                details={"count": count},
                hint="mend the first ones and look again",
            )


def _opened(address: Address, environ: Mapping[str, str], facts: Mapping[str, object]) -> Store | None:
    """Open the store for reading; None where it is damaged or older, which are findings of their own."""
    older = facts["revision"] in REVISIONS and facts["revision"] != REVISIONS[-1]
    return None if older or facts["faults"] else Store.find(address, environ)


def _of_file(address: Address) -> dict[str, object]:
    """Read the file itself, page by page, and how durable what is written to it is."""
    with copies.looked_at(address.path) as line:
        faults = copies.faults(line)
        try:
            found = making.look(line, address.path)
        except DulyError:
            if faults and _is_ours(line):
                return {"revision": None, "faults": faults}
            raise
        making.check_version(found, address.path)
        facts: dict[str, object] = {"revision": found.revision, "faults": faults}
        facts |= {"journal_mode": str(line.scalar("PRAGMA journal_mode")), "bytes": address.path.stat().st_size}
        # As every connection of ours asks for it; a SQLite that does not obey says another level.
        line.raw.execute("PRAGMA synchronous=FULL")
        facts |= {"synchronous": int(line.scalar("PRAGMA synchronous"))}
    log = address.path.with_name(address.path.name + "-wal")
    facts |= {"log_bytes": log.stat().st_size if log.exists() else 0}
    facts |= {"holders_alive": len(holders_alive(address.run_folder))}
    return facts


def _served(address: ServerAddress, environ: Mapping[str, str], facts: dict[str, object], looks: Looks) -> Store | None:
    """Open a store on a server for reading; None where there is none, and where it is older, which is a finding."""
    from duly.store.server_engine import ServerEngine

    server = ServerEngine(address, environ)
    try:
        found = server.found()
        older = found is not None and making.check_version(found, address)
    finally:
        server.leave()
    if found is None:
        return None
    if older:
        facts |= {"revision": found.revision}
        looks |= {"server": lambda: _pending(found.revision, "duly migrate (back it up with pg_dump first)")}
        return None
    store = Store.find(address, environ)
    if store is not None:
        folder = store.run_folder
        facts |= _of_server(store)
        looks |= {
            "server": _on(store, _server),
            "place": lambda: diagnosis_host.run_folder(folder),
            "rights": lambda: diagnosis_host.rights(folder),
            "locks": lambda: diagnosis_host.locks(folder),
        }
    return store


def _pending(revision: object, hint: str) -> Iterator[Ailment]:
    yield Ailment(
        check="migration_pending",
        text=f"the store is of revision {revision}, and this version works with {REVISIONS[-1]}",
        details={"revision": revision, "wanted": REVISIONS[-1]},
        hint=hint,
    )


def _of_server(store: Store) -> dict[str, object]:
    with store.read() as session:
        line = session.line
        return {
            "revision": line.scalar("SELECT version_num FROM alembic_version"),
            "faults": [],
            "server": line.scalar("SHOW server_version"),
            "bytes": line.scalar("SELECT pg_database_size(current_database())"),
            "pooled": line.pooled,
            "holders_alive": len(servers.alive(store, session)),
        }


def _server(store: Store, session: Session) -> Iterator[Ailment]:
    for fault in store.faults():
        yield Ailment(check="server", text=fault, hint="set it right in the server's settings")
    if session.line.pooled:
        yield Ailment(
            check="pooled",
            text="a pooler stands before the database: nobody hears of a write at once, and all look once a second",
            hint="a direct connection, or one pooled by session, for who serves",
        )


def _is_ours(line: engine.FileLine) -> bool:
    try:
        return bool(line.scalar("PRAGMA application_id") == engine.APPLICATION_ID)
    except sqlite3.Error:
        return False


def _file(address: Address, facts: Mapping[str, object]) -> Iterator[Ailment]:
    faults = facts["faults"]
    if isinstance(faults, list) and faults:
        yield Ailment(
            check="damaged",
            text=f"the store is damaged: {faults[0]}" + (f" (and {len(faults) - 1} more)" if faults[1:] else ""),
            details={"faults": faults},
            hint=f"duly restore BACKUP; what {address.path} holds is kept beside it",
        )
        return
    if facts["revision"] in REVISIONS and facts["revision"] != REVISIONS[-1]:
        yield from _pending(facts["revision"], "duly migrate (it makes a backup first)")
    if facts["journal_mode"] != "wal":
        yield Ailment(
            check="no_log",
            text=f"the store's journal is {facts['journal_mode']}, not wal: readers and writers wait for each other",
            details={"journal_mode": facts["journal_mode"]},
            hint="any command that writes sets it, on a disk where it can be; see the file system's own documentation",
        )
    if facts["synchronous"] != FULL:
        yield Ailment(
            check="not_durable",
            text=f"commits are not on disk when they are answered (synchronous is {facts['synchronous']}, not {FULL})",
            details={"synchronous": facts["synchronous"]},
            hint="this SQLite was built with another default that cannot be changed; use another one",
        )
