"""The tail: one thread a process that reads what is new in the ledger and in logs, for all who follow them."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from duly import clock
from duly.core.run import Run
from duly.errors import DulyError, Refused
from duly.operations import following
from duly.operations.following import Wanted
from duly.store import Store
from duly.store.pool import Pool
from duly.web.feeds import Feed, LedgerFeed, LogFeed, Recent, Wake

LOOK_EVERY_S = 0.1
AGAIN_AFTER_S = 1.0
"""After the store could not be read."""
READERS_MOST = 256
"""Readers of one process, of the ledger and of logs together."""
RECENT_MOST = 512
"""Entries that are kept for all readers, so that each is read from the store once."""
PAGE = 256
STILL_EVERY_S = 10.0
"""So often it is asked whether a reader may still read."""
ENDS_WITHIN_S = 5.0

Tell = Callable[[str, Mapping[str, object]], None]
Still = Callable[[Store], bool]
"""Whether a reader may still read; asked now and then in the tail's thread."""


class Tail:
    """From `start` to `stop`; without readers its thread sleeps, and no connection is taken before the first."""

    def __init__(self, pool: Pool, tell: Tell, *, closing: Callable[[], bool] = lambda: False) -> None:
        self._pool = pool
        self._closing = closing
        self._tell = tell
        self._bell = threading.Condition()
        self._rung = False
        self._stopped = False
        self._readers: dict[Feed, Still | None] = {}
        self._recent: Recent | None = None
        self._still_s = 0.0
        self._troubled: str | None = None
        self._thread = threading.Thread(target=self._run, name="duly-tail", daemon=True)

    @property
    def readers(self) -> int:
        """How many follow now."""
        with self._bell:
            return len(self._readers)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End every stream, and the thread, and wait for that."""
        with self._bell:
            self._stopped = True
            readers = list(self._readers)
            self._bell.notify()
        for feed in readers:
            feed.end()
        if self._thread.is_alive():
            self._thread.join(ENDS_WITHIN_S)

    @contextmanager
    def ledger(
        self, wake: Wake, *, wanted: Wanted, after: int | None, still: Still | None = None
    ) -> Iterator[LedgerFeed]:
        """Follow the ledger while inside; `wake` is called in the tail's thread when something lies ready."""
        feed = LedgerFeed(wake, wanted, after)
        with self._reading(feed, still):
            yield feed

    @contextmanager
    def log(
        self,
        wake: Wake,
        run: Run,
        *,
        folder: Path | None,
        attempt: int | None = None,
        position: int = 0,
        still: Still | None = None,
    ) -> Iterator[LogFeed]:
        """Follow what a run writes while inside."""
        feed = LogFeed(wake, run, folder=folder, attempt=attempt, position=position)
        with self._reading(feed, still):
            yield feed

    def ring(self) -> None:
        """Have it look at once: a reader has taken what lay ready."""
        with self._bell:
            self._rung = True
            self._bell.notify()

    def step(self, store: Store) -> bool:
        """Look once, by this connection, and give each reader what is new; says whether more is to be had at once."""
        changed = store.changed() or self._recent is None
        with self._bell:
            readers = dict(self._readers)
        self._ask_still(store, readers)
        again = self._fill_ledgers(store, [one for one in readers if isinstance(one, LedgerFeed)], changed)
        logs = [one for one in readers if isinstance(one, LogFeed) and not one.over]
        to_look = [one for one in logs if changed or not one.looked]
        if to_look:
            with store.read() as session:
                for feed in to_look:
                    feed.look(session, store.run_folder)
        for feed in logs:
            again = feed.fill(store) or again
        return again

    @contextmanager
    def _reading(self, feed: Feed, still: Still | None) -> Iterator[None]:
        with self._bell:
            if self._stopped or self._closing():
                raise Refused("draining", "this process ends: nobody can follow it any more")
            if len(self._readers) >= READERS_MOST:
                raise Refused(
                    "rate_limited",
                    f"{READERS_MOST} readers follow this process already",
                    details={"readers": READERS_MOST},
                    hint="close one, or come again later",
                )
            self._readers[feed] = still
            self._rung = True
            self._bell.notify()
        try:
            yield
        finally:
            with self._bell:
                self._readers.pop(feed, None)

    def _fill_ledgers(self, store: Store, feeds: list[LedgerFeed], changed: bool) -> bool:
        if not feeds:
            self._recent = None
            return False
        lagging = [one for one in feeds if one.has_room and one.lags(self._recent)]
        if not changed and not lagging:
            return False
        with store.read() as session:
            recent = self._recent or Recent(since=session.ledger.last(), told=())
            last = recent.told[-1].seq if recent.told else recent.since
            fresh = following.page(session, last, PAGE)
            told = [*recent.told, *fresh]
            cut = max(0, len(told) - RECENT_MOST)
            self._recent = Recent(since=told[cut - 1].seq if cut else recent.since, told=told[cut:])
            again = len(fresh) == PAGE
            for feed in feeds:
                if feed.has_room:
                    again = feed.fill(session, self._recent) or again
        return again

    def _ask_still(self, store: Store, readers: Mapping[Feed, Still | None]) -> None:
        if clock.monotonic_s() - self._still_s < STILL_EVERY_S:
            return
        self._still_s = clock.monotonic_s()
        for feed, still in readers.items():
            if still is not None and not still(store):
                feed.end()

    def _run(self) -> None:
        own: Store | None = None
        try:
            while self._waited():
                try:
                    own = own or self._pool.take()
                    while self.step(own) and not self._stopped:
                        pass
                    self._troubled = None
                except Exception as error:  # noqa: BLE001 - whoever reads must not wait for ever on a fault of ours
                    self._trouble(error, own)
                    own = None
        finally:
            if own is not None:
                self._pool.give(own)

    def _trouble(self, error: Exception, own: Store | None) -> None:
        """Tell once that nothing can be read, and try again a little later, by another connection."""
        told = error.message if isinstance(error, DulyError) else f"{type(error).__name__}: {error}"
        if told != self._troubled:
            self._tell("streams wait: nothing can be read", {"error": told})
        self._troubled = told
        if own is not None:
            self._pool.give(own, sound=False)
        with self._bell:
            self._bell.wait_for(lambda: self._stopped, AGAIN_AFTER_S)

    def _waited(self) -> bool:
        """Wait until there is something to look for; False at the end."""
        with self._bell:
            if not self._readers:
                self._recent = None  # what is told while nobody reads is not kept
                self._bell.wait_for(lambda: self._stopped or self._readers)
            if not self._rung and not self._stopped:
                self._bell.wait_for(lambda: self._stopped or self._rung, LOOK_EVERY_S)
            self._rung = False
            readers = list(self._readers) if self._closing() else []
            stopped = self._stopped
        for feed in readers:
            feed.end()  # who serves waits for its connections before it ends
        return not stopped
