"""The output of attempts, wherever it lies: in the folder of this host, else as it was copied into the store."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from duly.runners import logs
from duly.runners.folders import attempt_of
from duly.runners.logs import Piece
from duly.store import Session, Store

TAIL_BYTES = 65_536


def read(store: Store, folder: Path, position: int = 0, *, session: Session | None = None) -> Piece:
    """Give what follows a position in the output of the attempt with this folder; no bytes at its end.

    `session`: a read of this store that is under way, which has no room for another one inside it.
    """
    if logs.size(folder):
        return logs.read(folder, position)
    with _seen(store, session) as seen:
        found = seen.log_pieces.after(*attempt_of(folder), position)
    if found is None:
        return Piece(at=position, data=b"", cut=0, next=position)
    at, data = found
    return Piece(at=at, data=data, cut=at - position, next=at + len(data))


def size(store: Store, folder: Path, *, session: Session | None = None) -> int:
    """Give the length of an attempt's output so far, what was cut included."""
    here = logs.size(folder)
    if here:
        return here
    with _seen(store, session) as seen:
        return seen.log_pieces.end(*attempt_of(folder))


def tail(store: Store, folder: Path, most: int = TAIL_BYTES, *, session: Session | None = None) -> bytes:
    """Give the last bytes of an attempt's output."""
    if logs.size(folder):
        return logs.tail(folder, most)
    out, position = b"", max(0, size(store, folder, session=session) - most)
    while (piece := read(store, folder, position, session=session)).data:
        out, position = out + piece.data, piece.next
    return out[-most:]


@contextmanager
def _seen(store: Store, session: Session | None) -> Iterator[Session]:
    if session is not None:
        yield session
        return
    with store.read() as seen:
        yield seen
