"""The row by which a life of this process enters a store."""

import os
import socket
from collections.abc import Callable
from dataclasses import replace

import duly
from duly import clock as machine
from duly import zones
from duly.clock import MICROSECOND, Clock
from duly.errors import StoreBusy
from duly.holder.figures import Figures
from duly.holder.wish import Wish
from duly.runners import processes
from duly.store import Session, Store
from duly.store.rows import HolderRow


def row_of(id_: str, place: str, wish: Wish, clock: Clock) -> HolderRow:
    """Make the row of a holder that begins now, in this process and at this place."""
    now = clock.now()
    own = processes.read(os.getpid())
    return HolderRow(
        id=id_,
        place=place,
        boot=clock.boot_id(),
        host=socket.gethostname(),
        pid=os.getpid(),
        ticks=own.ticks if own is not None else None,
        started_at=now,
        last_beat_at=now,
        beat_lease_us=clock.lease_us(),
        lease_for=wish.figures.lease_us * MICROSECOND,
        state="alive",
        slots=wish.slots,
        labels=tuple(wish.labels),
        version=duly.__version__,
        zone_data=zones.zone_data_version(),
        claims=0,
        claims_lost=0,
    )


def enter(
    store: Store,
    row: HolderRow,
    figures: Figures,
    *,
    begin: Callable[[Session], None],
    away: Callable[[StoreBusy], None],
    stopped: Callable[[], bool],
) -> None:
    """Register when the lock is to be had: a frozen sibling may have it, and is past its lease one lease later.

    `begin` does in the same write what belongs to a beginning; `away` hears whenever the lock was not to be had.
    """
    until_s = machine.monotonic_s() + figures.lease_us / 1e6
    while True:
        try:
            with store.write(patience_s=figures.beat_us / 1e6) as session:
                # The turn may have been waited for longer than a lease: what counts is when the row stands.
                entered = replace(row, started_at=session.now, last_beat_at=session.now, beat_lease_us=session.lease_us)
                session.holders.insert(entered)
                session.crowd.set_labels(row.id, row.labels)
                begin(session)
            return
        except StoreBusy as error:
            away(error)
            if machine.monotonic_s() > until_s or stopped():
                raise
