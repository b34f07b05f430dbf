"""Many histories, as many at once as there are processors; each tells what it came to, or which promise was broken."""

import gc
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

from duly.testing.shelves import Shelf, file_shelf
from duly.testing.storm import History, play
from duly.testing.world import BrokenPromise

PLACES_EVERY = 4
"""Every so many-th seed plays over two places, whose keepers end their work by themselves."""
HOSTS = 3
"""Hosts that share a server."""
AT_ONCE = 20
"""Seeds that a process plays in one store, one after another."""
GARBAGE_AFTER = 50_000
"""Objects made before garbage is looked for: a world makes many, and hardly any in circles."""
Told = tuple[int, History | str]


def places_of(seed: int) -> int:
    """Over how many places a seed plays."""
    return 2 if seed % PLACES_EVERY == PLACES_EVERY - 1 else 1


def play_many(seeds: Sequence[int], *, steps: int, processes: int, server: str | None = None) -> Iterator[Told]:
    """Play these seeds, over hosts that share a PostgreSQL server where one is named by its URL.

    Gives each with its history, or with what was broken, in their order.
    """
    some = partial(_some, steps=steps, server=server)
    cut = [seeds[at : at + AT_ONCE] for at in range(0, len(seeds), AT_ONCE)]
    if processes == 1 or len(cut) == 1:
        for part in cut:
            yield from some(part)
        return
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn"), initializer=_settle) as pool:
        for told in pool.map(some, cut):
            yield from told


def _settle() -> None:
    gc.freeze()
    gc.set_threshold(GARBAGE_AFTER)


def _some(seeds: Sequence[int], *, steps: int, server: str | None) -> list[Told]:
    if server is None:
        with file_shelf() as opening:
            return [_one(seed, steps, places_of(seed), opening) for seed in seeds]
    from duly.testing.servers import server_shelf

    with server_shelf(server) as opening:
        return [_one(seed, steps, HOSTS, opening) for seed in seeds]


def _one(seed: int, steps: int, places: int, opening: Shelf) -> Told:
    try:
        return seed, play(seed, steps=steps, places=places, opening=opening)
    except BrokenPromise as broken:
        return seed, str(broken)
