"""Troubles: how often what goes wrong in a simulated world, each a share of the chances at which it may."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Troubles:
    """Shares between 0 and 1. At each call of the store; then of the turns of the world."""

    between: float = 0.0
    """Others take some turns before the call goes on."""
    freeze: float = 0.0
    """The process is frozen in the call, past its lease or not, and wakes."""
    crash: float = 0.0
    """The process is killed in the call."""
    away: float = 0.0
    """The store cannot be reached; nothing was changed."""
    full: float = 0.0
    """The disk is full at the commit; nothing was changed."""
    lost: float = 0.0
    """The answer of a commit is lost, whether it stands or not."""
    cut: float = 0.0
    """A connection to a server is cut between two statements of a write."""
    unheard: float = 0.0
    """A word of a server that something was written does not arrive."""
    late: float = 0.0
    """Of the turns: a thread gets its turn much later than it asked for."""
    calamity: float = 0.0
    """Of the turns: a process, a keeper, a nursery, a clock or a machine fails between two turns."""
    people: float = 0.0
    """Of the turns: a person runs, cancels, pauses, edits."""


QUIET = Troubles()
"""Nothing goes wrong."""
STORM = Troubles(
    between=0.12,
    freeze=0.008,
    crash=0.004,
    away=0.006,
    full=0.006,
    lost=0.012,
    cut=0.002,
    unheard=0.2,
    late=0.03,
    calamity=0.03,
    people=0.12,
)
"""Everything does."""
