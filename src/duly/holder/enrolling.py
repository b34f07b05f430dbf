"""The row by which a life of this process enters a store."""

import os
import socket

import duly
from duly import zones
from duly.clock import MICROSECOND, Clock
from duly.holder.wish import Wish
from duly.runners import processes
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
