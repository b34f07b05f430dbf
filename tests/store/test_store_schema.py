"""The schema, and every statement of the store, for both databases."""

import importlib
import pkgutil
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import Column, Connection, create_engine, inspect
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects import sqlite as sqlite_dialect
from sqlalchemy.engine import Dialect
from store_scene import scene

import databases
import duly.store
from duly.store import indexes, tables
from duly.store.sql import REGISTERED, SIZES, Batch, Statement, cut

LITE = sqlite_dialect.dialect()
POSTGRES = postgresql.dialect()  # type: ignore[no-untyped-call]


def all_written() -> Sequence[Statement | Batch]:
    for module in pkgutil.walk_packages(duly.store.__path__, "duly.store."):
        if ".migrations" not in module.name:
            importlib.import_module(module.name)
    return REGISTERED


WRITTEN = all_written()


@pytest.mark.parametrize("number", range(len(WRITTEN)))
@pytest.mark.parametrize("dialect", [LITE, POSTGRES], ids=["sqlite", "postgresql"])
def test_every_statement_compiles_for_both_databases_without_anything_left_to_fill_in(
    number: int, dialect: Dialect
) -> None:
    written = WRITTEN[number]
    texts = (
        [written.on(dialect, size).text for size in SIZES] if isinstance(written, Batch) else [written.on(dialect).text]
    )
    for text in texts:
        assert "POSTCOMPILE" not in text
        assert "__[" not in text


def test_there_are_statements_to_look_at() -> None:
    assert len(WRITTEN) > 60
    assert sum(isinstance(one, Batch) for one in WRITTEN) >= 10


@pytest.mark.file
def test_every_statement_is_one_that_sqlite_can_prepare_over_the_production_schema(tmp_path: Path) -> None:
    with scene(tmp_path) as s, closing(sqlite3.connect(s.path)) as raw:
        for written in WRITTEN:
            compiled = [written.on(LITE, size) for size in SIZES] if isinstance(written, Batch) else [written.on(LITE)]
            for one in compiled:
                raw.execute(f"EXPLAIN {one.text}", [None] * len(one.order)).fetchall()


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5, 15, 16, 17, 63, 64, 65, 84, 85, 127, 128, 200, 1000])
def test_rows_are_cut_into_the_fixed_sizes_and_none_is_lost(count: int) -> None:
    sizes = list(cut(count))
    assert sum(sizes) == count
    assert sizes == sorted(sizes, reverse=True)
    assert set(sizes) <= set(SIZES)


def test_a_batch_binds_no_more_values_than_the_oldest_sqlite_takes() -> None:
    for written in WRITTEN:
        if isinstance(written, Batch):
            assert len(written.on(LITE, SIZES[0]).order) <= 32_766, written.columns


@pytest.fixture
def migrated(tmp_path: Path) -> Path:
    path = tmp_path / "migrated.db"
    path.write_bytes(databases.blank())
    return path


def columns_of(connection: Connection, table: str) -> dict[str, tuple[str, bool]]:
    return {
        one["name"]: (str(one["type"]).upper(), bool(one["nullable"])) for one in inspect(connection).get_columns(table)
    }


def declared(column: Column[object]) -> tuple[str, bool]:
    return str(column.type.compile(LITE)).upper(), bool(column.nullable)


def test_the_migrated_schema_has_the_declared_tables_and_columns(migrated: Path) -> None:
    engine = create_engine(f"sqlite:///{migrated}")
    with engine.connect() as connection:
        names = set(inspect(connection).get_table_names()) - {"alembic_version"}
        assert names == set(tables.metadata.tables)
        for name, table in tables.metadata.tables.items():
            assert columns_of(connection, name) == {column.name: declared(column) for column in table.columns}, name
            assert list(columns_of(connection, name)) == [column.name for column in table.columns], "in this order"
            keys = inspect(connection).get_pk_constraint(name)["constrained_columns"]
            assert keys == [column.name for column in table.primary_key.columns], name
    engine.dispose()


def test_the_migrated_schema_has_the_declared_indexes_with_their_conditions(migrated: Path) -> None:
    with closing(sqlite3.connect(migrated)) as raw:
        found = dict(raw.execute("SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"))
    from sqlalchemy.schema import CreateIndex

    wanted = {str(index.name): str(CreateIndex(index).compile(dialect=LITE)) for index in indexes.ALL}

    def plain(text: str) -> str:
        return " ".join(text.split()).replace("( ", "(").lower()

    assert {name: plain(text) for name, text in found.items()} == {name: plain(text) for name, text in wanted.items()}


def test_both_databases_are_given_the_same_conditions_on_indexes() -> None:
    from sqlalchemy.schema import CreateIndex

    for index in indexes.ALL:
        lite = str(CreateIndex(index).compile(dialect=LITE)).partition("WHERE")[2].strip()
        postgres = str(CreateIndex(index).compile(dialect=POSTGRES)).partition("WHERE")[2].strip()
        assert lite == postgres, index.name


def test_numbers_of_the_ledger_are_never_given_twice(migrated: Path) -> None:
    with closing(sqlite3.connect(migrated, isolation_level=None)) as raw:
        for _ in range(3):
            raw.execute("INSERT INTO ledger (at_us, kind) VALUES (0, 'defined')")
        raw.execute("DELETE FROM ledger")
        raw.execute("INSERT INTO ledger (at_us, kind) VALUES (0, 'defined')")
        assert raw.execute("SELECT seq FROM ledger").fetchall() == [(4,)]
