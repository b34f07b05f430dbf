"""What keeps a message from its channel."""

from datetime import timedelta


class NotSent(Exception):
    """A channel did not take a message: why in words, and how long it asked us to wait, where it did.

    `for_good`: it would not take the same another time either.
    """

    def __init__(self, told: str, *, wait: timedelta | None = None, for_good: bool = False) -> None:
        super().__init__(told)
        self.told = told
        self.wait = wait
        self.for_good = for_good
