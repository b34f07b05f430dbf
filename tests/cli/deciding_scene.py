"""What people decide about, as the tests of the command line need it: missed occurrences of a daily task."""

from datetime import UTC, datetime, timedelta
from typing import Any

from cli_scene import Scene

from duly import ids
from duly.clock import Clock
from duly.core.occurrences import at_key
from duly.core.run import Entry, Missed

DAY = timedelta(days=1)


def eight(days_ago: int) -> datetime:
    """Eight o'clock UTC so many days ago; at least one."""
    return Clock().now().astimezone(UTC).replace(hour=8, minute=0, second=0, microsecond=0) - days_ago * DAY


def missed(
    scene: Scene,
    task: str,
    *,
    count: int = 3,
    newest: int = 1,
    state: str = "open",
    reason: str = "missed_offer",
    lasts: timedelta = 7 * DAY,
) -> Missed:
    """A record of a task due every day at 08:00 UTC, as planning would have left it."""
    given: dict[str, Any] = {"state": state}
    with scene.opened() as store, store.write() as session:
        first, last = eight(newest + count - 1), eight(newest)
        one = Missed(
            id=ids.new("mis"),
            task=task,
            occurrence=at_key(first),
            due_at=first,
            until_at=last,
            count=count,
            reason=reason,
            noticed_at=session.now,
            holder=None,
            expires_at=session.now + lasts if state == "open" else None,
            **given,
        )
        session.missed.insert([one])
        session.ledger.add(
            [
                Entry(
                    kind="missed",
                    at=session.now,
                    task=task,
                    occurrence=one.occurrence,
                    reason=reason,
                    count=count,
                    until_at=last,
                    details={"missed": one.id},
                )
            ]
        )
    return one
