"""Stores that are gone, replaced, damaged, foreign, newer, remembered."""

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from store_disk import snapshot, write_one
from store_scene import HOUR, NINE, SUCCEEDED, Scene, hourly, scene

import databases
from by_hand import dump_of, rows_at
from duly.errors import StoreAway, StoreNewer
from duly.store import Store, engine, making
from duly.store.address import Address, Place, is_remembered, resolve


@pytest.mark.file("vanished")
def test_a_store_that_vanished_under_an_open_one_is_an_error_and_nothing_is_made_in_its_place(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.add("one", hourly())
        s.path.rename(tmp_path / "elsewhere.db")
        with pytest.raises(StoreAway, match="gone"):
            write_one(s.store)
        with pytest.raises(StoreAway, match="gone"):
            s.store.another()
        for create in (False, True):
            with pytest.raises(StoreAway, match="gone"):
                Store.open(s.file, s.environ, create=create)
        with pytest.raises(StoreAway, match="gone"):
            Store.find(s.file, s.environ)
        assert not s.path.exists()
        (tmp_path / "elsewhere.db").rename(s.path)
        write_one(s.store)
        assert len(s.entries()) == 2, "brought back, it goes on"


@pytest.mark.file("vanished")
def test_a_vanished_store_is_made_anew_only_where_that_was_asked_for(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.path.unlink()
        assert making.make(s.file, s.environ, again=True)
        assert not making.make(s.file, s.environ, again=True), "on a standing one it changes nothing"
        with pytest.raises(StoreAway, match="gone"):
            write_one(s.store)


@pytest.mark.file("vanished")
def test_a_store_replaced_by_another_file_is_not_written(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.add("one", hourly())
        other = tmp_path / "other.db"
        making.make(Address(path=other), s.environ)
        replaced = other.read_bytes()
        other.rename(s.path)
        with pytest.raises(StoreAway):
            write_one(s.store)
        assert s.path.read_bytes() == replaced


def closed_store(folder: Path) -> Scene:
    """A store with some rows, all of it in the one file."""
    with scene(folder) as s:
        for number in range(40):
            s.add(f"task {number}", hourly())
    assert not (folder / "duly.db-wal").exists()
    return s


def uses(s: Scene) -> None:
    """Open it every way and read all of it."""
    for opens in (Store.find, Store.open):
        store = opens(s.file, s.environ)
        assert store is not None
        try:
            read_all(store)
        finally:
            store.close()


def read_all(store: Store) -> None:
    with store.read() as session:
        session.tasks.page()
        session.ledger.after(0, most=10_000)


@pytest.mark.file("damage")
@pytest.mark.parametrize("size", [0, 50, 100, 4096, 9000])
def test_a_truncated_store_is_an_error_and_is_left_as_it_is(tmp_path: Path, size: int) -> None:
    s = closed_store(tmp_path)
    whole = s.path.read_bytes()
    s.path.write_bytes(whole[:size])
    with pytest.raises(StoreAway):
        uses(s)
    with pytest.raises(StoreAway):
        Store.open(s.file, s.environ, create=True)
    assert s.path.read_bytes() == whole[:size]


@pytest.mark.file("damage")
def test_a_store_truncated_under_an_open_one_is_an_error_told_as_one(tmp_path: Path) -> None:
    s = closed_store(tmp_path)
    store = Store.open(s.file, s.environ)
    os.truncate(s.path, 4096)
    with pytest.raises(StoreAway):
        read_all(store)
    with pytest.raises(StoreAway):
        write_one(store)
    store.close()


@pytest.mark.file("damage")
def test_a_damaged_page_is_told_as_damage_and_never_mended_by_guessing(tmp_path: Path) -> None:
    s = closed_store(tmp_path)
    whole = bytearray(s.path.read_bytes())
    for page in range(1, len(whole) // 4096):
        whole[page * 4096 : page * 4096 + 200] = b"\xff" * 200
    s.path.write_bytes(whole)
    with pytest.raises(StoreAway, match="damaged") as caught:
        uses(s)
    assert caught.value.hint
    assert s.path.read_bytes() == whole


def every_road(address: Place, environ: dict[str, str]) -> list[Callable[[], object]]:
    return [
        lambda: Store.find(address, environ),
        lambda: Store.open(address, environ),
        lambda: Store.open(address, environ, create=True),
        lambda: Store.open(address, environ, create=True, migrate=True),
    ]


@pytest.mark.file("damage")
@pytest.mark.parametrize("kind", ["text", "noise", "tables in wal", "our id without tables"])
def test_a_file_that_is_no_store_of_ours_is_left_byte_for_byte(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "duly.db"
    if kind == "text":
        path.write_text("dear diary\n" * 500)
    elif kind == "noise":
        path.write_bytes(os.urandom(20_000))
    else:
        with closing(sqlite3.connect(path, isolation_level=None)) as raw:
            if kind == "tables in wal":
                raw.execute("PRAGMA journal_mode=WAL")
            else:
                raw.execute(f"PRAGMA application_id={engine.APPLICATION_ID}")
            raw.execute("CREATE TABLE tasks (id TEXT, note TEXT)")
    before = path.read_bytes()
    address = Address(path=path)
    environ = {"HOME": str(tmp_path / "home")}
    for opens in every_road(address, environ):
        with pytest.raises(StoreAway, match=r"not a|left as it is"):
            opens()
    assert path.read_bytes() == before
    assert not is_remembered(address, environ), "what is not ours is not remembered as ours"


FOREIGN = {
    "tables and another's revision": [
        "CREATE TABLE tasks (id TEXT, note TEXT)",
        "CREATE TABLE alembic_version (version_num TEXT)",
        "INSERT INTO alembic_version VALUES ('4a1f')",
    ],
    "a revision without any": ["CREATE TABLE alembic_version (version_num TEXT)"],
    "our names with other columns": [
        "CREATE TABLE meta (name TEXT)",
        "CREATE TABLE alembic_version (version_num TEXT)",
        "INSERT INTO alembic_version VALUES ('0002')",
    ],
    "our names with nothing in them": [
        "CREATE TABLE meta (key TEXT, value TEXT)",
        "CREATE TABLE alembic_version (version_num TEXT)",
    ],
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_a_database_with_the_tables_of_another_program_is_left_row_for_row(tmp_path: Path, kind: str) -> None:
    place = databases.unmade(tmp_path)
    if isinstance(place, Address):
        place.path.touch()
    for text in FOREIGN[kind]:
        rows_at(place, text)
    before = dump_of(place)
    for opens in every_road(place, {"HOME": str(tmp_path / "home")}):
        with pytest.raises(StoreAway, match=r"left as (they are|it is)"):
            opens()
    assert dump_of(place) == before


@pytest.mark.file("place")
def test_looking_at_a_foreign_database_in_use_leaves_nothing_beside_it_and_breaks_nothing(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as raw:
        raw.execute("PRAGMA journal_mode=WAL")
        raw.execute("CREATE TABLE notes (text TEXT)")
        raw.execute("BEGIN IMMEDIATE")
        raw.execute("INSERT INTO notes VALUES ('mine')")
        before = {one.name: one.read_bytes() for one in tmp_path.iterdir() if not one.name.endswith("-shm")}
        for opens in every_road(Address(path=path), {"HOME": str(tmp_path / "home")}):
            with pytest.raises(StoreAway, match="not a store"):
                opens()
        after = {one.name: one.read_bytes() for one in tmp_path.iterdir() if not one.name.endswith("-shm")}
        assert after == before
        raw.execute("COMMIT")
        assert raw.execute("SELECT * FROM notes").fetchall() == [("mine",)]


@pytest.mark.file("place")
def test_a_store_has_one_run_folder_by_whatever_path_it_is_reached(tmp_path: Path) -> None:
    """Two run folders would be two places: neither holder would find the other's lock nor its keepers."""
    with scene(tmp_path) as s:
        (tmp_path / "elsewhere").mkdir()
        link = tmp_path / "elsewhere" / "link.db"
        link.symlink_to(s.path)
        other = Store.open(resolve(str(link), {}), s.environ)
        assert other.run_folder.resolve() == s.store.run_folder.resolve()
        other.close()


@pytest.mark.file("place")
def test_a_directory_a_missing_folder_and_an_unreadable_place_are_refused_in_words(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path / "home")}
    folder = tmp_path / "folder"
    folder.mkdir()
    for path, words in [(folder, "directory"), (tmp_path / "no" / "duly.db", "does not exist")]:
        for create in (False, True):
            with pytest.raises(StoreAway, match=words):
                Store.open(Address(path=path), environ, create=create)
        with pytest.raises(StoreAway, match=words):
            Store.find(Address(path=path), environ)
    assert list(folder.iterdir()) == []


# Newer stores


def set_version(s: Scene, text: str) -> None:
    s.sql("UPDATE meta SET value = ? WHERE key = 'lowest_version'", text)


def test_a_store_for_newer_versions_only_is_refused_by_every_road_and_left_as_it_is(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.store.check_version()
        set_version(s, "99.0.0")
        with pytest.raises(StoreNewer, match=r"99\.0\.0"):
            s.store.check_version()
        before = snapshot(s)
        for opens in every_road(s.address, s.environ):
            with pytest.raises(StoreNewer):
                opens()
        assert snapshot(s) == before


@pytest.mark.parametrize("text", ["0.1.0", "0.0.9", "0.1"])
def test_a_later_revision_that_still_allows_this_version_is_used_as_it_is(tmp_path: Path, text: str) -> None:
    with scene(tmp_path) as s:
        set_version(s, text)
        s.sql("UPDATE alembic_version SET version_num = '0999'")
        s.sql("ALTER TABLE runs ADD COLUMN hue TEXT")
        s.sql("CREATE TABLE later (id TEXT)")
        other = s.connect()
        s.add("one", hourly())
        s.at(NINE + HOUR)
        s.plan(other)
        (won,) = s.claim(other)
        s.settle(won, SUCCEEDED)
        assert s.faults() == []


# Remembered stores


@pytest.mark.file("vanished")
def test_stores_seen_are_remembered_once_and_only_by_those_who_may_write(tmp_path: Path) -> None:
    address = Address(path=tmp_path / "duly ☂ 1.db")
    environ = {"HOME": str(tmp_path / "home")}
    assert Store.find(address, environ) is None
    assert not is_remembered(address, environ)
    assert not (tmp_path / "home").exists(), "reading makes nothing"
    for _ in range(3):
        Store.open(address, environ, create=True).close()
    memory = tmp_path / "home" / ".local" / "state" / "duly" / "stores"
    assert memory.read_text() == f"{address.path}\n"
    assert is_remembered(address, environ)
    assert not is_remembered(Address(path=tmp_path / "duly ☂"), environ), "no part of a path is taken for it"
    moved = {"HOME": "/nowhere", "XDG_STATE_HOME": str(tmp_path / "home" / ".local" / "state")}
    assert is_remembered(address, moved)


@pytest.mark.file("vanished")
def test_a_copied_store_is_remembered_when_it_is_first_written(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        pass
    copy = Address(path=tmp_path / "copy.db")
    shutil.copy(s.path, copy.path)
    reader = Store.find(copy, s.environ)
    assert reader is not None
    reader.close()
    assert not is_remembered(copy, s.environ)
    Store.open(copy, s.environ).close()
    assert is_remembered(copy, s.environ)


def test_a_home_that_cannot_be_written_stops_no_store(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file, not a folder")
    store = Store.open(databases.unmade(tmp_path), {"HOME": str(tmp_path / "home")}, create=True)
    write_one(store)
    store.close()


@pytest.mark.file("place")
def test_a_path_with_odd_characters_is_one_file_at_its_place(tmp_path: Path) -> None:
    for name in ("a b?c#d%e.db", "ünï ☂.db", "quote'\".db", "-dash.db"):
        address = resolve(str(tmp_path / name), {})
        environ = {"HOME": str(tmp_path / "home")}
        store = Store.open(address, environ, create=True)
        write_one(store)
        assert store.another().close() is None  # type: ignore[func-returns-value]
        store.close()
        assert (tmp_path / name).exists()
        found = Store.find(address, environ)
        assert found is not None
        found.close()
