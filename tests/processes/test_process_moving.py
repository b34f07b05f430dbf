"""`move`: a store into PostgreSQL and back, row by row, cut short and gone on with, refused where it would lose."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from process_scene import Place
from server_scene import Hosts

from by_hand import rows_on_server
from duly.errors import StoreAway
from duly.operations import moving
from duly.store import Session, Store, transfer
from duly.store.address import Address
from duly.store.line import Line
from duly.store.tables import metadata

TABLES = [table.name for table in metadata.sorted_tables if table.name not in {"meta", "log_pieces"}]


def of_file(path: Path) -> dict[str, list[tuple[object, ...]]]:
    with closing(sqlite3.connect(path)) as raw:
        return {name: sorted(raw.execute(f"SELECT * FROM {name}").fetchall(), key=repr) for name in TABLES}


def columns_of(path: Path, name: str) -> str:
    with closing(sqlite3.connect(path)) as raw:
        return ", ".join(f'"{row[1]}"' for row in raw.execute(f"PRAGMA table_info({name})"))


def of_server(hosts: Hosts, like: Path) -> dict[str, list[tuple[object, ...]]]:
    return {
        name: sorted(rows_on_server(hosts.address, f"SELECT {columns_of(like, name)} FROM {name}"), key=repr)
        for name in TABLES
    }


@pytest.fixture
def lived(tmp_path: Path) -> Iterator[Place]:
    """A store in a file with a past: tasks, runs with output, a removed task, an edit, an event, an offer, a limit."""
    place = Place(tmp_path / "home")
    place.store = tmp_path / "home" / "duly.db"
    place.address = Address(path=place.store)
    place.duly("add", "日報 🦆", "--when", "manual", "--", "echo", "hällo")
    place.duly("add", "gone", "--when", "every 1h", "--", "true")
    place.duly("limit", "set", "db", "3")
    place.duly("add", "listens", "--when", "on deploy", "--limit", "db=2", "--", "true")
    place.duly("emit", "deploy", "--key", "k1", "--data", '{"a": "\\u0000"}')
    place.duly("remove", "gone", "--yes")
    place.duly("edit", "listens", "--priority", "3")
    place.duly("run", "日報 🦆")
    place.duly("serve", "--until-idle")
    yield place
    place.close()


def test_a_store_moves_into_a_database_and_back_into_a_file_with_every_row(lived: Place, hosts: Hosts) -> None:
    before = of_file(lived.store)
    run = next(one["id"] for one in lived.json("runs")["items"] if one["task_name"] == "日報 🦆")
    told = lived.json("move", "--to", hosts.address.url, "--yes")
    assert told["to"] == hosts.address.url
    assert told["rows"] == sum(told["tables"].values()) > 10
    assert of_server(hosts, lived.store) == before
    left = lived.duly("list", check=False)
    assert (left.returncode, "was moved to" in left.stderr) == (5, True)
    there = hosts.host("there")
    assert there.duly("log", run).stdout == "hällo\n"
    assert there.duly("verify").stdout.strip().endswith("hold on this store")
    there.duly("run", "日報 🦆")
    there.duly("serve", "--until-idle")
    newest = max(seq for (seq,) in there.rows("SELECT seq FROM ledger"))
    assert newest > max(row[0] for row in before["ledger"] if isinstance(row[0], int)), "its numbers went on"
    back = there.home / "back.db"
    there.json("move", "--to", str(back), "--yes")
    assert there.duly("list", check=False).returncode == 5
    again = Place(there.home / "again")
    again.store = back
    assert again.duly("log", run).stdout == "hällo\n"
    assert len(again.json("runs")["items"]) == 3
    assert again.duly("verify").stdout.strip().endswith("hold on this store")
    again.close()


def test_a_move_that_was_cut_short_goes_on_and_ends_with_the_store_as_it_is_then(
    lived: Place, hosts: Hosts, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = transfer.Rows.put
    calls = []

    def cut(self: transfer.Rows, line: Line, rows: list[transfer.Row]) -> None:
        calls.append(self.table.name)
        if len(calls) == 4:
            raise StoreAway("the road is cut")
        whole(self, line, rows)

    monkeypatch.setattr(transfer.Rows, "put", cut)
    with pytest.raises(StoreAway, match="cut"):
        moving.move(lived.address, hosts.address, lived.env, tell=lambda *_told: None)
    monkeypatch.undo()
    lived.duly("edit", "listens", "--priority", "7")  # the old store is still the one that counts
    before = of_file(lived.store)
    done = moving.move(lived.address, hosts.address, lived.env, tell=lambda *_told: None)
    assert of_server(hosts, lived.store) == before
    assert 0 < done.written < sum(done.rows.values()), "what was there was not written again"


def test_what_differs_at_the_new_place_is_found_before_the_old_store_is_left(
    lived: Place, hosts: Hosts, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = moving._compare

    def spoilt(session: Session, new: Store) -> dict[str, int]:
        with psycopg.connect(hosts.address.url, autocommit=True) as raw:
            raw.execute("UPDATE ledger SET at_us = at_us + 1 WHERE seq = 2")
        return whole(session, new)

    monkeypatch.setattr(moving, "_compare", spoilt)
    with pytest.raises(StoreAway, match="ledger is not the same"):
        moving.move(lived.address, hosts.address, lived.env, tell=lambda *_told: None)
    assert lived.duly("list").returncode == 0


def test_a_store_that_is_served_or_holds_runs_or_would_cover_another_is_not_moved(lived: Place, hosts: Hosts) -> None:
    other = hosts.host("other")
    other.duly("add", "own", "--when", "manual", "--", "true")
    taken = lived.duly("move", "--to", hosts.address.url, "--yes", check=False)
    assert (taken.returncode, "there is a store at" in taken.stderr) == (3, True)
    assert [row["name"] for row in other.json("list")["items"]] == ["own"]
    free = str(lived.home / "free.db")
    itself = lived.duly("move", "--to", str(lived.store), "--yes", check=False)
    assert (itself.returncode, "itself" in itself.stderr) == (3, True)
    unasked = lived.duly("move", "--to", free, check=False)
    assert (unasked.returncode, "--yes" in unasked.stderr) == (3, True)
    server = lived.serve()
    served = lived.duly("move", "--to", free, "--yes", check=False)
    assert (served.returncode, "serves the store" in served.stderr) == (3, True)
    server.kill()
    server.wait()
    assert lived.duly("move", "--to", "/no/such/folder/x.db", "--yes", check=False).returncode == 5
    assert lived.duly("list").returncode == 0
