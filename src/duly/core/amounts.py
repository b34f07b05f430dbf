"""Amounts that budgets count: runs, tokens and money, as they are spent, set aside, estimated and allowed."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Literal

Per = Literal["day", "month"]
MICRO = 1_000_000
"""Money is whole millionths of a dollar."""
USD_MOST = Decimal(1_000_000_000)
BOUND_MOST = 10**15
KINDS = ("runs", "tokens", "usd_micro")
UNITS: Mapping[str, str] = {"runs": "runs", "tokens": "tokens", "usd_micro": "dollars"}
WORDS: Mapping[str, str] = {"runs": "runs", "tokens": "tokens", "usd_micro": "usd"}
"""The kinds as people write them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Amounts:
    """Runs, tokens and money."""

    runs: int = 0
    tokens: int = 0
    usd_micro: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """What may be spent in each day or month; None is no bound."""

    per: Per
    runs: int | None = None
    tokens: int | None = None
    usd_micro: int | None = None


def more(one: Amounts, other: Amounts) -> Amounts:
    """Add two amounts."""
    return Amounts(
        runs=one.runs + other.runs, tokens=one.tokens + other.tokens, usd_micro=one.usd_micro + other.usd_micro
    )


def read_usd(value: object) -> int | None:
    """Read an amount of money as whole millionths of a dollar; None where it is none, or has more than six places."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        amount = Decimal(str(value).strip().removeprefix("$"))
    except InvalidOperation:
        return None
    if not amount.is_finite() or not 0 <= amount <= USD_MOST:
        return None
    micro = amount * MICRO
    return int(micro) if micro == micro.to_integral_value() else None


def figure(kind: str, amount: int | None) -> int | float | None:
    """Give an amount of a kind as it is shown: runs and tokens as they are, money in dollars."""
    return amount if amount is None or kind != "usd_micro" else amount / MICRO


def allowance_to_json(allowance: Allowance) -> dict[str, object]:
    """Write what may be spent as people write it."""
    return {**_told(allowance), "per": allowance.per}


def estimate_to_json(estimate: Amounts) -> dict[str, object]:
    """Write what one run is thought to cost as people write it."""
    return {name: amount for name, amount in _told(estimate).items() if amount}


def _told(amounts: Allowance | Amounts) -> dict[str, object]:
    given = {WORDS[kind]: figure(kind, getattr(amounts, kind)) for kind in KINDS}
    return {name: amount for name, amount in given.items() if amount is not None}
