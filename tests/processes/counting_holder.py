"""A process that serves a store with a runner of its own: its work is to say that it began and that it ended."""

import os
import sys
import time
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path

from duly import clock
from duly.clock import pause
from duly.holder.holder import Holder
from duly.holder.wish import wish
from duly.ports import Assignment, How, Outcome
from duly.runners.registry import Registry
from duly.store import Store
from duly.store.address import resolve

WORKS_FOR_S = 0.002


class Skewed(clock.Told):
    """A civil clock that is wrong by so much, beside a machine's own clocks for all else."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def now(self) -> datetime:
        return clock.EPOCH + timedelta(seconds=time.time() + self._seconds)

    def lease_us(self) -> int:
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000

    def boot_id(self) -> str:
        return clock.BOOT_ID.read_text().strip()

    def pause(self, seconds: float) -> None:
        time.sleep(seconds)


class Counting:
    """Appends a line when it begins and one when it ends; the order of the file is the order of the world."""

    kept = False
    at_once = True  # it needs nothing but this machine: what was missed starts all together

    def check(self, action: Mapping[str, object]) -> None:
        return None

    def perform(self, assignment: Assignment, checkpoint: Mapping[str, object] | None) -> Outcome:
        _say(f"+ {assignment.run} {os.getpid()}\n")
        pause(WORKS_FOR_S)
        _say(f"- {assignment.run} {os.getpid()}\n")
        return Outcome(word="succeeded")

    def stop(self, how: How) -> None:
        return None


def _say(line: str) -> None:
    with (Path(os.environ["HOME"]) / "witness").open("ab", buffering=0) as witness:
        witness.write(line.encode())


def main(path: str, slots: str) -> None:
    wanted = wish(slots=int(slots), beat=timedelta(seconds=1), lease=timedelta(seconds=8))
    store = Store.open(resolve(path, os.environ), create=True)
    holder = Holder(store, wanted, Registry(extra={"command": Counting}), tell=lambda event, told: None)
    holder.start()
    print(f"duly: serving {path} as {holder.id}", flush=True)
    with clock.telling(Skewed(float(os.environ.get("SKEW_S", "0")))):
        holder.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
