"""What the nouns of the store and its transactions ask of a connection, whichever database is at its other end."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from duly.errors import StoreAway
from duly.store.sql import Batch, Statement


class Line(Protocol):
    """One held connection, used by one thread at a time; statements in Core go through it compiled.

    What the driver raises passes through as one of `errors`, but a row that a unique index refuses: that is a Taken.
    """

    errors: tuple[type[Exception], ...]
    pooled: bool
    """A pooler stands between: nobody is woken by a write."""

    def rows(self, statement: Statement, **given: Any) -> list[tuple[Any, ...]]:
        """All rows that a statement returns."""

    def row(self, statement: Statement, **given: Any) -> tuple[Any, ...] | None:
        """The first row that a statement returns, or None."""

    def run(self, statement: Statement, **given: Any) -> int:
        """Run a statement and say how many rows it changed."""

    def many(self, batch: Batch, rows: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
        """Run a batch over all rows, and give back what its RETURNING returned."""

    def prepare(self) -> None:
        """Compile beforehand what every run goes through."""

    def scalar(self, text: str) -> Any:
        """The one value of a query that no statement of ours asks."""

    def savepoint(self) -> AbstractContextManager[None]:
        """Undo what happens inside, and only that, when it raises."""

    @property
    def stands(self) -> bool:
        """A transaction is under way and can still be committed."""

    def begin_read(self) -> None:
        """Begin a transaction that sees one moment and changes nothing."""

    def begin_write(self, *, patience_s: float, first: bool) -> None:
        """Begin a transaction that writes, behind all others that do; `first`: beside them, on rows of its own.

        StoreBusy when its turn does not come in time, which without patience is at once.
        """

    def commit(self, *, ring: bool) -> None:
        """Commit; `ring`: other processes that wait for a change are told."""

    def rollback(self) -> None:
        """Undo the transaction, if one is under way."""

    def yield_turn(self, held_s: float) -> None:
        """After a commit: let others have their turn where that has to be done by hand."""

    def told(self, error: Exception) -> StoreAway:
        """What a person is told of an error of the driver's."""

    def take_time(self) -> None:
        """Let the transaction under way last as long as it needs to."""

    def number_on(self) -> None:
        """Let the ledger's numbers go on above the highest, after entries came with numbers of their own."""

    def close(self) -> None:
        """Close the connection."""
