"""Ids: a prefix of three letters and 26 letters and digits that sort in order of creation."""

from datetime import datetime

from duly import chance, clock

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
TIME_DIGITS = 10
CHANCE_DIGITS = 16
PREFIXES = ("tsk", "run", "mis", "que", "evt", "hld", "tok", "pau", "skp")


def new(prefix: str) -> str:
    """Make a new id such as `run_01k…`: 48 bits of milliseconds, then 80 bits of chance."""
    assert prefix in PREFIXES
    ms = clock.to_us(clock.now()) // 1000
    tail = int.from_bytes(chance.token_bytes(10), "big")
    return f"{prefix}_{_digits(ms, TIME_DIGITS)}{_digits(tail, CHANCE_DIGITS)}"


def lowest(prefix: str, at: datetime) -> str:
    """Give the lowest id that can have been made at or after an instant: ids sort in order of creation."""
    assert prefix in PREFIXES
    return f"{prefix}_{_digits(max(0, clock.to_us(at) // 1000), TIME_DIGITS)}"


def _digits(number: int, count: int) -> str:
    out = []
    for _ in range(count):
        number, digit = divmod(number, 32)
        out.append(ALPHABET[digit])
    return "".join(reversed(out))
