"""The table of guards is true: each stands in the source word for word, and the tests that it names are there."""

import ast
from functools import cache

import pytest
from without import ROOT, SOURCE, guards, taken_away

GUARDS = {guard.name: guard for guard in guards()}


def test_there_are_guards_of_every_promise_and_each_is_named_once() -> None:
    assert len(GUARDS) == len(guards()) >= 45
    assert {guard.promise for guard in GUARDS.values()} == {"P1", "P2", "P4", "P5", "P6", "P7", "P8"}


@pytest.mark.parametrize("name", GUARDS)
def test_a_guard_stands_where_the_table_says_and_its_tests_are_there(name: str) -> None:
    guard = GUARDS[name]
    changed = taken_away(guard)
    ast.parse(changed)
    assert changed != (SOURCE / guard.file).read_text()
    assert guard.red
    for test in guard.red:
        file, _, function = test.partition("::")
        assert function in named_in(file), test


@cache
def named_in(file: str) -> set[str]:
    return {node.name for node in ast.parse((ROOT / file).read_text()).body if isinstance(node, ast.FunctionDef)}
