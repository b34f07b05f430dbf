"""What a holder does for hosts that cannot see it: its keepers' deadline, doubt of the store's clock, copied output.

Beside a SQLite file there is none of it: all are at one place, read one clock, and see one folder.
"""

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from duly.errors import StoreAway
from duly.holder.figures import Figures
from duly.holder.heart import Heart
from duly.holder.holdings import Holding, Holdings
from duly.holder.presence import Presence
from duly.holder.sweeper import Sweeper
from duly.runners import logs
from duly.store import Store
from duly.store.log_pieces import PIECE_BYTES

COPIED_EVERY_S = 1.0
PIECES_A_STEP = 16
"""Of one attempt and at most so many at a time: a work that writes without end keeps no other from being read."""


@dataclass(slots=True)
class _Copied:
    folder: Path
    position: int | None = None
    over: bool = False


class Abroad:
    """Moves the deadline with each beat, lets other places be judged only by a clock that kept step, copies output."""

    def __init__(
        self,
        store: Store,
        presence: Presence,
        figures: Figures,
        heart: Heart,
        sweeper: Sweeper,
        holdings: Holdings,
    ) -> None:
        self._store = store
        self._clock = store.clock
        self._many = not store.engine.one_place
        self._presence = presence
        self._figures = figures
        self._holdings = holdings
        self._copied: dict[tuple[str, int], _Copied] = {}
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        if self._many:
            holdings.on_release = self._note  # what ended between two steps has output too
            heart.on_believed = self._until
            sweeper.believes_store = lambda: heart.distrust.believes(store.clock.trust_us(), store.clock.ahead_us())

    def begin(self) -> None:
        """Set the first deadline, before anything is claimed, and begin to copy."""
        if not self._many:
            return
        self._until(self._clock.trust_us() + self._figures.trust_us)
        self.begin_to_copy()

    def begin_to_copy(self) -> None:
        """Copy from now on, in a thread of its own."""
        self._thread = threading.Thread(target=self._copy, name="output", daemon=True)
        self._thread.start()

    def hand_over(self) -> None:
        """Copy the rest, and let work that is handed over go on until its lease ends, less what is kept back."""
        if not self._many:
            return
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
        kept_back_us = self._figures.lease_us - self._figures.trust_us
        self._until(self._clock.trust_us() + self._figures.handover_us - kept_back_us)

    def _until(self, until_us: int) -> None:
        self._presence.believed_until(until_us, until_us + self._figures.grace_us)

    def _copy(self) -> None:
        store: Store | None = None
        last = False
        while not last:
            last = self._ended.wait(COPIED_EVERY_S)
            if self._presence.released:
                break
            try:
                store = store or self._store.another()
                self.step(store)
            except StoreAway:
                continue  # what was written lies in its file, and is copied when the store is back
        if store is not None:
            store.close()

    def step(self, store: Store) -> int:
        """Copy what was written since the last step; gives the number of pieces."""
        held = {self._note(holding) for holding in self._holdings.all()}
        copied = dict(self._copied)
        for key, one in copied.items():
            one.over = key not in held
        pieces = {key: list(self._fresh(store, key, one)) for key, one in copied.items()}
        if any(pieces.values()):
            with store.write(first=True, ring=False) as session:
                for (run, fence), found in pieces.items():
                    for piece in found:
                        session.log_pieces.add(run, fence, piece.at, piece.data)
        for key, one in copied.items():
            if pieces[key]:
                one.position = pieces[key][-1].next
            if one.over and len(pieces[key]) < PIECES_A_STEP:
                del self._copied[key]
        return sum(len(found) for found in pieces.values())

    def _note(self, holding: Holding) -> tuple[str, int]:
        key = holding.run.id, holding.run.fence
        self._copied.setdefault(key, _Copied(folder=holding.assignment.folder))
        return key

    def _fresh(self, store: Store, key: tuple[str, int], one: _Copied) -> Iterable[logs.Piece]:
        if one.position is None:
            if not logs.size(one.folder):
                return
            with store.read() as session:
                one.position = session.log_pieces.end(*key)  # who held it before may have copied a part
        position = one.position
        for _ in range(PIECES_A_STEP):
            piece = logs.read(one.folder, position, most=PIECE_BYTES)
            if not piece.data:
                return
            yield piece
            position = piece.next
