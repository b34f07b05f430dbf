"""Pings: what a monitor outside is asked when a run starts, succeeds or fails, in which order, and how often.

A monitor that is told in another order than it happened would be wrong about what it watches: of a task one ping goes
at a time, the oldest first. One that was not taken gives way to what came after it.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Literal
from urllib.parse import urlsplit

from duly.core.channels import CLAIMED_FOR
from duly.core.notices import FAILURES, Notice
from duly.core.run import Entry
from duly.core.values import value

Ending = Literal["start", "success", "fail"]
ENDINGS: dict[str, Ending] = {"start": "start", "success": "success", "fail": "fail"}
KINDS = frozenset({"claimed", "began", "ended", "removed"})
"""Kinds of entries by which a ping is due, or none any more."""
BEFORE = "ping="
"""Before a task's id, where the name of a channel stands for others: none has a `=` in it."""
AGAIN_AFTER = (timedelta(seconds=5), timedelta(seconds=15), timedelta(seconds=45), timedelta(minutes=2))
"""How long after each try that failed the next one follows."""
TRIES_MOST = len(AGAIN_AFTER) + 1
OLD_AFTER = timedelta(hours=1)
"""What happened so long ago says nothing to a monitor any more."""
WAITING_MOST = 10
"""Of more than so many that wait the oldest are left out."""


@value
class Ping:
    """A ping that waits: how often it was tried, and when it was put, tried or refused last."""

    id: str
    ending: Ending
    at: datetime
    """When it happened."""
    tries: int
    moved_at: datetime
    error: str | None
    """Why it was not taken; None while whoever tries it is at it."""


@value
class Turn:
    """What becomes of a task's pings now: which are left out or given up, and the one that is next, from `at` on."""

    left_out: tuple[str, ...] = ()
    given_up: tuple[str, ...] = ()
    next: str | None = None
    at: datetime | None = None


def of_entry(seq: int, entry: Entry, *, gated: bool) -> Notice | None:
    """Give the ping that is due by an entry; a run behind a gate starts when that has let it go."""
    ending = _ending(entry, gated)
    if ending is None or entry.run is None:
        return None
    # A run starts once, whatever becomes of its attempts; it may end twice, where a missed one goes on.
    cause = f"start:{entry.run}" if ending == "start" else f"ledger:{seq}"
    return Notice(kind="ping", cause=cause, at=entry.at, task=entry.task, run=entry.run, subject=ending)


def turn(waiting: Sequence[Ping], now: datetime) -> Turn:
    """Say which of a task's pings, the oldest first, goes now or next."""
    left_out: list[str] = []
    given_up: list[str] = []
    for place, one in enumerate(waiting):
        when = _not_before(one)
        if one.tries and one.error is None and when > now:
            return Turn(left_out=tuple(left_out), given_up=tuple(given_up), at=when)
        if _gives_way(one, waiting[place + 1 :]):
            left_out.append(one.id)
        elif one.tries >= TRIES_MOST or now - one.at >= OLD_AFTER:
            given_up.append(one.id)
        else:
            goes = one.id if when <= now else None
            return Turn(left_out=tuple(left_out), given_up=tuple(given_up), next=goes, at=when)
    return Turn(left_out=tuple(left_out), given_up=tuple(given_up))


def address(url: str, ending: Ending) -> str:
    """Give the address that is asked: the monitor's own for a success, with `/start` or `/fail` after its path."""
    if ending == "success":
        return url
    parts = urlsplit(url)
    return parts._replace(path=f"{parts.path.rstrip('/')}/{ending}").geturl()


def _ending(entry: Entry, gated: bool) -> Ending | None:
    if entry.kind == ("began" if gated else "claimed"):
        return "start"
    if entry.kind != "ended":
        return None
    outcome = entry.details.get("outcome")
    if outcome == "succeeded":
        return "success"
    return "fail" if outcome in FAILURES else None


def _gives_way(one: Ping, later: Sequence[Ping]) -> bool:
    """Tell whether what came later makes a ping needless: an end counts for all before it, a start for starts."""
    if len(later) >= WAITING_MOST:
        return True
    return one.tries > 0 and any(after.ending != "start" or one.ending == "start" for after in later)


def _not_before(one: Ping) -> datetime:
    if not one.tries:
        return one.moved_at
    if one.error is None:
        return one.moved_at + CLAIMED_FOR
    return one.moved_at + AGAIN_AFTER[min(one.tries, len(AGAIN_AFTER)) - 1]
