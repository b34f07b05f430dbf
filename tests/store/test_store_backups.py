"""Backups are whole, restores leave nothing that could run, and neither ever loses what was there."""

import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from store_copied import backed_up, beside, restored, rows
from store_disk import write_one
from store_scene import NINE, Scene, hourly, scene
from test_store_verify import lived

from duly.clock import to_us
from duly.errors import Refused, StoreAway
from duly.operations import backups, restoring
from duly.operations.audit import verify
from duly.store import Store, copies, engine, making
from duly.store.address import Address
from duly.store.migrations import REVISIONS

pytestmark = pytest.mark.file("copies")


@pytest.fixture
def s(tmp_path: Path) -> Iterator[Scene]:
    (tmp_path / "store").mkdir()
    with scene(tmp_path / "store") as made:
        yield made


def test_a_backup_holds_every_row_in_one_file_for_this_user_alone(s: Scene) -> None:
    lived(s)
    done = backups.backup(s.file, s.folder.parent / "copy.db", s.environ, now=s.clock.now())
    assert rows(done.file) == rows(s.path)
    assert stat.S_IMODE(done.file.stat().st_mode) == 0o600
    assert (done.contents.taken_at, done.contents.tasks) == (s.clock.now(), 1)
    assert {one.name for one in s.folder.parent.iterdir()} == {"store", "copy.db"}, "no log, nothing half-made"
    copy = Store.open(Address(path=done.file), s.environ, noted=False)
    assert verify(copy) == []
    copy.close()


def test_a_backup_holds_what_only_the_log_held(s: Scene) -> None:
    s.add("in-the-log-alone", hourly())
    assert b"in-the-log-alone" not in s.path.read_bytes()
    file = backed_up(s)
    assert b"in-the-log-alone" in file.read_bytes()
    assert rows(file) == rows(s.path)


def test_a_backup_is_never_written_over_a_file_not_even_over_one_that_comes_meanwhile(
    s: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = s.folder.parent / "copy.db"
    target.write_text("a diary")
    with pytest.raises(Refused) as refused:
        backed_up(s)
    assert refused.value.reason == "already_exists"
    target.unlink()
    whole = copies.check

    def late(path: Path) -> None:
        whole(path)
        target.write_text("a diary")

    monkeypatch.setattr(copies, "check", late)
    with pytest.raises(Refused):
        backed_up(s)
    assert target.read_text() == "a diary"
    assert {one.name for one in s.folder.parent.iterdir()} == {"store", "copy.db"}


def test_a_backup_goes_to_a_file_system_without_hard_links_too(s: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("os.link", refuse)
    lived(s)
    file = backed_up(s)
    assert rows(file) == rows(s.path)
    with pytest.raises(Refused):
        backed_up(s)
    assert {one.name for one in s.folder.parent.iterdir()} == {"store", "copy.db"}


def test_a_damaged_store_is_not_backed_up_as_if_it_were_sound(s: Scene) -> None:
    damage(s)
    with pytest.raises(StoreAway, match="damaged"):
        backed_up(s)
    assert {one.name for one in s.folder.parent.iterdir()} == {"store"}


def damage(s: Scene) -> None:
    """Break pages in the middle of the file, so that it opens and is not sound."""
    lived(s)
    s.close()
    with closing(sqlite3.connect(s.path)) as raw:
        raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        page = raw.execute("SELECT rootpage FROM sqlite_master WHERE name = 'runs_task'").fetchone()[0]
        size = raw.execute("PRAGMA page_size").fetchone()[0]
    with s.path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)


def first_revision(path: Path) -> None:
    """Make a store as the first revision was."""
    from alembic import command
    from alembic.config import Config
    from sqlalchemy import create_engine

    config = Config()
    config.set_main_option("script_location", str(Path(making.__file__).parent / "migrations"))
    alchemy = create_engine(f"sqlite:///{path}")
    with alchemy.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0001")
    alchemy.dispose()
    with closing(sqlite3.connect(path, isolation_level=None)) as raw:
        raw.execute(f"PRAGMA application_id = {engine.APPLICATION_ID}")
        raw.execute("INSERT INTO meta VALUES ('lowest_version', '0.1.0'), ('store_id', 'x')")
        raw.execute("INSERT INTO ledger (at_us, kind) VALUES (?, 'defined')", (to_us(NINE),))


def test_a_backup_of_an_older_version_is_brought_up_to_date_on_its_way(s: Scene) -> None:
    lived(s)
    file = s.folder.parent / "old.db"
    first_revision(file)
    before = file.read_bytes()
    assert restored(s, file).contents.revision == "0001"
    assert file.read_bytes() == before
    with s.connect().read() as session:
        assert session.tasks.page() == []
    assert s.faults() == []


def test_an_older_store_is_backed_up_as_it_is_and_migrated_after_a_backup(s: Scene) -> None:
    s.close()
    s.path.unlink()
    first_revision(s.path)
    assert restoring.examine(backed_up(s)).revision == "0001"
    done = backups.migrate(s.file, s.environ)
    assert (done.before, done.after) == ("0001", REVISIONS[-1])
    assert done.backup is not None
    assert restoring.examine(done.backup).revision == "0001"
    assert backups.migrate(s.file, s.environ).backup is None


def test_a_log_left_at_the_place_is_no_part_of_a_store_that_is_made_anew(s: Scene) -> None:
    write_one(s.store)
    log = (s.folder / "duly.db-wal").read_bytes()
    s.close()
    s.path.unlink()
    (s.folder / "duly.db-wal").write_bytes(log)
    assert making.make(s.file, s.environ, again=True)
    store = Store.open(s.file, s.environ)
    with store.read() as session:
        assert session.ledger.last() == 0
    assert store.faults() == []
    store.close()
    assert (s.folder / "duly.db.lost.1-wal").read_bytes() == log


def test_migrating_a_store_that_is_up_to_date_does_nothing(s: Scene) -> None:
    lived(s)
    before = rows(s.path)
    done = backups.migrate(s.file, s.environ)
    assert (done.before, done.after, done.backup) == (REVISIONS[-1], REVISIONS[-1], None)
    assert rows(s.path) == before
    assert beside(s) == set()


def test_a_backup_does_not_wait_for_a_writer(s: Scene) -> None:
    with closing(sqlite3.connect(s.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        other.execute("INSERT INTO meta VALUES ('half', 'written')")
        file = backed_up(s)
        other.execute("ROLLBACK")
    assert not any("half" in line for line in rows(file))


def test_the_age_of_a_backup_that_does_not_tell_it_is_that_of_its_newest_entry(s: Scene) -> None:
    s.add("one", hourly())
    file = s.folder.parent / "plain.db"
    with closing(sqlite3.connect(s.path)) as raw, closing(sqlite3.connect(file)) as copy:
        raw.backup(copy)
    assert restoring.examine(file).taken_at == NINE
    s.at(NINE + timedelta(hours=3))
    assert [one.stretch.count for one in restored(s, file).due] == [3]
