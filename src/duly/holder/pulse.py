"""Whether a holder's loops turn: its rounds, and its heart."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from duly.holder.holder import Holder


def trouble(holder: "Holder") -> str | None:
    """Say what keeps a holder from its work; None where all turns. Safe from any thread, and asks nothing of the store.

    A round takes moments, and a beat is answered in moments too, so that one lease without them is no chance.
    """
    clock, figures = holder.store.clock, holder.heart.figures
    if holder.stopping:
        return "stopping"
    looked_us = holder.noticing.looked_us
    if looked_us is None:
        return "starting"
    if clock.awake_us() - looked_us > figures.lease_us:
        return "its rounds stand still"
    answered_us = holder.heart.answered_us
    if answered_us is not None and clock.trust_us() - answered_us > figures.trust_us:
        return "no beat is answered"
    return None
