"""`backup` and `migrate`: a whole copy of a store taken while it is used, and a store brought up to date."""

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from duly.core.reading import shown
from duly.errors import Invalid, Refused, StoreAway
from duly.operations.shapes import instant
from duly.store import copies, engine, files, making
from duly.store.address import Address, Place, ServerAddress, check_path, check_place
from duly.store.migrations import REVISIONS


@dataclass(frozen=True, slots=True, kw_only=True)
class BackedUp:
    """A backup that was taken: where it is, when it was taken, what it holds."""

    file: Path
    contents: copies.Contents


@dataclass(frozen=True, slots=True, kw_only=True)
class Migrated:
    """What bringing a store up to date did: the revisions before and after, and the backup; none where none was due."""

    before: str
    after: str
    backup: Path | None


def backup(address: Place, file: Path, environ: Mapping[str, str], *, now: datetime) -> BackedUp:
    """Copy a store whole into a new file, checked from its first page to its last; others go on meanwhile.

    Refused `already_exists` where the file is there; Invalid where it cannot be; nothing half-made is left.
    """
    check_new(file)
    with _standing(address, environ) as (line, _):
        try:
            with copies.whole_copy(line, file.parent, file.name, taken_at=now) as copy:
                with copies.looked_at(copy) as copied:
                    contents = copies.contents(copied, copy)
                if not files.give_name(copy, file):
                    raise already(file)
        except OSError as error:
            raise Invalid(f"{file} cannot be written: {error.strerror}", field="FILE") from error
    return BackedUp(file=file, contents=contents)


def check_new(file: Path) -> None:
    """Refuse a place for a new file that is taken or cannot be."""
    if file.is_dir():
        raise Invalid(f"{file} is a directory", field="FILE", hint=str(file / "duly-backup.db"))
    if os.path.lexists(file):
        raise already(file)
    if not file.parent.is_dir():
        raise Invalid(f"the folder {file.parent} does not exist", field="FILE", hint=f"mkdir -p {file.parent}")


def already(file: Path) -> Refused:
    """Say that a file is there, and that nothing is written over it."""
    return Refused(
        "already_exists",
        f"there is a file {shown(str(file))} already, and a backup is never written over another",
        details={"file": str(file)},
        hint="another name",
    )


def migrate(address: Place, environ: Mapping[str, str]) -> Migrated:
    """Bring a store to the last revision after a backup beside it; one that is up to date stays as it is."""
    if isinstance(address, ServerAddress):
        return _migrated(address, environ)
    with _standing(address, environ) as (line, found):
        older = making.check_version(found, address)
        kept = making.migrate(address, line) if older else None
    return Migrated(before=found.revision, after=REVISIONS[-1] if older else found.revision, backup=kept)


def of_file(address: Place, why: str, *, hint: str) -> Address:
    """Give the address of a file; Refused for a store on PostgreSQL, with what to do there."""
    if isinstance(address, Address):
        return address
    raise Refused("not_allowed", f"the store {address} is on PostgreSQL: {why}", hint=hint)


def _migrated(address: ServerAddress, environ: Mapping[str, str]) -> Migrated:
    from duly.store.server_engine import ServerEngine, upgrade

    server = ServerEngine(address, environ)
    found = server.found()
    server.leave()
    if found is None:
        raise StoreAway(f"there is no store at {address} yet", hint="duly init, or add a first task")
    older = making.check_version(found, address)
    if older:
        upgrade(address)
    return Migrated(before=found.revision, after=REVISIONS[-1] if older else found.revision, backup=None)


@contextlib.contextmanager
def _standing(address: Place, environ: Mapping[str, str]) -> Iterator[tuple[engine.FileLine, making.Found]]:
    """Open a store of any revision that this version may use, for reading."""
    address = of_file(address, "its server's own tools back it up and restore it", hint="pg_dump, pg_restore")
    check_path(address)
    if not address.path.exists():
        check_place(address)
        making.check_not_vanished(address, environ)
        raise StoreAway(f"there is no store at {address.path} yet", hint="duly init, or add a first task")
    making.check_one_name(address.path)
    with copies.looked_at(address.path) as line:
        found = making.look(line, address.path)
        making.check_version(found, address.path)
        yield line, found


def taken(contents: copies.Contents) -> dict[str, object]:
    """Tell what a backup holds."""
    return {
        "taken_at": instant(contents.taken_at),
        "revision": contents.revision,
        "tasks": contents.tasks,
        "runs": contents.runs,
        "last_entry": contents.last_entry,
        "bytes": contents.bytes,
    }
