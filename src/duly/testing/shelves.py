"""Shelves: one store for one simulated world after another, emptied in between, its connections kept open."""

import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from duly.clock import Clock
from duly.store import Store, engine
from duly.store.address import Address
from duly.store.engine import FileLine
from duly.store.file_engine import FileEngine
from duly.testing.stores import Opening, blank, quick_folder

Shelf = Callable[[Path], Opening]
"""Gives the store of one world more, whose folder is given."""


@contextmanager
def file_shelf() -> Iterator[Shelf]:
    """Give SQLite stores, one after another, in one file: each as new, for a hundredth of what making it costs."""
    with tempfile.TemporaryDirectory(prefix="duly-", dir=quick_folder()) as name:
        shelf = _FileShelf(Address(path=Path(name) / "duly.db"))
        try:
            yield shelf.opening
        finally:
            shelf.close()


class _FileShelf:
    """A file, the rows it had when it was made, and connections to it that nobody uses now."""

    def __init__(self, address: Address) -> None:
        self.address = address
        address.path.write_bytes(blank())
        self._free: list[sqlite3.Connection] = []
        self._out = 0
        raw = self.take()
        names = [name for (name,) in raw.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
        self._rows = {name: raw.execute(f'SELECT * FROM "{name}"').fetchall() for name in names}
        self.give_back(raw)

    def opening(self, folder: Path) -> Opening:
        """Empty the store for a world that lives in this folder."""
        assert not self._out, "the world before is not over"
        raw = self.take()
        raw.execute("BEGIN IMMEDIATE")
        for name, rows in self._rows.items():
            raw.execute(f'DELETE FROM "{name}"')
            if rows:
                raw.executemany(f'INSERT INTO "{name}" VALUES ({", ".join("?" * len(rows[0]))})', rows)
        raw.execute("COMMIT")
        self.give_back(raw)
        return lambda clock: _KeptStore.on(self, folder, clock)

    def take(self) -> sqlite3.Connection:
        """Give a connection that nobody uses."""
        self._out += 1
        return self._free.pop() if self._free else engine.connect(self.address.path, readonly=False).raw

    def give_back(self, raw: sqlite3.Connection) -> None:
        """Keep a connection for the next who asks; what it had not committed is undone."""
        if raw.in_transaction:
            raw.execute("ROLLBACK")
        self._out -= 1
        self._free.append(raw)

    def close(self) -> None:
        """Close the connections."""
        for raw in self._free:
            raw.close()


class _KeptLine(FileLine):
    """A connection that goes back to its shelf when it is closed."""

    def __init__(self, shelf: _FileShelf) -> None:
        super().__init__(shelf.take(), shelf.address.path)
        self._shelf: _FileShelf | None = shelf

    def close(self) -> None:
        """Give the connection back, once."""
        shelf, self._shelf = self._shelf, None
        if shelf is not None:
            shelf.give_back(self.raw)


class _KeptEngine(FileEngine):
    """One process's way to the file of a shelf, which nobody moves or migrates; its run folder is the world's."""

    def __init__(self, shelf: _FileShelf, folder: Path) -> None:
        super().__init__(shelf.address, {})
        self._folder = folder

    @property
    def run_folder(self) -> Path:
        """Where holders' locks lie."""
        return self._folder / self.address.run_folder.name

    def check_here(self) -> None:
        """Nothing to see: the file stays."""


class _KeptStore(Store):
    """A store on a shelf."""

    @classmethod
    def on(cls, shelf: _FileShelf, folder: Path, clock: Clock) -> Self:
        """Open it for one process."""
        made = cls(
            shelf.address,
            _KeptEngine(shelf, folder),
            _KeptLine(shelf),
            clock=clock,
            environ={},
            readonly=False,
        )
        made._again = lambda: cls.on(shelf, folder, clock)
        return made

    _again: Callable[[], Store]

    def another(self) -> Store:
        """Open it again for another thread of the same process."""
        return self._again()
