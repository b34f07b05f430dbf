"""Whether anybody serves a store: a holder that lives holds the lock on a file of its own in the run folder.

Where a store has many hosts, one at another is known by its beats alone.
"""

import fcntl
import os
from collections.abc import Collection
from pathlib import Path

from duly.clock import MICROSECOND
from duly.errors import Refused
from duly.store import Session, Store
from duly.store.address import Address, Place
from duly.store.locks import lock_files, lock_path


def holders_alive(run_folder: Path) -> set[str]:
    """Give the ids of the holders whose lock is taken; looking takes nothing from them."""
    return {holder for holder in lock_files(run_folder) if _is_held(lock_path(run_folder, holder))}


def alive(store: Store, session: Session) -> set[str]:
    """Give the ids of the holders that live: by their locks here, and where a store has many hosts by their beats."""
    here = lock_files(store.run_folder)
    locked = holders_alive(store.run_folder)
    if store.engine.one_place:
        return locked
    return locked | {
        row.id
        for row in session.holders.living()
        if row.id not in here and session.lease_us - row.beat_lease_us <= row.lease_for // MICROSECOND
    }


def check_unserved(alive: Collection[str], where: Place) -> None:
    """Refuse what needs a store at rest while holders serve it."""
    if alive:
        first, *others = sorted(alive)
        raise Refused(
            "already_running",
            f"{first} serves the store {where}" + (f", and {len(others)} more" if others else ""),
            details={"holders": [first, *others]},
            hint="stop every `duly serve` on it first",
        )


def anybody_serves(where: Place) -> bool:
    """Say whether any holder of this store lives."""
    if isinstance(where, Address):
        return bool(holders_alive(where.run_folder))
    store = Store.find(where)
    if store is None:
        return False
    try:
        with store.read() as session:
            return bool(alive(store, session))
    finally:
        store.close()


def _is_held(path: Path) -> bool:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return False
