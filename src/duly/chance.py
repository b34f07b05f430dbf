"""The one place that asks the machine for chance."""

import random
import secrets


def token_bytes(count: int) -> bytes:
    """So many bytes that nobody can guess."""
    return secrets.token_bytes(count)


def between(low: float, high: float) -> float:
    """Draw a number between two others, for jitter; not for secrets."""
    return random.uniform(low, high)
