"""`python -m duly.testing`: plays many histories of the storm, or one again; what `make sim` calls."""

import argparse
import os
import sys
from collections.abc import Sequence

from duly import clock
from duly.testing.many import play_many
from duly.testing.storm import STEPS

SEEDS = 200
BROKEN_MOST = 5


def main(words: Sequence[str] | None = None) -> int:
    """Play; 0 when every promise was kept, 1 when one was not."""
    parser = argparse.ArgumentParser(prog="python -m duly.testing", description=__doc__)
    parser.add_argument("--seed", type=int, help="play this history alone, and tell of it")
    parser.add_argument("--seeds", type=int, default=SEEDS, help=f"play so many histories (default {SEEDS})")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--steps", type=int, default=STEPS, help=f"turns of each (default {STEPS})")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument(
        "--server", help="the URL of a PostgreSQL server on which databases may be made: hosts share it"
    )
    given = parser.parse_args(words)
    seeds = range(given.first, given.first + given.seeds) if given.seed is None else [given.seed]
    began_s = clock.monotonic_s()
    broken, steps, faults, runs = 0, 0, 0, 0
    for seed, told in play_many(seeds, steps=given.steps, processes=given.processes, server=given.server):
        if isinstance(told, str):
            broken += 1
            _say(told)
            if broken >= BROKEN_MOST:
                break
            continue
        steps, faults, runs = steps + told.steps, faults + told.faults, runs + told.runs
        if given.seed is not None:
            _say(f"seed {seed}: every promise was kept")
    took_s = clock.monotonic_s() - began_s
    _say(f"{len(seeds)} seeds, {steps} turns, {faults} faults, {runs} runs in {took_s:.0f} s: {broken} broke a promise")
    return 1 if broken else 0


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
