"""What is on its way: sent in a thread of its own, so that who does not answer holds up nothing else."""

import threading
from collections.abc import Callable
from datetime import timedelta

from duly import clock
from duly.core.values import value
from duly.notify.outcome import NotSent
from duly.notify.sending import Sender

ANSWERED_WITHIN_S = 60.0
"""What has not been taken by then has not been taken; well below the claim."""


@value
class Sent:
    """What became of it: an error where it was not taken, with how long we are asked to wait, or that it is no use."""

    error: str | None = None
    wait: timedelta | None = None
    for_good: bool = False


class OnItsWay:
    """One thing that is being sent, from when it is made."""

    def __init__(self, send: Callable[[], None], sender: Sender, rang: threading.Event) -> None:
        self.outcome: Sent | None = None
        self.overdue_s = clock.monotonic_s() + ANSWERED_WITHIN_S
        self._send, self._sender, self._rang = send, sender, rang
        self._thread = threading.Thread(target=self._run, name="duly-notice", daemon=True)
        self._thread.start()

    def over(self) -> Sent | None:
        """Give what became of it, once that is known or can be waited for no longer."""
        if self.outcome is None and clock.monotonic_s() >= self.overdue_s:
            return Sent(error=f"it gave no answer within {ANSWERED_WITHIN_S:g} s")
        return self.outcome

    def lives(self) -> bool:
        """Tell whether its thread still waits for the receiver."""
        return self._thread.is_alive()

    def _run(self) -> None:
        try:
            self._send()
            self.outcome = Sent()
        except NotSent as error:
            self.outcome = Sent(error=error.told, wait=error.wait, for_good=error.for_good)
        except Exception as error:  # noqa: BLE001 - a fault of ours is one receiver's trouble, and is told as its error
            self.outcome = Sent(error=f"{type(error).__name__}: {self._sender.secrets.mask(str(error))}")
        self._rang.set()
