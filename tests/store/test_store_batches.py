"""The texts of batches: repeated from one row, they are what SQLAlchemy would have written; constants stand in them."""

import importlib
import pkgutil
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.sql.elements import CompilerElement
from store_scene import scene

import duly.store
from duly.store.sql import REGISTERED, SIZES, Batch, Statement, compiled, rows_of

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


def test_what_every_run_goes_through_is_compiled_before_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[Batch] = []
    for batch in BATCHES:
        monkeypatch.setattr(batch, "_compiled", {})
        monkeypatch.setattr(batch, "_arrays", None)
        monkeypatch.setattr(batch, "build", partial(_noted, written, batch, batch.build))
    with scene(tmp_path) as s:
        s.store.prepare()
        assert written, "it is not compiled yet"
        written.clear()
        won = s.held()
        s.settle(won)
        assert s.run(won.run.id).outcome == "succeeded"
    assert written == []


def _noted(written: list[Batch], batch: Batch, build: Any, size: int) -> CompilerElement:
    written.append(batch)
    made: CompilerElement = build(size)
    return made


TOLD_APART = [
    "",
    "NULL",
    "null",
    '"',
    "\\",
    '\\"',
    "{a,b}",
    "a,b",
    " x ",
    "é✓😀",
    "\n\t",
    "'",
    "\\N",
    "%s",
    "$1",
    "a\\",
]


@pytest.mark.parametrize("texts", [TOLD_APART, [None, *TOLD_APART, None], [None], [None, None]])
@pytest.mark.parametrize("numbers", [[0, -5, 2**62], [None, 7], [None]])
def test_cells_of_a_batch_come_back_as_they_were(
    tmp_path: Path, texts: list[str | None], numbers: list[int | None]
) -> None:
    def build(size: int) -> CompilerElement:
        v = rows_of(size, {"place": int, "number": int, "text": str})
        return select(v.c.place, v.c.number, v.c.text).order_by(v.c.place)

    rows = [(place, numbers[place % len(numbers)], text) for place, text in enumerate(texts)]
    with scene(tmp_path) as s, s.store.read() as session:
        assert sorted(session.line.many(Batch(build, ("place", "number", "text")), rows)) == rows
