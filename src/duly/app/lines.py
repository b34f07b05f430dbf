"""Connections to one store for any thread of this process, and what becomes of them when it forks.

All that this process does with a store goes through one `Lines`, since SQLite keeps what a process has locked once for
a file. Before a fork idle connections are closed; where one cannot be, the child may not use that store at all.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakSet, WeakValueDictionary

from duly.app import forks
from duly.app.service import opened
from duly.config import in_force, load
from duly.errors import StoreAway
from duly.store.address import Address, Place, ServerAddress, resolve
from duly.store.engines import stands
from duly.store.store import Store

if TYPE_CHECKING:
    from duly.app.background import Background

IDLE_MOST = 4


class Lines:
    """Opens stores and keeps a few for the next who asks; safe from any thread."""

    def __init__(self, address: Place) -> None:
        self.address = address
        self.serving: WeakSet[Background] = WeakSet()
        """Holders in the background of this process, which have connections of their own."""
        self._lock = threading.Lock()
        self._idle: list[Store] = []
        self._used: set[Store] = set()
        self._opening = 0
        """So many are being opened now, by other threads: a fork would carry them half open."""
        self._carried: str | None = None
        """Why this process may not use the store: its parent used it while it forked."""
        forks.take_part(self)

    @contextmanager
    def use(self, *, create: bool = False) -> Iterator[Store]:
        """Have a connection while inside; `create` makes the store where there was none."""
        self.check()
        store = self._take(create=create)
        try:
            yield store
        except BaseException:
            self._give_up(store)
            raise
        self._give_back(store)

    def check(self) -> None:
        """Raise StoreAway in a process that was forked from one which had the store open."""
        if self._carried is not None:
            raise StoreAway(self._carried, hint="fork before start(), or use a start method other than fork")

    def prepare(self) -> None:
        """Make the store ready to be served: made where there was none, and brought up to date."""
        self.check()
        opened(self.address).close()

    def exists(self) -> bool:
        """There is a store, or something else, at its place."""
        return stands(self.address, os.environ)

    def close(self) -> None:
        """Close what nobody uses now."""
        with self._lock:
            idle, self._idle = self._idle, []
        for store in idle:
            store.close()

    def before_fork(self) -> None:
        """Close idle connections, and let no other be opened or given back while the process forks."""
        self._lock.acquire()  # released after the fork, here and in the child
        for store in self._idle:
            store.close()
        self._idle.clear()

    def after_fork_here(self) -> None:
        """Go on as before."""
        self._lock.release()

    def after_fork_in_child(self) -> None:
        """Leave what the parent uses as it is, and refuse to use that file here."""
        self._lock = threading.Lock()
        held = [*self._used, *(one for one in self.serving if one.forget())]
        if (held or self._opening) and self._carried is None:
            self._carried = (
                f"this process was forked while process {os.getppid()} had the store {self.address} open,"
                " and a connection cannot be carried over a fork"
            )
        for one in held:
            forks.never_free(one)
        self._used.clear()
        self._opening = 0
        self.serving.clear()

    def _take(self, *, create: bool) -> Store:
        with self._lock:
            if self._idle:
                store = self._idle.pop()
                self._used.add(store)
            else:
                store = None
                self._opening += 1
        if store is None:
            return self._open(create=create)
        try:
            store.check_here()
        except BaseException:
            self._give_up(store)
            raise
        return store

    def _open(self, *, create: bool) -> Store:
        store = None
        try:
            store = Store.open(self.address, create=create)
        finally:
            with self._lock:
                self._opening -= 1
                if store is not None:
                    self._used.add(store)
        return store

    def _give_back(self, store: Store) -> None:
        with self._lock:
            self._used.discard(store)
            if len(self._idle) < IDLE_MOST:
                self._idle.append(store)
                return
        store.close()

    def _give_up(self, store: Store) -> None:
        with self._lock:
            self._used.discard(store)
        store.close()


_OPEN: "WeakValueDictionary[Path | ServerAddress, Lines]" = WeakValueDictionary()
"""State of the module, as is what a process has locked in a file: both are once for all who use it here."""


def address(given: str | None) -> Place:
    """Give the store that is meant: the one that is named, else DULY_STORE, the config file, the default."""
    if given is None and not os.environ.get("DULY_STORE"):
        value = in_force("store", load(os.environ), os.environ).value
        given = None if value is None else str(value)
    return resolve(given, os.environ)


def lines(address: Place) -> Lines:
    """Give this process's way to a store: the same for the same file."""
    key = address.path.resolve() if isinstance(address, Address) else address
    return _OPEN.setdefault(key, Lines(address))
