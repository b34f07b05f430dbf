"""Noticing outages: time in which nobody served, the machine slept, its clock was set, or the store was away.

Looked at once a round, written down once, and nothing is started by it. What several processes of one machine see of
its clocks is one outage.
"""

import socket
from collections.abc import Callable
from datetime import timedelta

from duly.core.outages import LastSeen, Outage, Reading, before_start, between, entry, is_same
from duly.store import Session, Store
from duly.store.rows import HolderRow

SEEN_BY_ALL = frozenset({"suspend", "clock_step"})
"""What every process of a machine notices, and one tells."""
LOOKED_AT = 20
"""So many of the newest outages are asked whether they tell of the same."""
KEPT_MOST = 100
"""Outages that wait to be written while the store cannot be."""


class Noticing:
    """Looks at the clocks of one holder; in the writer's thread."""

    def __init__(
        self, store: Store, holder: str, frozen_after: timedelta, lives: Callable[[Session, HolderRow], bool]
    ) -> None:
        self._store = store
        self._holder = holder
        self._frozen_after = frozen_after
        self._lives = lives
        self._host = socket.gethostname()
        self._before: Reading | None = None
        self._pending: list[Outage] = []

    @property
    def looked_us(self) -> int | None:
        """When the clocks were looked at last, on the one that stops in sleep: once a round."""
        return None if self._before is None else self._before.awake_us

    def begin(self, session: Session) -> None:
        """Tell, at the begin of a life that finds nobody else alive, for how long nobody served.

        The clocks are looked at here for the first time: a life that stands still before its first round is one too.
        """
        self.look()
        if self._others(session):
            return
        row = session.holders.last_seen(self._holder)
        last = None
        if row is not None:
            last = LastSeen(holder=row.id, boot=row.boot, seen_at=row.last_beat_at, left=row.state == "gone")
        found = before_start(last, boot=self._store.clock.boot_id(), now=session.now)
        if found is not None:
            self._tell(session, found)

    def look(self) -> None:
        """Compare the clocks with how they stood at the last look."""
        clock = self._store.clock
        now = Reading(civil=clock.now(), awake_us=clock.awake_us(), slept_us=clock.slept_us())
        if self._before is not None:
            for outage in between(self._before, now, frozen_after=self._frozen_after):
                self.note(outage)
        self._before = now

    def note(self, outage: Outage) -> None:
        """Keep an outage until it can be written."""
        self._pending = [*self._pending, outage][-KEPT_MOST:]

    def step(self) -> None:
        """Write down what was noticed; StoreAway leaves it for the next time."""
        if not self._pending:
            return
        with self._store.write() as session:
            told = [one.entry for one in session.ledger.outages(session.ledger.last() + 1, most=LOOKED_AT)]
            for outage in self._pending:
                known = outage.cause in SEEN_BY_ALL and any(is_same(one, outage, self._host) for one in told)
                if not known:
                    self._tell(session, outage)
        self._pending = []

    def _tell(self, session: Session, outage: Outage) -> None:
        others = self._others(session)
        session.ledger.add([entry(outage, now=session.now, holder=self._holder, host=self._host, others=others)])

    def _others(self, session: Session) -> int:
        rows = [row for row in session.holders.living() if row.id != self._holder and row.slots > 0]
        return sum(self._lives(session, row) for row in rows)
