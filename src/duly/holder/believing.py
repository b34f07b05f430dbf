"""Being believed, where a store has many hosts: the deadline of a holder's keepers, and the doubt of the store's clock.

Beside a SQLite file there is neither: nobody can start unseen, and both ends read one clock.
"""

from duly.holder.figures import Figures
from duly.holder.heart import Heart
from duly.holder.presence import Presence
from duly.holder.sweeper import Sweeper
from duly.store import Store


class Believing:
    """Moves the deadline with each beat, and lets the sweeper judge other places only by a clock that kept step."""

    def __init__(self, store: Store, presence: Presence, figures: Figures, heart: Heart, sweeper: Sweeper) -> None:
        self._clock = store.clock
        self._many = not store.engine.one_place
        self._presence = presence
        self._figures = figures
        if self._many:
            heart.on_believed = self._until
            sweeper.believes_store = lambda: heart.distrust.believes(store.clock.trust_us())

    def begin(self) -> None:
        """Set the first deadline, before anything is claimed."""
        self._until(self._clock.trust_us() + self._figures.trust_us)

    def hand_over(self) -> None:
        """Let work that is handed over go on until its lease ends, less what any holder keeps back of its own."""
        kept_back_us = self._figures.lease_us - self._figures.trust_us
        self._until(self._clock.trust_us() + self._figures.handover_us - kept_back_us)

    def _until(self, until_us: int) -> None:
        if self._many:
            self._presence.believed_until(until_us, until_us + self._figures.grace_us)
