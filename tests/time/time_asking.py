"""Short ways to ask the product in the time tests."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice

from duly import zones
from duly.core import when
from duly.core.triggers import Triggers, last_before, occurrences

NOW = datetime(2026, 1, 1, 12, 0, 0, 500_000, tzinfo=UTC)
TICK = timedelta(microseconds=1)


def instant(text: str) -> datetime:
    return datetime.fromisoformat(text)


def shown(instants: Sequence[datetime]) -> list[str]:
    return [at.isoformat().replace("+00:00", "Z") for at in instants]


def read(text: str, zone: str = "UTC", now: datetime = NOW) -> Triggers:
    return (when.read(text, now=now, zone=zones.zone(zone)).trigger,)


def following(text: str, zone: str, after: str, most: int) -> list[str]:
    """The next instants of a trigger's text, forwards, after having made sure that backwards gives the same."""
    moment = instant(after)
    triggers = read(text, zone, moment)
    found = list(islice(occurrences(triggers, zones.zone(zone), moment), most))
    back: list[datetime] = []
    at = found[-1] + TICK if found else moment
    for _ in found:
        previous = last_before(triggers, zones.zone(zone), at)
        assert previous is not None
        back.append(previous)
        at = previous
    assert back[::-1] == found, "forwards and backwards disagree"
    return shown(found)
