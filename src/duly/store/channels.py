"""Channels: set by people, spoken to by whoever delivers; one at a time, by a write that names what it read."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, delete, func, insert, select, update

from duly.clock import MICROSECOND, from_us, to_us
from duly.core.channels import Channel
from duly.core.names import key_of
from duly.store.line import Line
from duly.store.notice_tables import channels
from duly.store.rows import at, us
from duly.store.sql import Statement

COLUMNS = tuple(column.name for column in channels.columns)
ALL = Statement(lambda: select(*channels.columns).order_by(channels.c.name_key))
BY_NAME = Statement(lambda: select(*channels.columns).where(channels.c.name_key == bindparam("name_key")))
ANY = Statement(lambda: select(func.count()).select_from(channels))
INSERT = Statement(lambda: insert(channels).values({c.name: bindparam(c.name, type_=c.type) for c in channels.columns}))
DELETE = Statement(lambda: delete(channels).where(channels.c.name_key == bindparam("of")))
STANDS = Statement(
    lambda: (
        update(channels)
        # Whoever read it first and writes it last changes nothing.
        .where(channels.c.name_key == bindparam("of"), channels.c.version == bindparam("was_version"))
        .values({name: bindparam(name) for name in COLUMNS if name not in ("name_key", "name")})
    )
)


class Channels:
    """Channels by name."""

    def __init__(self, line: Line) -> None:
        self._line = line

    def any(self) -> bool:
        """Tell whether there is any channel at all."""
        row = self._line.row(ANY)
        return row is not None and row[0] > 0

    def all(self) -> list[Channel]:
        """Every channel, by name."""
        return [_of(row) for row in self._line.rows(ALL)]

    def by_name(self, name: str) -> Channel | None:
        """The channel of this name."""
        row = self._line.row(BY_NAME, name_key=key_of(name))
        return None if row is None else _of(row)

    def insert(self, one: Channel) -> None:
        """Add a channel; Taken where there is one of its name."""
        self._line.run(INSERT, **_cells(one))

    def move(self, before: Channel, after: Channel) -> bool:
        """Write how a channel stands if it stands as it was read; False: somebody was faster."""
        cells = _cells(after)
        del cells["name_key"], cells["name"]
        return self._line.run(STANDS, of=key_of(before.name), was_version=before.version, **cells) == 1

    def remove(self, name: str) -> None:
        """Take a channel away."""
        self._line.run(DELETE, of=key_of(name))


def soonest(found: Sequence[Channel]) -> datetime | None:
    """The earliest instant at which one of these may be spoken to."""
    return min((max(one.next_at, one.claimed_until or one.next_at) for one in found), default=None)


def _of(row: Sequence[Any]) -> Channel:
    c = dict(zip(COLUMNS, row, strict=True))
    return Channel(
        name=c["name"],
        url=c["url"],
        secret=c["secret"],
        every=c["every_us"] * MICROSECOND,
        only_named=bool(c["only_named"]),
        set_at=from_us(c["set_us"]),
        set_by=c["set_by"],
        version=c["version"],
        claimed_by=c["claimed_by"],
        claimed_until=at(c["claimed_until_us"]),
        next_at=from_us(c["next_us"]),
        failures=c["failures"],
        failing_since=at(c["failing_us"]),
        error=c["error"],
        last_at=at(c["last_us"]),
    )


def _cells(one: Channel) -> dict[str, Any]:
    return {
        "name_key": key_of(one.name),
        "name": one.name,
        "url": one.url,
        "secret": one.secret,
        "every_us": one.every // MICROSECOND,
        "only_named": int(one.only_named),
        "set_us": to_us(one.set_at),
        "set_by": one.set_by,
        "version": one.version,
        "claimed_by": one.claimed_by,
        "claimed_until_us": us(one.claimed_until),
        "next_us": to_us(one.next_at),
        "failures": one.failures,
        "failing_us": us(one.failing_since),
        "error": one.error,
        "last_us": us(one.last_at),
    }
