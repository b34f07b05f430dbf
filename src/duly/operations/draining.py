"""Draining: asking holders to take no more work, to let what they hold come to its end, and then to leave."""

from collections.abc import Sequence

from duly.operations import serving, shapes
from duly.operations.holding import state_of
from duly.operations.lookup import find_holder
from duly.store.store import Store

Shape = dict[str, object]


def drain(store: Store, word: str | None) -> list[Shape]:
    """Ask the holder that a word means, or every one that lives; gives them as they stand after that.

    Asked again, or of one that is gone, it changes nothing. Refused `unknown_id` where there is no such holder.
    """
    with store.write() as session:
        alive = serving.alive(store, session)
        if word is not None:
            ids = [find_holder(session, word).id]
        else:
            ids = [row.id for row in session.holders.living() if row.id in alive]
        for id_ in ids:
            if id_ in alive:
                session.holders.drain(id_)
    return look(store, ids)


def look(store: Store, ids: Sequence[str]) -> list[Shape]:
    """Give these holders as they stand now."""
    with store.read() as session:
        alive = serving.alive(store, session)
        rows = [row for row in map(session.holders.by_id, ids) if row is not None]
        return [
            shapes.holder(row, state=state_of(row, alive), running=len(session.runs.held_by(row.id))) for row in rows
        ]
