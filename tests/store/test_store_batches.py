"""The texts of batches: repeated from one row, they are what SQLAlchemy would have written; constants stand in them."""

import importlib
import pkgutil
from typing import Any

import pytest
from sqlalchemy.dialects import postgresql, sqlite

import duly.store
from duly.store.sql import REGISTERED, SIZES, Batch, Statement, compiled

for _module in pkgutil.walk_packages(duly.store.__path__, "duly.store."):
    if ".migrations" not in _module.name:
        importlib.import_module(_module.name)

LITE = sqlite.dialect()
BATCHES = [one for one in REGISTERED if isinstance(one, Batch)]


@pytest.mark.parametrize("number", range(len(BATCHES)))
def test_a_batch_repeated_from_one_row_is_what_would_have_been_compiled(number: int) -> None:
    batch = BATCHES[number]
    for size in SIZES:
        whole = compiled(batch.build(size), LITE)
        assert (batch.on(LITE, size).text, batch.on(LITE, size).order) == (whole.text, whole.order)


def test_conditions_of_partial_indexes_are_constants_in_the_text() -> None:
    from duly.store import runs, waiting

    for statement in (waiting.CLAIMABLE, waiting.PROJECTS, waiting.BLOCKED, runs.NOT_BEFORE):
        assert "runs.state = 'waiting'" in statement.on(LITE).text
    assert "runs.state = 'held'" in runs.HELD_BY.on(LITE).text


def test_what_is_given_by_name_stays_a_parameter() -> None:
    for statement in REGISTERED:
        if isinstance(statement, Statement):
            lite = statement.on(LITE)
            assert lite.text.count("?") == len(lite.order)
            made: Any = statement.write().compile(dialect=postgresql.dialect())  # type: ignore[no-untyped-call]
            assert set(lite.order) == {name for name, one in made.binds.items() if one.required}
