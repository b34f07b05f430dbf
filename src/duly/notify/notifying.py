"""The thread of `serve` that tells people and programs what they should know; no run ever waits for it."""

import threading
from collections.abc import Mapping
from datetime import timedelta

from duly import clock
from duly.core.channels import Channel
from duly.core.notices import Notice
from duly.core.spans import write_instant
from duly.errors import DulyError, StoreAway
from duly.notify.delivering import Delivering, Sending, Tell
from duly.notify.gathering import Gathering
from duly.notify.pinging import Pinging
from duly.notify.sending import Sender, sender_of
from duly.store import Store
from duly.store.meta import STORE_ID
from duly.store.notices import Outgoing

LOOK_EVERY_S = 1.0
BUDGETS_EVERY_S = 30.0
"""So often it looks whether or not anybody has written: a budget may be used up by what was told late."""
ENDS_WITHIN_S = 8.0
LAST_WITHIN_S = 5.0
"""For so long the last messages of a process may be on their way."""
AWAY_TOLD_AFTER_S = 60.0
"""How long the store must be away before people are told of it, from here, as no outbox can be written."""


class Notifying:
    """Makes notices of what the ledger tells, and delivers them, from `start` to `stop`, in a thread of its own."""

    def __init__(self, store: Store, environ: Mapping[str, str], tell: Tell, *, who: str) -> None:
        self._store = store
        self._environ = environ
        self._tell = tell
        self._stop = threading.Event()
        self._rang = threading.Event()
        self._gathering = Gathering()
        self._delivering = Delivering(self._sender, who, tell, self._rang)
        self._pinging = Pinging(self._sender, tell, self._rang)
        self._who = who
        self._store_id: str | None = None
        self._open: list[Channel] = []
        """The channels that hear of no task in particular, as they were last seen."""
        self._away_s: float | None = None
        self._away_told = False
        self._troubled: str | None = None
        self._looked_s = 0.0
        self._again = True
        self._thread = threading.Thread(target=self._run, name="duly-notices", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End: what is due is sent once more at once, and waited for a little."""
        self._stop.set()
        self._rang.set()
        self._thread.join(ENDS_WITHIN_S)

    def _run(self) -> None:
        try:
            with self._store.another_once() as own:
                while not self._stop.is_set():
                    self._guarded(own)
                    self._rang.wait(LOOK_EVERY_S)
                    self._rang.clear()
                self._last(own)
        except StoreAway as error:
            self._tell("notices are no longer sent", {"error": error.message})

    def _guarded(self, store: Store) -> None:
        """Do one round; what fails is told once, and tried again with the next."""
        try:
            self._round(store)
            self._away_s, self._away_told, self._troubled = None, False, None
        except StoreAway as error:
            self._away(error)
        except (DulyError, ArithmeticError, AssertionError, LookupError, RuntimeError, TypeError, ValueError) as error:
            told = f"{type(error).__name__}: {error}"
            if told != self._troubled:
                self._tell("notices could not be made", {"error": told})
            self._troubled = told

    def _round(self, store: Store) -> None:
        changed, now_s = store.changed(), clock.monotonic_s()
        if changed or self._again or now_s - self._looked_s >= BUDGETS_EVERY_S:
            self._looked_s, self._again = now_s, False
            self._remember(store)
            if self._gathering.step(store) + self._pinging.gather(store):
                self._again = True
        for one in (self._delivering, self._pinging):
            due = one.soonest is not None and one.soonest <= store.clock.now()
            if changed or self._again or due or one.busy:
                one.step(store)

    def _remember(self, store: Store) -> None:
        with store.read() as session:
            self._open = [one for one in session.channels.all() if not one.only_named]
            self._store_id = self._store_id or session.meta.said(STORE_ID)

    def _last(self, store: Store) -> None:
        """Before the end: what has just ended is told too."""
        try:
            until_s = clock.monotonic_s() + LAST_WITHIN_S
            self._gathering.step(store)
            self._pinging.gather(store)
            self._delivering.step(store, gathered_for=timedelta(0))
            self._pinging.step(store)
            while (self._delivering.busy or self._pinging.busy) and clock.monotonic_s() < until_s:
                self._rang.wait(max(0.0, until_s - clock.monotonic_s()))
                self._rang.clear()
                self._delivering.step(store, gathered_for=timedelta(0))
                self._pinging.step(store)
        except DulyError as error:
            self._tell("notices wait for whoever serves next", {"error": error.message})

    def _away(self, error: StoreAway) -> None:
        """Tell of a store that has been away for long, past the outbox: once a process, to whom it last knew."""
        now_s = clock.monotonic_s()
        if self._away_s is None:
            self._away_s = now_s
        if self._away_told or now_s - self._away_s < AWAY_TOLD_AFTER_S:
            return
        self._away_told = True
        now = clock.now()
        details = {"error": error.message, "for_s": round(now_s - self._away_s, 1), "until": write_instant(now)}
        notice = Notice(kind="store_away", cause=f"away:{self._who}:{write_instant(now)}", at=now, details=details)
        for channel in self._open:
            out = Outgoing(id=f"{self._who}.{notice.cause}", channel=channel.name, notice=notice, state_at=now)
            Sending(self._sender(), channel, [out], now, self._rang)

    def _sender(self) -> Sender:
        return sender_of(self._environ, store=self._store_id)
