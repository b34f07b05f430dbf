"""What the tests of pruning share."""

from datetime import timedelta

from store_scene import DAY, HOUR, Scene

from duly.operations import pruning

WEEK = 7 * DAY


def prune(s: Scene, keep: timedelta = WEEK, *, take: bool = True) -> dict[str, int]:
    with s.store.read() as session:
        wanted = pruning.wish(session, keep)
    return pruning.prune(s.store, wanted, take=take)


def ran(s: Scene, count: int = 1, *, each: timedelta = HOUR) -> None:
    """Let a span pass so many times, and all that is due by then run to its end."""
    for _ in range(count):
        s.at(s.clock.moment + each)
        s.plan()
        for won in s.claim(free=100):
            s.settle(won)
