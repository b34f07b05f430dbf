"""How a holder stops: what is live may end by itself for a while; then it is handed over, or ended, as was wished.

Handed over is work in a process of its own under a keeper: it goes on, and the next holder at this place watches it.
An agent is ended too, and goes on in its session under the next holder, where it is to be resumed.
What cannot outlive this process is ended with the reason `shutdown`; so is everything where all processes end with
this one (a container whose first process it is), or where that was wished.
"""

import threading
from collections.abc import Callable, Mapping

from duly import clock as machine
from duly.errors import StoreAway
from duly.holder.holdings import Holdings
from duly.holder.inbox import Inbox
from duly.holder.stopping import Stopping
from duly.holder.wish import Wish
from duly.holder.writer import Writer

LOOK_EVERY_S = 0.2
AWAY_AGAIN_S = 1.0
STOP_WITHIN_S = 15.0
"""After the drain, how long work that cannot be handed over is given to end; a command is killed after ten of them."""


class Leaving:
    """Empties a holder's hands, in the writer's thread."""

    def __init__(
        self,
        wish: Wish,
        *,
        holdings: Holdings,
        inbox: Inbox,
        writer: Writer,
        stopping: Stopping,
        look: Callable[[], bool],
        tell: Callable[[str, Mapping[str, object]], None],
    ) -> None:
        self._wish = wish
        self._holdings = holdings
        self._inbox = inbox
        self._writer = writer
        self._stopping = stopping
        self._look = look
        self._tell = tell

    def step(self, hurry: threading.Event) -> None:
        """Wait out the drain, or less once `hurry` is set; then hand over or end what lives, and write that down."""
        ends = self._wish.on_stop == "cancel"
        if len(self._holdings):
            then = "end" if ends else "hand over"
            told = {"runs": len(self._holdings), "drain_s": self._wish.drain.total_seconds()}
            self._tell(f"stopping: live runs may end; stop again to {then} them now", told)
        self._settle_until(machine.monotonic_s() + self._wish.drain.total_seconds(), but=hurry)
        for holding in self._holdings.all():
            if not holding.done:
                holding.stop("detach" if holding.kept and not ends else "term", "shutdown")
        left = len(self._holdings)
        self._settle_until(machine.monotonic_s() + STOP_WITHIN_S)
        while self._wish.outlasts and self._stopping.unended():
            self._settle_until(machine.monotonic_s() + STOP_WITHIN_S)
        self._tell("stopped", {"handed_over_or_ended": left or None, "still_held": len(self._holdings) or None})

    def _settle_until(self, until_s: float, *, but: threading.Event | None = None) -> None:
        while (len(self._holdings) or len(self._inbox)) and machine.monotonic_s() < until_s:
            if but is not None and but.is_set():
                return
            try:
                self._look()
                self._stopping.step()
                if len(self._inbox):
                    self._writer.step()
            except StoreAway as error:
                self._tell("store away", {"error": error.message})
                machine.pause(min(AWAY_AGAIN_S, max(0.0, until_s - machine.monotonic_s())))
            self._inbox.wait(min(LOOK_EVERY_S, max(0.0, until_s - machine.monotonic_s())))
