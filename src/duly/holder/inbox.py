"""The writer's inbox: deliveries that wait for its next turn, and the bell that calls it."""

import threading
from collections.abc import Callable, Iterable

from duly.holder.settling import Delivery

LINGER_S = 0.0005
"""While slots are still out, a turn waits so long for more deliveries to write with one commit."""


class Inbox:
    """Safe from any thread; one thread takes."""

    def __init__(self) -> None:
        self._bell = threading.Condition()
        self._deliveries: list[Delivery] = []
        self._rung = False

    def deliver(self, delivery: Delivery) -> None:
        """Leave a delivery for the writer's next turn."""
        with self._bell:
            self._deliveries.append(delivery)
            self._bell.notify()

    def ring(self) -> None:
        """Call the writer without a delivery: something changed that it should look at."""
        with self._bell:
            self._rung = True
            self._bell.notify()

    def put_back(self, deliveries: Iterable[Delivery]) -> None:
        """Return deliveries that could not be written."""
        with self._bell:
            self._deliveries[:0] = deliveries

    def take(self, most: int) -> list[Delivery]:
        """Take what is there, the oldest first."""
        with self._bell:
            taken, self._deliveries = self._deliveries[:most], self._deliveries[most:]
            return taken

    def wait(self, seconds: float) -> bool:
        """Wait so long for a delivery or the bell; says whether there was one."""
        with self._bell:
            if not self._deliveries and not self._rung:
                self._bell.wait(seconds)
            rung, self._rung = self._rung, False
            return rung or bool(self._deliveries)

    def linger(self, out: Callable[[], int]) -> None:
        """While slots are out, give their deliveries a moment to arrive."""
        with self._bell:
            if self._deliveries and out() > 0:
                self._bell.wait(LINGER_S)

    def __len__(self) -> int:
        """How many deliveries wait."""
        with self._bell:
            return len(self._deliveries)
