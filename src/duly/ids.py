"""Ids: a prefix of three letters and 26 letters and digits that sort in order of creation."""

from base64 import b32encode
from datetime import datetime
from functools import lru_cache

from duly import chance, clock

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
TIME_DIGITS = 10
CHANCE_DIGITS = 16
OUR_DIGITS = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", ALPHABET)
PREFIXES = ("tsk", "run", "mis", "que", "evt", "hld", "tok", "pau", "skp")


def new(prefix: str) -> str:
    """Make a new id such as `run_01k…`: 48 bits of milliseconds, then 80 bits of chance."""
    assert prefix in PREFIXES
    ms = clock.to_us(clock.now()) // 1000
    # Five bits a digit: what base32 does, with other digits.
    tail = b32encode(chance.token_bytes(CHANCE_DIGITS * 5 // 8)).decode().translate(OUR_DIGITS)
    return f"{prefix}_{_digits(ms, TIME_DIGITS)}{tail}"


def lowest(prefix: str, at: datetime) -> str:
    """Give the lowest id that can have been made at or after an instant: ids sort in order of creation."""
    assert prefix in PREFIXES
    return f"{prefix}_{_digits(max(0, clock.to_us(at) // 1000), TIME_DIGITS)}"


@lru_cache(maxsize=16)
def _digits(number: int, count: int) -> str:
    out = []
    for _ in range(count):
        number, digit = divmod(number, 32)
        out.append(ALPHABET[digit])
    return "".join(reversed(out))
