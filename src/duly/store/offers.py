"""Offers that end unanswered: their window is over, or their task is gone.

What runs out is looked at by whoever writes first, so that what people see never depends on who serves.
"""

from duly.core import offers
from duly.core.run import Missed
from duly.store.store import Session

OVER_A_TURN = 100
"""Offers that one look lets run out; the rest is left to the next, so that the lock is never held for long."""


def expire(session: Session) -> list[Missed]:
    """Let open offers run out whose window is over; gives them as they stand now."""
    over = []
    for one in session.missed.over(session.now, OVER_A_TURN):
        after = offers.expired(one)
        if session.missed.decide(one, after):
            over.append(after)
    session.ledger.add([offers.told(one, "expired", now=session.now) for one in over])
    return over


def withdraw(session: Session, task: str, *, reason: str, by: str) -> list[Missed]:
    """Ask no longer about a task's open offers, for a reason that every entry tells; gives them as they stand now."""
    gone = []
    for one in session.missed.open_of(task):
        after = offers.closed(one, by=by, now=session.now)
        if session.missed.decide(one, after):
            gone.append(after)
    session.ledger.add([offers.told(one, "expired", now=session.now, reason=reason) for one in gone])
    return gone
