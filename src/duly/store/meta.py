"""What a store says of itself: its id, the lowest version that may use it, where it was moved."""

from sqlalchemy import bindparam, delete, insert, select, update

from duly.store.line import Line
from duly.store.sql import Statement
from duly.store.tables import meta

STORE_ID = "store_id"
MOVED_TO = "moved_to"
"""Of a store that was left: where all that it held went."""
MOVED_FROM = "moved_from"
"""Of a store that is being filled: the id of the one that it is filled from."""
LEDGER_PRUNED = "ledger_pruned"
"""The highest number of an entry that was taken away: whoever has read less of the ledger has missed something."""

SAID = Statement(lambda: select(meta.c.value).where(meta.c.key == bindparam("of")))
SAY_ANEW = Statement(lambda: update(meta).where(meta.c.key == bindparam("of")).values(value=bindparam("said")))
SAY = Statement(
    lambda: insert(meta).values(
        key=bindparam("of", type_=meta.c.key.type), value=bindparam("said", type_=meta.c.value.type)
    )
)
FORGET = Statement(lambda: delete(meta).where(meta.c.key == bindparam("of")))


class Meta:
    """Words by their keys."""

    def __init__(self, line: Line) -> None:
        self._line = line

    def said(self, key: str) -> str | None:
        """What is said under a key."""
        row = self._line.row(SAID, of=key)
        return None if row is None else str(row[0])

    def say(self, key: str, value: str) -> None:
        """Say something, in place of what was said under this key."""
        if not self._line.run(SAY_ANEW, of=key, said=value):
            self._line.run(SAY, of=key, said=value)

    def forget(self, key: str) -> None:
        """Say nothing under a key."""
        self._line.run(FORGET, of=key)
