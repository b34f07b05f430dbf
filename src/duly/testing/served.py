"""Stores on a server as a simulated world sees them: beats beside writes, cut connections, words that nobody hears."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal, Protocol

from duly.errors import StoreBusy, StoreSilent, StoreUnknown
from duly.store import Session, Store
from duly.store.engine import PATIENCE_S
from duly.testing.stores import Door, Point, WatchedStore

Loss = Literal["before", "after"]
"""Whether a commit whose answer is lost never came to the server, or stands."""


STILL_MOST = 3
"""Turns for which somebody who stands still may keep the others from writing."""


class Wire(Protocol):
    """A connection of a world to a real server."""

    between: Callable[[], None]
    """Asked before each statement."""
    loses: Loss | None
    """The answer of the next commit is lost."""
    stood: bool
    """The last commit stands, whether or not its answer came."""

    def has_turn(self) -> bool:
        """Whether this transaction asked the server for the turn to write."""

    def idle_us(self) -> int:
        """How long the server lets it stand still within this transaction, by the server's own word; 0: for ever."""

    def cut(self) -> None:
        """End the connection, and what was not committed with it."""


class Ear(Protocol):
    """What hears of writes, where nothing is lost on the way."""

    def ring(self) -> None:
        """Hear of one."""


class Server(Door):
    """Who has the turn to write; and who listens."""

    def __init__(self) -> None:
        super().__init__()
        self.wire: Wire | None = None
        """The connection of who has the turn."""
        self.since_us = 0
        """Since when it has stood still."""
        self.calls: list[Callable[[], None]] = []
        """What calls those who listen, and hear."""
        self.turn_s = 1.0
        """How long anybody waits for the turn at most."""
        self.stuck: Callable[[str], None] = lambda _text: None
        """Told when somebody who stands still keeps everybody else from writing."""

    def end_who_stands_still(self, now_us: int) -> None:
        """Do as the server does with who stands still in a transaction for longer than that allowed itself to."""
        wire, still_us = self.wire, now_us - self.since_us
        if wire is None:
            return
        if 0 < wire.idle_us() <= still_us:
            wire.cut()
            self.free()
        elif still_us > STILL_MOST * self.turn_s * 1e6:
            self.stuck(f"nobody can write: who has the turn has stood still for {still_us / 1e6:g} s")

    def free(self) -> None:
        """Let others have the turn."""
        self.writer = self.wire = None


class ServedStore(WatchedStore):
    """A store on a server as one process of the world has it."""

    def __init__(self, inner: Store, door: Door, owner: object, **given: Any) -> None:
        super().__init__(inner, door, owner, **given)
        assert isinstance(door, Server)
        self._server = door
        self._wire: Wire = inner._line  # type: ignore[assignment]
        self._wire.between = lambda: self._pass("statement")
        self._now_us: Callable[[], int] = inner._line.now_us  # type: ignore[attr-defined]

    @contextmanager
    def write(self, *, patience_s: float = PATIENCE_S, first: bool = False, ring: bool = True) -> Iterator[Session]:
        """Write in one transaction, in turn where the transaction asks the server for that."""
        self._at("begin")
        if not first:
            self._wait_for_turn(patience_s)
        wire, self._wire.stood = self._wire, False
        try:
            with self._inner.write(patience_s=patience_s, first=first, ring=ring) as session:
                if wire.has_turn():
                    self._server.writer, self._server.wire = self._owner, wire
                yield session
                try:
                    self._pass("commit")
                except StoreUnknown as lost:
                    wire.loses = "after" if "stands" in lost.message else "before"
        finally:
            wire.loses = None
            try:
                if wire.stood:
                    self._stands(ring=ring and not first)
            finally:
                if self._server.wire is wire:
                    self._server.free()
        self._at("committed")

    def _pass(self, point: Point) -> None:
        """Let anything come between; the server ends who stood still for too long meanwhile."""
        before_us = self._now_us()
        if self._server.wire is self._wire:
            self._server.since_us = before_us
        try:
            self._at(point)
        except StoreSilent:
            self._wire.cut()  # the statement itself finds out
        still_us = self._now_us() - before_us
        if still_us and 0 < self._wire.idle_us() <= still_us:
            self._wire.cut()
            if self._server.wire is self._wire:
                self._server.free()

    def _stands(self, *, ring: bool) -> None:
        self._door.commits += 1
        self._own += 1
        self._told_commit()
        if ring:
            for call in list(self._server.calls):
                call()

    def _wait_for_turn(self, patience_s: float) -> None:
        """Wait behind who has the turn; the server ends who stands still."""
        if self._server.wire is None:
            return
        began_us = self._now_us()
        self._pause(min(patience_s, self._server.turn_s))
        self._server.end_who_stands_still(self._now_us())
        if self._server.wire is not None:
            raise StoreBusy(f"the store is busy: another has its turn (waited {(self._now_us() - began_us) / 1e6:g} s)")

    def changed(self) -> bool:
        """Whether anybody was heard to write, or it is time to look anyway."""
        return self._inner.changed()
