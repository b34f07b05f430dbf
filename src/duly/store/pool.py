"""A pool of connections to one store, for threads that come and go: each is used by one at a time."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from duly.errors import StoreAway
from duly.store.store import Store

KEPT_MOST = 8
"""Connections that are kept open while nobody uses them."""


class Pool:
    """Opens connections as they are needed and keeps some; how many there are at once is the callers' affair."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._free: list[Store] = []
        self._lock = threading.Lock()
        self._closed = False

    def take(self) -> Store:
        """Give a connection that nobody else uses, until it is given back."""
        with self._lock:
            kept = self._free.pop() if self._free else None
        if kept is None:
            return self._store.another()
        try:
            kept.check_here()  # a file that is gone can be read still by whoever has it open
        except BaseException:
            self.give(kept, sound=False)
            raise
        return kept

    def give(self, store: Store, *, sound: bool = True) -> None:
        """Take a connection back; one that failed is closed, and with it those that are kept, which have failed too."""
        failed = [store]
        with self._lock:
            if sound and not self._closed and len(self._free) < KEPT_MOST:
                self._free.append(store)
                return
            if not sound:
                failed += self._free
                self._free = []
        for one in failed:
            one.close()

    @contextmanager
    def lent(self) -> Iterator[Store]:
        """Lend a connection to the thread inside."""
        store = self.take()
        sound = False
        try:
            yield store
            sound = True
        except StoreAway:
            raise
        except Exception:
            sound = True  # what was asked failed, not the connection
            raise
        finally:
            self.give(store, sound=sound)

    def close(self) -> None:
        """Close all that is not lent; what is lent is closed when it is given back."""
        with self._lock:
            self._closed = True
            free, self._free = self._free, []
        for store in free:
            store.close()
