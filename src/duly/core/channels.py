"""Channels: where people and programs are told; which of them hear of a task, and when one is spoken to again."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from duly.core.names import key_of
from duly.core.values import changed, value

FIRST_AGAIN = timedelta(seconds=5)
"""How long after a first failure a channel is spoken to again; it doubles with each."""
LAST_AGAIN = timedelta(minutes=15)
GIVEN_UP_AFTER = timedelta(hours=24)
"""How long a notice is tried; what is older is no news."""
CLAIMED_FOR = timedelta(minutes=2)
"""How long whoever delivers has a channel for itself; well above what one delivery may take."""
DEFAULT_EVERY = timedelta(seconds=10)
GATHERED_FOR = timedelta(seconds=1)
"""How long a notice waits for others that come with it."""


@value
class Channel:
    """A channel as it is set, and how it stands: who speaks to it now, when next, and since when it fails."""

    name: str
    url: str
    """Secrets are only named in it."""
    secret: str | None = None
    """The name of the secret by which its messages are signed."""
    every: timedelta = DEFAULT_EVERY
    """It hears at most one message in so long; what comes meanwhile goes together."""
    only_named: bool = False
    """Only tasks that name it are told there."""
    set_at: datetime
    set_by: str
    version: int = 1
    claimed_by: str | None = None
    claimed_until: datetime | None = None
    next_at: datetime
    """Nothing is sent before."""
    failures: int = 0
    failing_since: datetime | None = None
    error: str | None = None
    last_at: datetime | None = None
    """When it was last told something."""


def heard_by(channels: Iterable[Channel], named: Sequence[str] | None) -> list[Channel]:
    """Give the channels that hear of a task which names these; of one that names none, and of no task, the open ones.

    Where none of the names is a channel any more the open ones hear of it: nothing is kept quiet by a name.
    """
    known = list(channels)
    everybody = [one for one in known if not one.only_named]
    if named is None:
        return everybody
    keys = {key_of(name) for name in named}
    found = [one for one in known if key_of(one.name) in keys]
    return found or (everybody if keys else [])


def may_be_claimed(one: Channel, now: datetime) -> bool:
    """Tell whether somebody may speak to a channel now: nobody does, or whoever did has been silent for too long."""
    return one.next_at <= now and (one.claimed_until is None or one.claimed_until <= now)


def claimed(one: Channel, *, by: str, now: datetime) -> Channel:
    """Give a channel as whoever speaks to it now has it."""
    return changed(one, version=one.version + 1, claimed_by=by, claimed_until=now + CLAIMED_FOR)


def spoken_to(one: Channel, *, now: datetime) -> Channel:
    """Give a channel that has taken a message."""
    return changed(
        one,
        version=one.version + 1,
        claimed_by=None,
        claimed_until=None,
        next_at=now + one.every,
        failures=0,
        failing_since=None,
        error=None,
        last_at=now,
    )


def refused_by(one: Channel, error: str, *, now: datetime, wait: timedelta | None = None) -> Channel:
    """Give a channel that took no message, with when it is tried again; `wait`: how long it asked us to wait."""
    again = min(LAST_AGAIN, FIRST_AGAIN * 2 ** min(one.failures, 16))
    return changed(
        one,
        version=one.version + 1,
        claimed_by=None,
        claimed_until=None,
        next_at=now + max(again, min(LAST_AGAIN, wait or timedelta(0))),
        failures=one.failures + 1,
        failing_since=one.failing_since or now,
        error=error,
    )


def let_go(one: Channel) -> Channel:
    """Give a channel that somebody claimed and had nothing to say to."""
    return changed(one, version=one.version + 1, claimed_by=None, claimed_until=None)
