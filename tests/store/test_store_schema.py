"""The schema, and every statement of the store, for both databases."""

import importlib
import pkgutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import Column, Connection, Engine, create_engine, inspect
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects import sqlite as sqlite_dialect
from sqlalchemy.engine import Dialect
from store_scene import scene

import duly.store
from by_hand import plan_of
from duly.store import indexes, tables
from duly.store.address import Address
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


def test_every_statement_is_one_that_the_database_can_prepare_over_the_production_schema(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        for written in WRITTEN:
            plan_of(s.store._line, written)


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
def migrated(tmp_path: Path) -> Iterator[Engine]:
    """A database that was made by the migrations."""
    with scene(tmp_path) as s:
        place = s.address
    if isinstance(place, Address):
        made = create_engine(f"sqlite:///{place.path}")
    else:
        made = create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(place.url))
    yield made
    made.dispose()


def columns_of(connection: Connection, table: str) -> dict[str, tuple[str, bool]]:
    return {
        one["name"]: (one["type"].compile(connection.dialect).upper(), bool(one["nullable"]))
        for one in inspect(connection).get_columns(table)
    }


def declared(column: Column[object], dialect: Dialect) -> tuple[str, bool]:
    type_ = column.type.compile(dialect).upper()
    return type_ + ' COLLATE "C"' * (dialect.name == "postgresql" and type_ == "TEXT"), bool(column.nullable)


def test_the_migrated_schema_has_the_declared_tables_and_columns(migrated: Engine) -> None:
    with migrated.connect() as connection:
        names = set(inspect(connection).get_table_names()) - {"alembic_version"}
        assert names == set(tables.metadata.tables)
        for name, table in tables.metadata.tables.items():
            wanted = {column.name: declared(column, connection.dialect) for column in table.columns}
            assert columns_of(connection, name) == wanted, name
            assert list(columns_of(connection, name)) == [column.name for column in table.columns], "in this order"
            keys = inspect(connection).get_pk_constraint(name)["constrained_columns"]
            assert keys == [column.name for column in table.primary_key.columns], name


def test_the_migrated_schema_has_the_declared_indexes_with_their_conditions(migrated: Engine, tmp_path: Path) -> None:
    """A server writes conditions in its own words: what it makes of what is declared is what it must have."""
    with migrated.connect() as connection:
        found = indexes_in(connection)
        for index in indexes.ALL:
            index.drop(connection)
            index.create(connection)
        assert indexes_in(connection) == found
        assert {name for name, _ in found} == {index.name for index in indexes.ALL}
        connection.rollback()


def indexes_in(connection: Connection) -> set[tuple[str, str]]:
    ask = (
        "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"
        if connection.dialect.name == "sqlite"
        else "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = current_schema()"
        " AND indexname NOT IN (SELECT conname FROM pg_constraint)"
    )
    return {(str(name), " ".join(text.split())) for name, text in connection.exec_driver_sql(ask)}


def test_both_databases_are_given_the_same_conditions_on_indexes() -> None:
    from sqlalchemy.schema import CreateIndex

    for index in indexes.ALL:
        lite = str(CreateIndex(index).compile(dialect=LITE)).partition("WHERE")[2].strip()
        postgres = str(CreateIndex(index).compile(dialect=POSTGRES)).partition("WHERE")[2].strip()
        assert lite == postgres, index.name


def test_numbers_of_the_ledger_are_never_given_twice(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        for _ in range(3):
            s.sql("INSERT INTO ledger (at_us, kind) VALUES (0, 'defined')")
        s.sql("DELETE FROM ledger")
        s.sql("INSERT INTO ledger (at_us, kind) VALUES (0, 'defined')")
        assert s.sql("SELECT seq FROM ledger") == [(4,)]
