"""What can go wrong, as exceptions with plain values.

DulyError
├── Invalid        the words or fields a person gave mean nothing; carries what to write instead
├── Refused        an ask that was understood and is not granted; carries the refusal's reason
├── StoreAway      no store can be reached or used at the address given
├── StoreBusy      another process holds the store's write lock for longer than we wait
├── StoreFull      the disk of the store is full
├── StoreSilent    the database does not answer now
├── StoreUnknown   the answer to a write was lost; it may stand or not
└── StoreNewer     the store is for newer versions of Duly only

A *no* inside the house is a value (`duly.core.reasons.Refusal`); these are for the roads between a person
and the house, and for what is broken.
"""

from collections.abc import Mapping
from types import MappingProxyType

NOTHING: Mapping[str, object] = MappingProxyType({})


class DulyError(Exception):
    """Every error that Duly raises on purpose: a reason of the closed set, a sentence, the figures."""

    reason = "invalid"

    def __init__(self, message: str, *, details: Mapping[str, object] = NOTHING, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.details = details
        self.hint = hint


class Invalid(DulyError, ValueError):
    """Input that cannot be read; `field` names it, `text` and `at` (0-based) let a caret be drawn under it."""

    reason = "invalid"

    def __init__(
        self,
        message: str,
        *,
        field: str | None = None,
        text: str | None = None,
        at: int | None = None,
        hint: str | None = None,
        details: Mapping[str, object] = NOTHING,
    ) -> None:
        super().__init__(message, details=details, hint=hint)
        self.field = field
        self.text = text
        self.at = at


class Refused(DulyError):
    """An ask that is not granted, for a reason of the closed set (`duly.core.reasons`)."""

    def __init__(
        self, reason: str, message: str, *, details: Mapping[str, object] = NOTHING, hint: str | None = None
    ) -> None:
        super().__init__(message, details=details, hint=hint)
        self.reason = reason


class StoreAway(DulyError):
    """The store cannot be reached or used; nothing was changed.

    `passing`: it is expected to come back by itself, so that who serves it waits and goes on.
    """

    reason = "store_away"
    passing = False


class StoreBusy(StoreAway):
    """Another process held the store's write lock for longer than this one was ready to wait."""

    passing = True


class StoreFull(StoreAway):
    """The disk of the store is full; nothing was changed."""

    passing = True


class StoreSilent(StoreAway):
    """The database does not answer now; nothing is known to have changed."""

    passing = True


class StoreNewer(DulyError):
    """The store may only be used by newer versions of Duly; nothing was changed."""

    reason = "store_newer"


class Taken(Exception):
    """A unique index refuses a row: its place is taken; nothing of the statement was written."""


class StoreUnknown(StoreAway):
    """The answer to a write was lost: it may or may not stand, and must be read back before anything is done."""

    passing = True
