"""Pings: which tasks have a monitor, from which entry of the ledger on, and who tries a ping that waits.

They lie in the outbox of notices, each task's under a name that no channel has.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import bindparam, delete, func, insert, null, select, update

from duly.clock import to_us
from duly.core.pings import BEFORE
from duly.store.line import Line
from duly.store.notice_tables import notice_states, notices
from duly.store.notices import Outgoing
from duly.store.rows import dump, mapping
from duly.store.sql import Statement

READ_TO = "pings"
"""The subject under which it stands how far the ledger was read for pings."""
_watched = func.substr(notice_states.c.subject, 1, len(BEFORE)) == BEFORE

WATCHED = Statement(lambda: select(notice_states.c.subject, notice_states.c.told).where(_watched))
SAID = Statement(lambda: select(notice_states.c.told).where(notice_states.c.subject == bindparam("of")))
SAY_ANEW = Statement(
    lambda: update(notice_states).where(notice_states.c.subject == bindparam("of")).values(told=bindparam("said"))
)
SAY = Statement(
    lambda: insert(notice_states).values(
        subject=bindparam("of", type_=notice_states.c.subject.type),
        told=bindparam("said", type_=notice_states.c.told.type),
    )
)
UNSAY = Statement(lambda: delete(notice_states).where(notice_states.c.subject == bindparam("of")))
CLAIM = Statement(
    lambda: (
        update(notices)
        .where(
            notices.c.id == bindparam("of"),
            notices.c.state == "waiting",
            notices.c.tries == bindparam("was_tries"),
            notices.c.state_us == bindparam("was_us"),
        )
        .values(tries=notices.c.tries + 1, state_us=bindparam("now_us"), error=null())
    )
)


class Pings:
    """Which tasks ping, how far the ledger was read for that, and the claims of single pings."""

    def __init__(self, line: Line) -> None:
        self._line = line

    def watched(self) -> Mapping[str, int]:
        """The tasks that ping, each with the entry of the ledger after which it does."""
        return {row[0].removeprefix(BEFORE): _seq(row) or 0 for row in self._line.rows(WATCHED)}

    def watch(self, task: str, after: int) -> None:
        """Let a task ping for what comes after this entry, unless it does already."""
        if self._line.row(SAID, of=BEFORE + task) is None:
            self._line.run(SAY, of=BEFORE + task, said=dump({"seq": after}))

    def unwatch(self, tasks: Sequence[str]) -> None:
        """Let tasks ping no more."""
        for task in tasks:
            self._line.run(UNSAY, of=BEFORE + task)

    def read_to(self) -> int | None:
        """The last entry of the ledger of which pings were made; None where none was ever read."""
        return _seq(self._line.row(SAID, of=READ_TO))

    def set_read_to(self, seq: int) -> None:
        """Write how far the ledger was read."""
        said = dump({"seq": seq})
        if not self._line.run(SAY_ANEW, of=READ_TO, said=said):
            self._line.run(SAY, of=READ_TO, said=said)

    def claim(self, one: Outgoing, now_us: int) -> bool:
        """Take a ping to try it, if it still waits as it was read; False: somebody was faster."""
        was = {"of": one.id, "was_tries": one.tries, "was_us": to_us(one.state_at)}
        return self._line.run(CLAIM, **was, now_us=now_us) == 1


def _seq(row: Sequence[Any] | None) -> int | None:
    seq = None if row is None else mapping(row[-1]).get("seq")
    return seq if isinstance(seq, int) else None
