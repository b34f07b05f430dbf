"""Ids: a prefix of three letters and 26 letters and digits that sort in order of creation."""

from datetime import datetime
from functools import lru_cache

from duly import chance, clock

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
TIME_DIGITS = 10
CHANCE_DIGITS = 16
CHANCE_BYTES = CHANCE_DIGITS * 5 // 8
PAIRS = tuple(high + low for high in ALPHABET for low in ALPHABET)
PREFIXES = ("tsk", "run", "mis", "que", "evt", "hld", "tok", "pau", "skp", "ntc")


def new(prefix: str) -> str:
    """Make a new id such as `run_01k…`: 48 bits of milliseconds, then 80 bits of chance."""
    assert prefix in PREFIXES
    ms = clock.to_us(clock.now()) // 1000
    return f"{prefix}_{_digits(ms, TIME_DIGITS)}{_drawn(chance.token_bytes(CHANCE_BYTES))}"


def several(prefix: str, count: int) -> list[str]:
    """Make so many new ids by one draw."""
    assert prefix in PREFIXES
    head = f"{prefix}_{_digits(clock.to_us(clock.now()) // 1000, TIME_DIGITS)}"
    drawn = chance.token_bytes(CHANCE_BYTES * count)
    return [head + _drawn(drawn[at : at + CHANCE_BYTES]) for at in range(0, len(drawn), CHANCE_BYTES)]


def lowest(prefix: str, at: datetime) -> str:
    """Give the lowest id that can have been made at or after an instant: ids sort in order of creation."""
    assert prefix in PREFIXES
    return f"{prefix}_{_digits(max(0, clock.to_us(at) // 1000), TIME_DIGITS)}"


def _drawn(chance_bytes: bytes) -> str:
    """Write 80 bits with two digits for each ten of them."""
    number = int.from_bytes(chance_bytes, "big")
    return "".join([PAIRS[number >> shift & 1023] for shift in range(70, -1, -10)])


@lru_cache(maxsize=16)
def _digits(number: int, count: int) -> str:
    out = []
    for _ in range(count):
        number, digit = divmod(number, 32)
        out.append(ALPHABET[digit])
    return "".join(reversed(out))
