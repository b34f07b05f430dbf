"""The heart extends leases, and the guard ends the work of those whose trust is over.

Three answers are kept apart: renewed, lost (in the request and not in the answer), unknown (an error). Unknown changes
nothing until the trust window ends; the guard asks no store, so a heart that hangs in a call cannot hold it up.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass

from duly.clock import Clock
from duly.errors import StoreAway
from duly.holder.figures import Figures
from duly.holder.holdings import Holding, Holdings
from duly.store import Store

PARTED_US = 1_000_000
"""Two clocks that part by more, and by more than an answer took, have not both kept step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Beaten:
    """What a beat was answered: runs still ours, runs lost, and runs held in our name that we know nothing of."""

    ours: int
    lost: tuple[Holding, ...]
    strays: tuple[str, ...]
    registered: bool


OnBeat = Callable[[Beaten | StoreAway], None]
"""What is done with each beat's answer, or with the error that left it unknown; called in the heart's thread."""


class Heart:
    """Beats over a connection of its own, ahead of other writes."""

    def __init__(self, store: Store, holder: str, boot: str, figures: Figures, holdings: Holdings) -> None:
        self._store = store
        self._holder = holder
        self._boot = boot
        self.figures = figures
        self._holdings = holdings
        self.on_believed: Callable[[int], None] = lambda _until_us: None
        """Told after each beat until when our keepers may believe us."""
        self.claims = 0
        self.claims_lost = 0
        self.answered_us: int | None = None
        """When the last beat that was answered was sent, on the clock by which trust is counted."""
        self.patience_s = figures.beat_us / 1e6
        self.distrust = Distrust(figures.lease_us)

    def step(self) -> Beaten:
        """Extend every lease vouched for, in one transaction; StoreAway means unknown, and nothing is concluded."""
        vouched = {(one.run.id, one.run.fence): one for one in self._holdings.all()}
        # Trust counts from before the first byte was sent, waiting for the lock included.
        sent_us = self._store.clock.trust_us()
        with self._store.write(patience_s=self.patience_s, first=True) as session:
            end_us = session.lease_us + self.figures.lease_us
            ours = session.runs.beat(list(vouched), holder=self._holder, boot=self._boot, end_us=end_us)
            registered = session.holders.beat(
                self._holder,
                now=session.now,
                lease_us=session.lease_us,
                claims=self.claims,
                claims_lost=self.claims_lost,
            )
            held = [run.id for run in session.runs.held_by(self._holder) if run.handed_to is None]
        self._holdings.extend(ours, sent_us + self.figures.trust_us)
        self.answered_us = sent_us
        now_us = self._store.clock.trust_us()
        self.distrust.note(self._store.clock.ahead_us(), now_us=now_us, round_trip_us=now_us - sent_us)
        self.on_believed(sent_us + self.figures.trust_us)
        return Beaten(
            ours=len(ours),
            lost=tuple(one for pair, one in vouched.items() if pair not in ours and self._holdings.knows(one.run.id)),
            strays=tuple(run for run in held if not self._holdings.knows(run)),
            registered=registered,
        )


class Distrust:
    """Doubt about the store's clock: it is believed when it has kept step with this machine's for one whole lease."""

    def __init__(self, lease_us: int) -> None:
        self._lease_us = lease_us
        self._ahead_us: int | None = None
        self._since_us: int | None = None

    def note(self, ahead_us: int, *, now_us: int, round_trip_us: int) -> None:
        """Compare how far the store's clock is ahead with the last time."""
        parted = self._ahead_us is None or abs(ahead_us - self._ahead_us) > PARTED_US + round_trip_us
        self._ahead_us = ahead_us
        if parted:
            self._since_us = now_us

    def believes(self, now_us: int, ahead_us: int) -> bool:
        """Whether leases of other places may be judged now by a clock of the store that is so far ahead.

        A server that has just taken over is asked before the next beat has compared its clock: it is not believed.
        """
        if self._since_us is None or self._ahead_us is None or abs(ahead_us - self._ahead_us) > PARTED_US:
            return False
        return now_us - self._since_us > self._lease_us


class Guard:
    """Ends the work of holdings past their trust: TERM at its end, KILL a grace later. Asks only the lease clock."""

    def __init__(self, clock: Clock, figures: Figures, holdings: Holdings) -> None:
        self._clock = clock
        self._figures = figures
        self._holdings = holdings

    def step(self) -> float:
        """End what must be ended; gives the seconds until the next look is due."""
        now_us = self._clock.trust_us()
        soonest = self._figures.trust_us
        for holding in self._holdings.all():
            if holding.done:
                continue
            over_us = now_us - holding.trust_end_us
            if over_us < 0:
                soonest = min(soonest, -over_us)
            elif over_us < self._figures.grace_us:
                holding.stop("term", "lease_lost")
                soonest = min(soonest, self._figures.grace_us - over_us)
            else:
                holding.stop("kill", "lease_lost")
                soonest = min(soonest, self._figures.poll_us)
        return soonest / 1e6


class Beating:
    """The two threads around the heart and its guard, from `start` to `stop`."""

    def __init__(self, heart: Heart, guard: Guard, figures: Figures, *, on_beat: OnBeat) -> None:
        self._heart = heart
        self._guard = guard
        self._figures = figures
        self._on_beat = on_beat
        self._ended = threading.Event()
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Start both threads."""
        for name, target in (("heart", self._beat), ("guard", self._watch)):
            thread = threading.Thread(target=target, name=name, daemon=True)
            thread.start()
            self._threads.append(thread)

    def stop(self) -> None:
        """End both threads and wait for them."""
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def step(self) -> float:
        """Beat once and do what its answer asks for; gives the seconds until the next beat."""
        beat_s = self._figures.beat_us / 1e6
        try:
            beaten = self._heart.step()
        except StoreAway as error:
            self._on_beat(error)
            return min(self._figures.poll_us / 1e6, beat_s)
        self._on_beat(beaten)
        for holding in beaten.lost:
            holding.stop("kill", "lease_lost")
        return beat_s

    def _beat(self) -> None:
        wait_s = self._figures.beat_us / 1e6
        while not self._ended.wait(wait_s):
            wait_s = self.step()

    def _watch(self) -> None:
        wait_s = 0.0
        # A new holding's trust ends no sooner than a whole trust window from now, so none is looked at too late.
        while not self._ended.wait(wait_s):
            wait_s = self._guard.step()
