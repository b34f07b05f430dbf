"""`python -m duly.testing`: plays many histories of the storm, or one again; what `make sim` calls."""

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from duly import clock
from duly.testing.storm import STEPS, History, play
from duly.testing.world import BrokenPromise

SEEDS = 200
PLACES_EVERY = 4
"""Every so many-th seed plays over two places, whose keepers end their work by themselves."""
BROKEN_MOST = 5


def places_of(seed: int) -> int:
    """Over how many places a seed plays."""
    return 2 if seed % PLACES_EVERY == PLACES_EVERY - 1 else 1


def main(words: Sequence[str] | None = None) -> int:
    """Play; 0 when every promise was kept, 1 when one was not."""
    parser = argparse.ArgumentParser(prog="python -m duly.testing", description=__doc__)
    parser.add_argument("--seed", type=int, help="play this history alone, and tell of it")
    parser.add_argument("--seeds", type=int, default=SEEDS, help=f"play so many histories (default {SEEDS})")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--steps", type=int, default=STEPS, help=f"turns of each (default {STEPS})")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args(words)
    seeds = range(given.first, given.first + given.seeds) if given.seed is None else [given.seed]
    began_s = clock.monotonic_s()
    broken, steps, faults, runs = 0, 0, 0, 0
    for seed, told in _all(seeds, given.steps, given.processes if given.seed is None else 1):
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


def _all(seeds: Sequence[int], steps: int, processes: int) -> Iterator[tuple[int, History | str]]:
    if processes == 1 or len(seeds) == 1:
        yield from (_one((seed, steps)) for seed in seeds)
        return
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        yield from pool.map(_one, [(seed, steps) for seed in seeds], chunksize=8)


def _one(what: tuple[int, int]) -> tuple[int, History | str]:
    seed, steps = what
    try:
        return seed, play(seed, steps=steps, places=places_of(seed))
    except BrokenPromise as broken:
        return seed, str(broken)


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
