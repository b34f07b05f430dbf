"""The figures of a holder's lease, and the inequalities that make them safe (refused at start otherwise)."""

from dataclasses import dataclass
from datetime import timedelta

from duly.clock import MICROSECOND
from duly.errors import Invalid

BEAT = timedelta(seconds=20)
LEASE = timedelta(seconds=100)
LEASE_LEAST = timedelta(seconds=5)
HANDOVER_FOR = timedelta(minutes=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """All in microseconds of the lease clock; `trust` is how long a holder believes what a claim or beat gave."""

    beat_us: int
    lease_us: int
    poll_us: int
    grace_us: int
    gone_us: int
    trust_us: int
    handover_us: int


def figures(beat: timedelta = BEAT, lease: timedelta = LEASE, handover: timedelta = HANDOVER_FOR) -> Figures:
    """Derive every figure from beat and lease; Invalid when they do not leave a holder time to stop its work.

    lease ≥ max(5·beat, 5 s); poll = min(1 s, lease/50); grace = min(10 s, lease/10); gone = max(1 s, lease/25);
    trust = min(lease − beat, lease − poll − grace − gone) and trust ≥ 2·beat + beat.
    """
    if beat <= timedelta(0):
        raise Invalid("the beat is longer than nothing", field="beat", hint="--beat 20s")
    if lease < max(5 * beat, LEASE_LEAST):
        raise Invalid(
            f"the lease ({lease.total_seconds():g} s) is shorter than five beats or five seconds",
            field="lease",
            hint=f"--lease {max(5 * beat, LEASE_LEAST).total_seconds():g}s",
        )
    second = timedelta(seconds=1)
    poll = min(second, lease / 50)
    grace = min(10 * second, lease / 10)
    gone = max(second, lease / 25)
    trust = min(lease - beat, lease - poll - grace - gone)
    if trust < 3 * beat:
        raise Invalid(
            f"the lease ({lease.total_seconds():g} s) leaves no room for three beats of {beat.total_seconds():g} s",
            field="beat",
            hint=f"--beat {int(trust / 3 / second) or 1}s, or a longer --lease",
        )
    return Figures(
        beat_us=beat // MICROSECOND,
        lease_us=lease // MICROSECOND,
        poll_us=poll // MICROSECOND,
        grace_us=grace // MICROSECOND,
        gone_us=gone // MICROSECOND,
        trust_us=trust // MICROSECOND,
        handover_us=handover // MICROSECOND,
    )
