"""Holders: the processes that may hold leases, one row a life."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Select, bindparam, insert, select, update

from duly.clock import MICROSECOND, from_us, to_us
from duly.store.line import Line
from duly.store.rows import HolderRow
from duly.store.sql import Statement
from duly.store.tables import holders

COLUMNS = tuple(column.name for column in holders.columns)


def _all() -> Select[Any]:
    return select(*[holders.c[name] for name in COLUMNS])


INSERT = Statement(lambda: insert(holders).values({c.name: bindparam(c.name, type_=c.type) for c in holders.columns}))
BY_ID = Statement(lambda: _all().where(holders.c.id == bindparam("id")))
LIVING = Statement(lambda: _all().where(holders.c.state != "gone").order_by(holders.c.id))
IDS_LIKE = Statement(
    lambda: select(holders.c.id).where(holders.c.id.like(bindparam("pattern"), escape="\\")).limit(bindparam("most"))
)
BEFORE = Statement(
    lambda: _all().where(holders.c.id < bindparam("before")).order_by(holders.c.id.desc()).limit(bindparam("most"))
)
NEWER = Statement(
    # Who has no slots starts nothing, and so plans nothing either.
    lambda: _all().where(holders.c.state == "alive", holders.c.zone_data > bindparam("version"), holders.c.slots > 0)
)
BEAT = Statement(
    lambda: (
        update(holders)
        .where(holders.c.id == bindparam("of"), holders.c.state != "gone")
        .values(
            last_beat_us=bindparam("last_beat_us"),
            beat_lease_us=bindparam("beat_lease_us"),
            claims=bindparam("claims"),
            claims_lost=bindparam("claims_lost"),
        )
    )
)
DRAIN = Statement(
    lambda: update(holders).where(holders.c.id == bindparam("of"), holders.c.state == "alive").values(state="draining")
)
LEAVE = Statement(
    lambda: (
        update(holders)
        .where(holders.c.id == bindparam("of"))
        .values(state="gone", last_beat_us=bindparam("last_beat_us"))
    )
)
LAST_SEEN = Statement(
    lambda: (
        _all()
        .where(holders.c.id != bindparam("but"), holders.c.slots > 0)
        .order_by(holders.c.last_beat_us.desc())
        .limit(1)
    )
)
SET_STATE = Statement(lambda: update(holders).where(holders.c.id == bindparam("of")).values(state=bindparam("state")))

MARK_DEAD = Statement(
    # A beat that came since it was found silent wins.
    lambda: (
        update(holders)
        .where(
            holders.c.id == bindparam("of"),
            holders.c.state != "gone",
            holders.c.beat_lease_us == bindparam("was_beat_lease_us"),
        )
        .values(state="gone")
    )
)


class Holders:
    """Holders register at their start, beat, and are marked gone by themselves or by who finds them dead."""

    def __init__(self, line: Line) -> None:
        self._line = line

    def insert(self, row: HolderRow) -> None:
        """Register a holder."""
        import json

        cells: dict[str, Any] = {
            "id": row.id,
            "place": row.place,
            "boot": row.boot,
            "host": row.host,
            "pid": row.pid,
            "ticks": row.ticks,
            "started_us": to_us(row.started_at),
            "last_beat_us": to_us(row.last_beat_at),
            "beat_lease_us": row.beat_lease_us,
            "lease_for_us": row.lease_for // MICROSECOND,
            "state": row.state,
            "slots": row.slots,
            "labels": json.dumps(list(row.labels)),
            "version": row.version,
            "zone_data": row.zone_data,
            "claims": row.claims,
            "claims_lost": row.claims_lost,
        }
        self._line.run(INSERT, **cells)

    def by_id(self, id_: str) -> HolderRow | None:
        """The holder of this id."""
        row = self._line.row(BY_ID, id=id_)
        return None if row is None else _of(row)

    def ids_like(self, pattern: str, most: int) -> list[str]:
        """Ids of holders that match a LIKE pattern."""
        return [row[0] for row in self._line.rows(IDS_LIKE, pattern=pattern, most=most)]

    def with_newer_zone_data(self, version: str) -> list[HolderRow]:
        """Holders that claim, with newer zone data than these; whether they live is asked of beats and locks."""
        return [_of(row) for row in self._line.rows(NEWER, version=version)]

    def living(self) -> list[HolderRow]:
        """Holders that nobody has marked gone; whether they live is asked of their locks."""
        return [_of(row) for row in self._line.rows(LIVING)]

    def before(self, id_: str, most: int) -> list[HolderRow]:
        """Holders with ids below this one, the newest first, those that are gone too."""
        return [_of(row) for row in self._line.rows(BEFORE, before=id_, most=most)]

    def beat(self, id_: str, *, now: datetime, lease_us: int, claims: int, claims_lost: int) -> bool:
        """Note a holder's beat; False when its row is gone."""
        return (
            self._line.run(
                BEAT,
                of=id_,
                last_beat_us=to_us(now),
                beat_lease_us=lease_us,
                claims=claims,
                claims_lost=claims_lost,
            )
            == 1
        )

    def drain(self, id_: str) -> bool:
        """Ask a holder that is alive to take no more work; False where it is leaving or gone already."""
        return self._line.run(DRAIN, of=id_) == 1

    def leave(self, id_: str, *, now: datetime) -> None:
        """Mark a holder as gone by its own doing, which lived until now."""
        self._line.run(LEAVE, of=id_, last_beat_us=to_us(now))

    def mark_dead(self, row: HolderRow) -> bool:
        """Mark a holder as gone by somebody else's finding; False where it has beaten or was marked since then."""
        return self._line.run(MARK_DEAD, of=row.id, was_beat_lease_us=row.beat_lease_us) == 1

    def last_seen(self, but: str) -> HolderRow | None:
        """The holder that was last known to live of all that could start anything, but one."""
        row = self._line.row(LAST_SEEN, but=but)
        return None if row is None else _of(row)

    def set_state(self, id_: str, state: str) -> None:
        """Mark a holder as draining or gone."""
        self._line.run(SET_STATE, of=id_, state=state)


def _of(row: Sequence[Any]) -> HolderRow:
    import json

    h = dict(zip(COLUMNS, row, strict=True))
    return HolderRow(
        id=h["id"],
        place=h["place"],
        boot=h["boot"],
        host=h["host"],
        pid=h["pid"],
        ticks=h["ticks"],
        started_at=from_us(h["started_us"]),
        last_beat_at=from_us(h["last_beat_us"]),
        beat_lease_us=h["beat_lease_us"],
        lease_for=h["lease_for_us"] * MICROSECOND,
        state=h["state"],
        slots=h["slots"],
        labels=json.loads(h["labels"]),
        version=h["version"],
        zone_data=h["zone_data"],
        claims=h["claims"],
        claims_lost=h["claims_lost"],
    )
