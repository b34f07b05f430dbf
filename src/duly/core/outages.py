"""Outages: spans in which nobody served, the machine slept, the clock was set; told from clocks, and apart by cause.

Nothing is decided by them: what was missed meanwhile is judged by each task's own instants. They say why it was.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

from duly.core.run import Entry
from duly.core.spans import write_instant

Cause = Literal["stopped", "died", "boot", "suspend", "clock_step", "frozen", "store_away"]

LEAST = timedelta(seconds=1)
"""What is shorter is ordinary: a restart, a busy machine, a clock that is held in step."""
SAME_WITHIN = timedelta(seconds=10)
"""Processes of one machine look at its clocks so far apart at most, while they are awake."""
MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The clocks of a process at one moment: civil time, the machine's own, and how long that has slept so far."""

    civil: datetime
    awake_us: int
    slept_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LastSeen:
    """Whoever served last: when it was last known to live, in which boot of the machine, and whether it had left."""

    holder: str
    boot: str
    seen_at: datetime
    left: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """One span, with its cause and the figures behind it."""

    cause: Cause
    since: datetime
    until: datetime
    details: Mapping[str, object] = field(default_factory=dict)


def between(before: Reading, now: Reading, *, frozen_after: timedelta) -> list[Outage]:
    """Give what lies between two looks of one process at its clocks; `frozen_after`: no look comes later by itself.

    A sleep is what the boot clock counted and the one that stops in sleep did not; a step is what neither accounts for.
    """
    lasted = (now.awake_us - before.awake_us) * MICROSECOND
    slept = (now.slept_us - before.slept_us) * MICROSECOND
    expected = before.civil + lasted + slept
    stepped = now.civil - expected
    found = []
    if lasted >= frozen_after:
        found.append(Outage(cause="frozen", since=before.civil, until=before.civil + lasted))
    if slept >= LEAST:
        found.append(Outage(cause="suspend", since=expected - slept, until=expected))
    if abs(stepped) >= LEAST:
        first, last = sorted((expected, now.civil))
        details = {"step_s": stepped.total_seconds(), "way": "ahead" if stepped > timedelta(0) else "back"}
        found.append(Outage(cause="clock_step", since=first, until=last, details=details))
    return found


def before_start(last: LastSeen | None, *, boot: str, now: datetime) -> Outage | None:
    """Give the span in which nobody served before a holder that begins now; None where there is none to tell of."""
    if last is None or now - last.seen_at < LEAST:
        return None
    cause: Cause = "stopped" if last.left else "died"
    details = {"last": last.holder, "left": last.left}
    return Outage(cause="boot" if last.boot != boot else cause, since=last.seen_at, until=now, details=details)


def entry(outage: Outage, *, now: datetime, holder: str, host: str, others: int) -> Entry:
    """Tell of an outage; `others`: how many other holders lived meanwhile, so that somebody served all the same."""
    lasted = (outage.until - outage.since).total_seconds()
    return Entry(
        kind="outage",
        at=now,
        reason=outage.cause,
        holder=holder,
        until_at=outage.until,
        details={
            "cause": outage.cause,
            "since": write_instant(outage.since),
            "until": write_instant(outage.until),
            "for_s": round(lasted, 3),
            "host": host,
            "others": others,
            **outage.details,
        },
    )


def is_same(told: Entry, outage: Outage, host: str) -> bool:
    """Tell whether an entry is of this very outage, as another process on this host saw it."""
    if told.reason != outage.cause or told.details.get("host") != host or told.until_at is None:
        return False
    return abs(told.until_at - outage.until) <= SAME_WITHIN and _length(told) <= 2 * (outage.until - outage.since)


def _length(told: Entry) -> timedelta:
    lasted = told.details.get("for_s")
    return timedelta(seconds=lasted) if isinstance(lasted, int | float) else timedelta.max / 2
