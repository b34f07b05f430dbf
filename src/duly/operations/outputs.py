"""The output of attempts, wherever it lies: in the folder of this host, else as it was copied into the store."""

from pathlib import Path

from duly.runners import logs
from duly.runners.logs import Piece
from duly.store import Store

TAIL_BYTES = 65_536


def read(store: Store, folder: Path, position: int = 0) -> Piece:
    """Give what follows a position in the output of the attempt with this folder; no bytes at its end."""
    if logs.size(folder):
        return logs.read(folder, position)
    with store.read() as session:
        found = session.log_pieces.after(*_of(folder), position)
    if found is None:
        return Piece(at=position, data=b"", cut=0, next=position)
    at, data = found
    return Piece(at=at, data=data, cut=at - position, next=at + len(data))


def size(store: Store, folder: Path) -> int:
    """Give the length of an attempt's output so far, what was cut included."""
    here = logs.size(folder)
    if here:
        return here
    with store.read() as session:
        return session.log_pieces.end(*_of(folder))


def tail(store: Store, folder: Path, most: int = TAIL_BYTES) -> bytes:
    """Give the last bytes of an attempt's output."""
    if logs.size(folder):
        return logs.tail(folder, most)
    out, position = b"", max(0, size(store, folder) - most)
    while (piece := read(store, folder, position)).data:
        out, position = out + piece.data, piece.next
    return out[-most:]


def _of(folder: Path) -> tuple[str, int]:
    run, _, fence = folder.name.rpartition(".")
    return run, int(fence)
