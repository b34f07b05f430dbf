"""The output of attempts, wherever it lies: in the folder of this host, else as it was copied into the store."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from duly.core.ledger import attempts
from duly.core.run import Run
from duly.errors import Invalid, Refused
from duly.operations.lookup import find_any, told
from duly.runners import folders, logs
from duly.runners.folders import attempt_of
from duly.runners.logs import Piece
from duly.store import Session, Store

TAIL_BYTES = 65_536


def run_of(session: Session, word: str) -> Run:
    """Find a run by its id, or the newest run of a task by its name or id."""
    found = find_any(session, word)
    if isinstance(found, Run):
        return found
    newest = session.runs.listed(task=found.id, most=1)
    if not newest:
        raise Refused(
            "unknown_run", f"{told(found)} has not run yet", details={"task": found.id}, hint=f"duly run {told(found)}"
        )
    return newest[0]


def folder_of(store: Store, session: Session, run: Run, number: int | None = None) -> Path | None:
    """Give the folder of an attempt, of the last one where none is named; None where the run has not begun one."""
    if number is None or number == run.attempt:
        return folders.folder_of(store.run_folder, run.id, run.fence) if run.attempt else None
    for one in attempts(one.entry for one in session.ledger.of_run(run.id)):
        if one.attempt == number:
            return folders.folder_of(store.run_folder, run.id, one.fence)
    raise Invalid(
        f"{run.id} has {run.attempt} attempts, and no number {number}", field="--attempt", text=str(number), at=0
    )


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


def kept(store: Store, folder: Path | None, *, session: Session | None = None) -> list[tuple[int, int]]:
    """Give the stretches of an attempt's output that are kept, by where each begins and ends in the whole."""
    if folder is None:
        return []
    found = [(one.begin, one.end) for one in logs.stretches(folder)]
    if not found:
        with _seen(store, session) as seen:
            found = seen.log_pieces.places(*attempt_of(folder))
    out: list[tuple[int, int]] = []
    for begin, end in found:
        if out and out[-1][1] == begin:
            out[-1] = (out[-1][0], end)
        elif end > begin:
            out.append((begin, end))
    return out


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
