"""Reads what mutmut kept of its changes: what became of each, and which lines it makes another."""

import difflib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

MISSED, UNTESTED = 0, 33
"""The exit codes by which mutmut keeps that no test noticed a change, and that none reached it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Survivor:
    """A change that no test noticed: its name, where it is, and the lines that it makes another."""

    name: str
    module: str
    function: str
    before: str
    after: str
    reached: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What became of the changes of one module; `open` were not asked about yet."""

    module: str
    changes: int
    open: int
    untested: int
    survivors: tuple[Survivor, ...]


def measured(core: Path, module: str) -> Measured:
    """Give what was kept of one module, in the folder of the changed modules."""
    path = core / f"{module}.py.meta"
    codes: dict[str, int | None] = json.loads(path.read_text())["exit_code_by_key"] if path.exists() else {}
    left = [name for name, code in codes.items() if code in (MISSED, UNTESTED)]
    return Measured(
        module=module,
        changes=len(codes),
        open=sum(code is None for code in codes.values()),
        untested=sum(code == UNTESTED for code in codes.values()),
        survivors=tuple(_survivor(core, module, name, codes[name] != UNTESTED) for name in left),
    )


def _survivor(core: Path, module: str, name: str, reached: bool) -> Survivor:
    changed = name.rpartition(".")[2]
    mangled = changed.partition("__mutmut_")[0]
    spans = json.loads((core / f"{module}.py.spans").read_text())["spans"]
    lines = (core / f"{module}.py").read_text().split("\n")
    before, after = (_lines(lines, spans[one]) for one in (f"{mangled}__mutmut_orig", changed))
    diff = list(difflib.ndiff(before, after))
    return Survivor(
        name=name,
        module=module,
        function=mangled.removeprefix("x_").removeprefix("xǁ").replace("ǁ", "."),
        before=_joined(diff, "- "),
        after=_joined(diff, "+ "),
        reached=reached,
    )


def _lines(lines: Sequence[str], span: Sequence[int]) -> list[str]:
    """The lines of one function after its name and before its end."""
    start, end = span
    return [line for line in lines[start - 1 : end] if "__mutmut_" not in line]


def _joined(diff: Sequence[str], mark: str) -> str:
    return " ".join(line[2:].strip() for line in diff if line.startswith(mark))
