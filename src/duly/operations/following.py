"""Following the ledger: its entries as readers are sent them, page by page, and whether some they lack are gone."""

import json
from dataclasses import dataclass

from duly.core.names import key_of
from duly.operations import shapes
from duly.store.meta import LEDGER_PRUNED
from duly.store.store import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """One entry as it is shown, with what decides who is shown it."""

    seq: int
    task: str | None
    project: str | None
    """The key of its task's project; None where it has no task that is known."""
    text: str
    """The entry as it is shown, as JSON in one line: written once for all who read it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Whose entries a reader wants and may see; None: all."""

    task: str | None = None
    projects: frozenset[str] | None = None
    """Keys of projects; what belongs to no task is not shown then."""


def page(session: Session, after: int, most: int) -> list[Told]:
    """Give entries with numbers above one, the oldest first."""
    found = session.ledger.after(after, most=most)
    tasks = session.tasks.by_ids({one.entry.task for one in found if one.entry.task is not None})
    projects = {id_: key_of(task.definition.project) for id_, task in tasks.items()}
    return [
        Told(
            seq=one.seq,
            task=one.entry.task,
            project=projects.get(one.entry.task or ""),
            text=json.dumps(shapes.entry(one), separators=(",", ":")),
        )
        for one in found
    ]


def is_wanted(told: Told, wanted: Wanted) -> bool:
    """Tell whether a reader is sent an entry."""
    if wanted.task is not None and told.task != wanted.task:
        return False
    return wanted.projects is None or told.project in wanted.projects


def has_gaps(session: Session, after: int) -> bool:
    """Tell whether who has read up to a number cannot go on from there without missing something.

    Entries above it were pruned, or it is of another ledger: of a store that was restored from an older copy.
    """
    return after < int(session.meta.said(LEDGER_PRUNED) or 0) or after > session.ledger.last()
