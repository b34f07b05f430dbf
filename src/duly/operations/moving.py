"""`move`: a store with all that it holds into another database, compared row by row before the old one is left."""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from duly.errors import Refused, StoreAway
from duly.operations import serving
from duly.runners import logs
from duly.runners.folders import attempt_of
from duly.store import Session, Store
from duly.store.address import Place
from duly.store.log_pieces import PIECE_BYTES
from duly.store.meta import MOVED_FROM, MOVED_TO, STORE_ID
from duly.store.transfer import Rows, differences, moved_tables

NAMED = 5

Tell = Callable[[str, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """How many rows each table has at the new place, and how many of them this call wrote."""

    source: str
    target: str
    rows: Mapping[str, int]
    written: int


def move(source: Place, target: Place, environ: Mapping[str, str], *, tell: Tell) -> Moved:
    """Move a store; nobody may serve it, and nothing of it may be running.

    Cut short, it goes on where it was when it is asked again; until all is there and was compared, the old store is
    the one that counts. Refused `already_exists` where another store stands at the target, `already_running` where
    the store is in use.
    """
    old = Store.open(source, environ)
    try:
        new = Store.open(target, environ, create=True)
        try:
            with old.write() as session:
                session.line.take_time()
                _check_still(old, session)
                _check_free(session, new)
                written = _fill(session, new, tell) + _logs(old, session, new)
                rows = _compare(session, new)
                with new.write() as there:
                    there.meta.forget(MOVED_FROM)
                    there.line.number_on()
                session.meta.say(MOVED_TO, str(target))
        finally:
            new.close()
    finally:
        old.close()
    return Moved(source=str(source), target=str(target), rows=rows, written=written)


def shape(done: Moved) -> dict[str, object]:
    """Show a move."""
    return {
        "from": done.source,
        "to": done.target,
        "rows": sum(done.rows.values()),
        "written": done.written,
        "tables": dict(done.rows),
    }


def _check_still(store: Store, session: Session) -> None:
    serving.check_unserved(serving.alive(store, session), store.address)
    live = [run.id for run in session.runs.live()]
    if live:
        raise Refused(
            "already_running",
            f"{len(live)} runs are held: {', '.join(live[:NAMED])}",
            details={"runs": live[:NAMED], "count": len(live)},
            hint="duly serve --until-idle lets them end; then move",
        )


def _check_free(session: Session, new: Store) -> None:
    """Only an empty store, or one that this very move has begun to fill, is written."""
    own = session.meta.said(STORE_ID)
    with new.read() as there:
        if there.meta.said(STORE_ID) == own:
            raise Refused("already_exists", f"{new.address} is the store itself", hint="another address")
        filling = there.meta.said(MOVED_FROM)
        empty = all(rows.count(there.line) == 0 for rows in moved_tables())
    if filling != own and not empty:
        raise Refused(
            "already_exists",
            f"there is a store at {new.address} already, with rows of its own",
            details={"store": str(new.address)},
            hint="an empty database, or another file",
        )
    with new.write() as there:
        there.meta.say(MOVED_FROM, str(own))


def _fill(session: Session, new: Store, tell: Tell) -> int:
    written = 0
    with new.another_once() as reading:
        for rows in moved_tables():
            with reading.read() as seen:
                seen.line.take_time()
                for missing, stray in differences(rows, session.line, seen.line):
                    if not missing and not stray:
                        continue
                    with new.write() as there:
                        rows.drop(there.line, stray)
                        rows.put(there.line, missing)
                    written += len(missing)
                    tell(rows.table.name, written)
    return written


def _logs(old: Store, session: Session, new: Store) -> int:
    """Carry the output that lies in files into the new store, for the hosts that will look for it there."""
    written = 0
    for folder in _folders(old.run_folder / "attempts"):
        run, fence = attempt_of(folder)
        if session.runs.by_id(run) is None or not logs.size(folder):
            continue
        with new.write() as there:
            position = there.log_pieces.end(run, fence)
            while (piece := logs.read(folder, position, most=PIECE_BYTES)).data:
                there.log_pieces.add(run, fence, piece.at, piece.data)
                position = piece.next
                written += 1
    return written


def _folders(attempts: Path) -> Iterator[Path]:
    try:
        names = sorted(os.listdir(attempts))  # noqa: PTH208 - names suffice
    except OSError:
        return
    yield from (attempts / name for name in names if name.rpartition(".")[2].isdecimal())


def _compare(session: Session, new: Store) -> dict[str, int]:
    """Look at every row once more; StoreAway names the table in which the two stores differ."""
    counts: dict[str, int] = {}
    with new.read() as there:
        there.line.take_time()
        for rows in moved_tables():
            if _differ(rows, session, there):
                raise StoreAway(
                    f"{rows.table.name} is not the same in {new.address} as it was written",
                    hint="nothing was left: the old store is as it was; ask again",
                )
            counts[rows.table.name] = rows.count(there.line)
    return counts


def _differ(rows: Rows, session: Session, there: Session) -> bool:
    # Output that lay in files before is more than the old store had.
    more = rows.table.name == "log_pieces"
    found = differences(rows, session.line, there.line)
    return any(missing or (stray and not more) for missing, stray in found)
