"""What an agent's work cost: tokens in and out, and money, each known only where the agent tells it."""

from collections.abc import Mapping

TOKENS = ("tokens_in", "tokens_out")
COST = "cost_usd"


def added(before: Mapping[str, object], now: Mapping[str, object], *, same_session: bool) -> dict[str, float]:
    """Add the usage of a run's next attempt to that of those before it.

    Tokens are told for each turn, money as the sum of a session, so that one that goes on tells the whole again.
    """
    out: dict[str, float] = {}
    for name in (*TOKENS, COST):
        had, more = number(before.get(name)), number(now.get(name))
        if had is None or more is None:
            found = more if had is None else had
        else:
            found = max(had, more) if same_session and name == COST else had + more
        if found is not None:
            out[name] = found
    return out


def number(value: object) -> float | int | None:
    """Read a figure that an agent told; None where it is none that can be counted."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e15:
        return None
    return value
