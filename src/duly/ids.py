"""Ids: a prefix of three letters and 26 letters and digits that sort in order of creation."""

from duly import chance, clock

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
TIME_DIGITS = 10
CHANCE_DIGITS = 16
PREFIXES = ("tsk", "run", "mis", "que", "evt", "hld", "tok", "pau")


def new(prefix: str) -> str:
    """Make a new id such as `run_01k…`: 48 bits of milliseconds, then 80 bits of chance."""
    assert prefix in PREFIXES
    ms = clock.to_us(clock.now()) // 1000
    tail = int.from_bytes(chance.token_bytes(10), "big")
    return f"{prefix}_{_digits(ms, TIME_DIGITS)}{_digits(tail, CHANCE_DIGITS)}"


def _digits(number: int, count: int) -> str:
    out = []
    for _ in range(count):
        number, digit = divmod(number, 32)
        out.append(ALPHABET[digit])
    return "".join(reversed(out))
