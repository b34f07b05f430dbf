"""Output of attempts in the store, for hosts that cannot read the file it is written to: pieces by their positions."""

from typing import Any

from sqlalchemy import bindparam, func, insert, select

from duly.store.line import Line
from duly.store.sql import Statement
from duly.store.tables import log_pieces

PIECE_BYTES = 65_536

INSERT = Statement(
    lambda: insert(log_pieces).values({c.name: bindparam(c.name, type_=c.type) for c in log_pieces.columns})
)
END = Statement(
    lambda: select(func.max(log_pieces.c.at + func.length(log_pieces.c.data))).where(
        log_pieces.c.run == bindparam("run"), log_pieces.c.fence == bindparam("fence")
    )
)
AFTER = Statement(
    lambda: (
        select(log_pieces.c.at, log_pieces.c.data)
        .where(
            log_pieces.c.run == bindparam("run"),
            log_pieces.c.fence == bindparam("fence"),
            log_pieces.c.at + func.length(log_pieces.c.data) > bindparam("position"),
        )
        .order_by(log_pieces.c.at)
        .limit(1)
    )
)
PLACES = Statement(
    lambda: (
        select(log_pieces.c.at, func.length(log_pieces.c.data))
        .where(log_pieces.c.run == bindparam("run"), log_pieces.c.fence == bindparam("fence"))
        .order_by(log_pieces.c.at)
    )
)


class LogPieces:
    """Pieces are added in their order and never changed."""

    def __init__(self, line: Line) -> None:
        self._line = line

    def add(self, run: str, fence: int, at: int, data: bytes) -> None:
        """Keep bytes of an attempt's output from a position on."""
        self._line.run(INSERT, run=run, fence=fence, at=at, data=data)

    def end(self, run: str, fence: int) -> int:
        """The position behind the last byte that is kept."""
        row = self._line.row(END, run=run, fence=fence)
        return 0 if row is None or row[0] is None else int(row[0])

    def places(self, run: str, fence: int) -> list[tuple[int, int]]:
        """Where each piece begins and ends, in their order."""
        return [(int(at), int(at) + int(count)) for at, count in self._line.rows(PLACES, run=run, fence=fence)]

    def after(self, run: str, fence: int, position: int) -> tuple[int, bytes] | None:
        """What is kept from a position on: where it begins, and its bytes up to the end of their piece."""
        row: tuple[Any, ...] | None = self._line.row(AFTER, run=run, fence=fence, position=position)
        if row is None:
            return None
        at, data = int(row[0]), bytes(row[1])
        skip = max(0, position - at)
        return at + skip, data[skip:]
