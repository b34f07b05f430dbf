"""The page docs/incidents.md, written from the table beside it: `python tests/incidents/page.py`."""

import ast
import re
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parents[1]
PAGE = TESTS.parent / "docs" / "incidents.md"
TABLE = Path(__file__).with_name("incidents.toml")
LEAST = 3
"""Inputs of one kind: that of the record, and two others."""
DRAWN = 100
BY_HAND = re.compile(r" x(\d+)$")
AREAS = {
    "time": "Time",
    "claims": "Claims, crashes, leases, restarts",
    "runners": "Runners",
    "storage": "The store",
    "ui-api": "What people write and see",
}
HEAD = """\
# Incidents: what goes wrong in schedulers, and the tests of its kind

Public reports of faults in schedulers were collected into 63 records, each led by one report and backed by others of
the same kind. Every kind of what is built has tests here, with the report's own input and at least two others. This
page is written from `tests/incidents/incidents.toml` by `make incidents`; a test fails where it is older than that,
where a test it names is gone, or where a kind has fewer than three inputs.

Inputs are counted from the parameters of a test; a test that draws its inputs counts as 100, and one whose inputs
stand inside of it as one, unless the table says how many there are.
"""


def records() -> list[dict[str, Any]]:
    """Read the table."""
    found: list[dict[str, Any]] = tomllib.loads(TABLE.read_text())["record"]
    return found


def inputs(test: str) -> int:
    """How many inputs a test has; KeyError where there is no such test."""
    by_hand = BY_HAND.search(test)
    file, _, name = BY_HAND.sub("", test).partition("::")
    counted = _inputs_of(file)[name]
    return int(by_hand[1]) if by_hand else counted


def page() -> str:
    """Write the page."""
    lines = [HEAD]
    every = records()
    for area, title in AREAS.items():
        lines += [f"## {title}", "", "| record | what went wrong | tests | inputs |", "| --- | --- | --- | --- |"]
        for one in every:
            if one["area"] == area:
                tests = [BY_HAND.sub("", test) for test in one["tests"]]
                told = [f"`{file}`: {_words(name)}" for file, _, name in (test.partition("::") for test in tests)]
                if "not_built" in one:
                    told.append(f"*{one['not_built']}*")
                number = sum(inputs(test) for test in one["tests"])
                lines.append(f"| {one['id']} | {one['kind']} | {' · '.join(told)} | {number or 'none yet'} |")
        lines.append("")
    return "\n".join(lines)


def _words(name: str) -> str:
    return re.sub(r"^test_(b\d\d_(and_b\d\d_)?)?", "", name).replace("_", " ")


@cache
def _inputs_of(file: str) -> Mapping[str, int]:
    tree = ast.parse((TESTS / file).read_text())
    values: dict[str, ast.expr | None] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign):
            values |= {to.id: node.value for to in node.targets if isinstance(to, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            values[node.target.id] = node.value
    return {
        node.name: _product(node.decorator_list, values)
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def _product(decorators: list[ast.expr], values: Mapping[str, ast.expr | None]) -> int:
    total = 1
    for one in decorators:
        if isinstance(one, ast.Call):
            called = ast.unparse(one.func)
            if called == "pytest.mark.parametrize":
                total *= _length(one.args[1], values)
            elif called == "given":
                total *= DRAWN
    return total


def _length(node: ast.expr | None, values: Mapping[str, ast.expr | None]) -> int:
    if isinstance(node, ast.Name):
        node = values.get(node.id)
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        return len(node.elts)
    if isinstance(node, ast.Dict):
        return len(node.keys)
    if (
        isinstance(node, ast.Call)
        and ast.unparse(node.func) == "range"
        and all(isinstance(one, ast.Constant) for one in node.args)
    ):
        return len(range(*[ast.literal_eval(one) for one in node.args]))
    return 1  # what cannot be counted here is one, until the table says otherwise


if __name__ == "__main__":
    PAGE.write_text(page())
