"""What the tests of backups and of restores share."""

import sqlite3
from contextlib import closing
from pathlib import Path

from store_scene import Scene

from duly.operations import backups, restoring


def backed_up(s: Scene, name: str = "copy.db") -> Path:
    return backups.backup(s.file, s.folder.parent / name, s.environ, now=s.clock.now()).file


def restored(s: Scene, file: Path) -> restoring.Restored:
    return restoring.restore(s.file, file, s.environ, by="ann", clock=s.clock)


def rows(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as raw:
        return [line for line in raw.iterdump() if "backed_up_us" not in line]


def beside(s: Scene) -> set[str]:
    return {one.name for one in s.folder.iterdir()} - {"home", "duly.db", "duly.db-wal", "duly.db-shm", "duly.db.run"}
