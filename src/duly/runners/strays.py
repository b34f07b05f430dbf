"""Work of an attempt whose folder tells nothing any more: found by its environment, and ended."""

import signal

from duly import clock
from duly.runners import processes

GRACE_S = 0.5
WITHIN_S = 3.0
LOOK_EVERY_S = 0.01


def living(run: str, fence: int) -> list[processes.Process]:
    """The living processes whose environment names this run and this fence."""
    return processes.of_run(run, fence, processes.table().values())


def end(run: str, fence: int) -> list[str]:
    """End them, TERM before KILL; gives the names of those that did not end in time."""
    began = clock.monotonic_s()
    termed = False
    while found := living(run, fence):
        now = clock.monotonic_s()
        if now > began + WITHIN_S:
            return [f"{one.name} ({one.pid})" for one in found]
        if not termed:
            termed = True
            processes.ask_to_end(found)
        elif now > began + GRACE_S:
            for one in found:
                processes.send(one, signal.SIGKILL)
        clock.pause(LOOK_EVERY_S)
    return []
