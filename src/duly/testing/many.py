"""Many histories, as many at once as there are processors; each tells what it came to, or which promise was broken."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

from duly.testing.storm import History, play
from duly.testing.world import BrokenPromise

PLACES_EVERY = 4
"""Every so many-th seed plays over two places, whose keepers end their work by themselves."""


def places_of(seed: int) -> int:
    """Over how many places a seed plays."""
    return 2 if seed % PLACES_EVERY == PLACES_EVERY - 1 else 1


def play_many(seeds: Sequence[int], *, steps: int, processes: int) -> Iterator[tuple[int, History | str]]:
    """Play these seeds; gives each with its history, or with what was broken, in their order."""
    one = partial(_one, steps=steps)
    if processes == 1 or len(seeds) == 1:
        yield from map(one, seeds)
        return
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        yield from pool.map(one, seeds, chunksize=4)


def _one(seed: int, *, steps: int) -> tuple[int, History | str]:
    try:
        return seed, play(seed, steps=steps, places=places_of(seed))
    except BrokenPromise as broken:
        return seed, str(broken)
