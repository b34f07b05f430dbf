"""The writer's inbox: deliveries that wait for its next turn, and the bell that calls it."""

import contextlib
import os
import select
import threading
from collections.abc import Callable, Iterable

from duly import clock
from duly.holder.settling import Delivery
from duly.store.engines import Watched

LINGER_S = 0.0005
"""While slots are still out, a turn waits so long for more deliveries to write with one commit."""
WOKEN_EVERY_S = 0.1
"""The store's log wakes a waiting writer at most so often, however busy other processes are."""


class Inbox:
    """Safe from any thread; one thread takes and waits."""

    def __init__(self, watch: Watched | None = None) -> None:
        self._lock = threading.Condition()
        self._deliveries: list[Delivery] = []
        self._rung = False
        self._waiting = False
        self._bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._watch = watch
        self._woken_s = float("-inf")

    @property
    def watches(self) -> bool:
        """A write to the store ends a wait, so that it need not be asked for often."""
        return self._watch is not None and self._watch.descriptor is not None

    @property
    def is_waiting(self) -> bool:
        """A writer waits now."""
        with self._lock:
            return self._waiting

    def deliver(self, delivery: Delivery) -> None:
        """Leave a delivery for the writer's next turn."""
        with self._lock:
            self._deliveries.append(delivery)
            self._lock.notify()
            self._wake()

    def ring(self) -> None:
        """Call the writer without a delivery: something changed that it should look at."""
        with self._lock:
            self._rung = True
            self._wake()

    def put_back(self, deliveries: Iterable[Delivery]) -> None:
        """Return deliveries that could not be written."""
        with self._lock:
            self._deliveries[:0] = deliveries

    def take(self, most: int) -> list[Delivery]:
        """Take what is there, the oldest first."""
        with self._lock:
            taken, self._deliveries = self._deliveries[:most], self._deliveries[most:]
            return taken

    def wait(self, seconds: float) -> bool:
        """Wait so long for a delivery, the bell or a write to the store; True for one of the first two."""
        with self._lock:
            if self._heard():
                return True
            self._waiting = True
        poll = select.poll()
        poll.register(self._bell, select.POLLIN)
        quiet_s = self._woken_s + WOKEN_EVERY_S - clock.monotonic_s()
        watched = self._watch if self.watches and quiet_s <= 0 else None
        if watched is not None and watched.descriptor is not None:
            poll.register(watched.descriptor, select.POLLIN)
        elif self.watches:
            seconds = min(seconds, quiet_s)
        # Down to the millisecond: what is due is met early and asked again, never late.
        ready = {descriptor for descriptor, _ in poll.poll(int(max(0.0, seconds) * 1000))}
        if watched is not None and watched.descriptor in ready:
            self._woken_s = clock.monotonic_s()
            watched.drain()
        with self._lock:
            self._waiting = False
            with contextlib.suppress(BlockingIOError):
                os.eventfd_read(self._bell)
            return self._heard()

    def linger(self, out: Callable[[], int]) -> None:
        """While slots are out, give their deliveries a moment to arrive."""
        with self._lock:
            if self._deliveries and out() > 0:
                self._lock.wait(LINGER_S)

    def close(self) -> None:
        """Give the descriptors back; nobody waits or delivers any more."""
        with self._lock:
            os.close(self._bell)
            self._bell = -1
        if self._watch is not None:
            self._watch.close()

    def _heard(self) -> bool:
        rung, self._rung = self._rung, False
        return rung or bool(self._deliveries)

    def _wake(self) -> None:
        if self._waiting and self._bell >= 0:
            os.eventfd_write(self._bell, 1)

    def __len__(self) -> int:
        """How many deliveries wait."""
        with self._lock:
            return len(self._deliveries)
