"""Reading an attempt's output, while it runs and afterwards, as the bytes that were written.

Positions count in the whole output: what was cut out of its middle has positions too, and no bytes.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from duly.runners import output, processes

LOG = output.LOG
CUT = "cut"
PIECE_BYTES = 65536


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Bytes of the output from a position on; `cut` bytes before them are not kept."""

    at: int
    data: bytes
    cut: int
    next: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """A run of kept output: where it begins and ends in the whole, and where its file begins to hold it."""

    begin: int
    end: int
    path: Path
    offset: int


def read(folder: Path, position: int = 0, *, most: int = PIECE_BYTES) -> Piece:
    """Give what follows a position, at most so many bytes; no bytes at the end, which may move while it runs."""
    for stretch in stretches(folder):
        if position < stretch.end:
            at = max(position, stretch.begin)
            data = _bytes(stretch.path, stretch.offset + at - stretch.begin, min(most, stretch.end - at))
            return Piece(at=at, data=data, cut=at - position, next=at + len(data))
    return Piece(at=position, data=b"", cut=0, next=position)


def size(folder: Path) -> int:
    """Give the length of the whole output so far, what was cut included."""
    return max((stretch.end for stretch in stretches(folder)), default=0)


def tail(folder: Path, most: int = PIECE_BYTES) -> bytes:
    """Give the last bytes of the output."""
    out = b""
    for stretch in reversed(stretches(folder)):
        wanted = min(most - len(out), stretch.end - stretch.begin)
        out = _bytes(stretch.path, stretch.offset + stretch.end - stretch.begin - wanted, wanted) + out
    return out


def finished(folder: Path) -> bool:
    """Say whether nothing more will be written: the end is on record, or the traces of the work were taken away."""
    if (folder / "exit").exists() or (folder / "swept").exists():
        return True
    return (folder / LOG).exists() and not (folder / "lock").exists()


def stretches(folder: Path) -> list[Stretch]:
    """Give what is kept of the output, in order; while the work runs its tail lies in files of its own."""
    cut = _cut(folder)
    log = folder / LOG
    kept = _size(log)
    if cut is not None:
        at, missing = cut
        head = Stretch(begin=0, end=min(at, kept), path=log, offset=0)
        if kept <= at:
            return [head]
        return [head, Stretch(begin=at + missing, end=kept + missing, path=log, offset=at)]
    out = [Stretch(begin=0, end=min(kept, output.HEAD_BYTES), path=log, offset=0)] if kept else []
    numbers = _segments(folder)
    if not numbers:
        if kept > output.HEAD_BYTES and _cut(folder) is not None:
            return stretches(folder)  # it ended while we looked
        return [Stretch(begin=0, end=kept, path=log, offset=0)] if kept else []
    for number in numbers:
        begin = output.HEAD_BYTES + (number - 1) * output.TAIL_BYTES
        path = folder / output.segment(number)
        out.append(Stretch(begin=begin, end=begin + _size(path), path=path, offset=0))
    return out


def _cut(folder: Path) -> tuple[int, int] | None:
    """Where the whole log was cut and by how much; (its size, 0) for an ended one without a cut; None while it runs."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        ended = processes.read_whole(descriptor, "exit")
        cut = processes.read_whole(descriptor, CUT)
    finally:
        os.close(descriptor)
    if ended is not None:
        cut = {"at": ended.get("cut_at"), "bytes": ended.get("log_cut")}
    if cut is None:
        return None
    at, missing = cut["at"], cut["bytes"]
    if isinstance(at, int) and isinstance(missing, int):
        return at, missing
    return _size(folder / LOG), 0


def _segments(folder: Path) -> list[int]:
    numbers = [path.suffix[1:] for path in folder.glob(f"{LOG}.*")]
    return sorted(int(number) for number in numbers if number.isdigit())


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _bytes(path: Path, offset: int, count: int) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return b""
    try:
        return os.pread(descriptor, count, offset)
    finally:
        os.close(descriptor)
