"""docs/mutants.md, written from what the tool kept: a score for each module, and every survivor with its reason.

A reason is of a kind, in `reasons.toml`: which functions, which changes, and why no test of the core notices them. What
no kind takes is listed as not explained.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import takewhile
from pathlib import Path

from mutants_kept import Measured, Survivor

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "mutants.md"
KINDS = Path(__file__).with_name("reasons.toml")
UNEXPLAINED = "Not explained"
UNEXPLAINED_WHY = """
Nobody has looked at these one by one yet. Some are left only because what would notice them lies beyond the half
second, or was written after they were asked about.
"""
CONTEXT = 24
"""Characters of a line that are shown before and after what is another in it."""
INTRODUCTION = """\
# Changes to the core that its tests do not notice

`make mutants` (`make mutants MODULES="lateness limits"` for some modules) changes `core/` in small ways, one at a time,
with mutmut {tool}, and asks of each change those tests of {folders}
that reach the changed function: first those that reach least else, as many as together last half a second, then those
of what people are told, until one notices. No database is asked and no process started, and tests that draw inputs
draw ten of them. What `tests/store`, the walks and the screens notice besides is not counted. Constants of modules are
out of the tool's reach: it changes functions only.

`make mutants` for the whole core writes this page; `tests/mutants/reasons.toml` says why survivors are left.

## What was measured

{when}: **{noticed:,} of {all:,} changes noticed, {score:.1%}**.

| module | changes | noticed | score | reached by no test | not asked about |
| --- | --- | --- | --- | --- | --- |
"""


def written(measured: Sequence[Measured], folders: Sequence[str]) -> str:
    """Give the whole page."""
    changes = sum(one.changes - one.open for one in measured)
    left = sum(len(one.survivors) for one in measured)
    told = INTRODUCTION.format(
        when=datetime.now(UTC).date(),
        tool=version("mutmut"),
        folders=", ".join(f"`{name}`" for name in folders),
        noticed=changes - left,
        all=changes,
        score=(changes - left) / changes,
    )
    rows = [_row(one) for one in sorted(measured, key=lambda one: one.module) if one.changes]
    survivors = [survivor for one in measured for survivor in one.survivors]
    return told + "\n".join(rows) + "\n\n## Survivors, by why they are left\n" + _explained(survivors)


def _row(one: Measured) -> str:
    asked = one.changes - one.open
    noticed = asked - len(one.survivors)
    score = f"{noticed / asked:.0%}" if asked else "–"
    return f"| `{one.module}` | {one.changes} | {noticed} | {score} | {one.untested} | {one.open} |"


def _explained(survivors: Sequence[Survivor]) -> str:
    kinds = tomllib.loads(KINDS.read_text(encoding="utf-8"))["kind"]
    names = [kind["name"] for kind in kinds] + [UNEXPLAINED]
    of: dict[str, list[Survivor]] = {name: [] for name in names}
    for survivor in survivors:
        found = next((kind["name"] for kind in kinds if _is_of(kind, survivor)), UNEXPLAINED)
        of[found].append(survivor)
    whys = {kind["name"]: kind["why"] for kind in kinds} | {UNEXPLAINED: UNEXPLAINED_WHY}
    return "".join(_kind(name, whys[name], of[name]) for name in names if of[name])


def _is_of(kind: Mapping[str, str], survivor: Survivor) -> bool:
    where = f"{survivor.module}.{survivor.function}"
    change = f"{survivor.before} → {survivor.after}"
    return bool(re.fullmatch(kind.get("where", ".*"), where)) and bool(re.search(kind.get("change", ""), change))


def _kind(name: str, why: str, survivors: Sequence[Survivor]) -> str:
    lines = [f"\n### {name} ({len(survivors)})\n", why.strip(), "", "| where | change |", "| --- | --- |"]
    seen: dict[tuple[str, str], int] = {}
    for one in survivors:
        before, after = _parted(one.before, one.after)
        change = (
            f"`{_cell(before)}` → `{_cell(after)}`" if one.after else f"without `{_cell(one.before[: CONTEXT * 4])}`"
        )
        place = f"`{one.module}.{one.function}`{'' if one.reached else ' (reached by no test)'}"
        seen[place, change] = seen.get((place, change), 0) + 1
    lines += [f"| {place} | {change}{f' ({n} times)' if n > 1 else ''} |" for (place, change), n in seen.items()]
    return "\n".join(lines) + "\n"


def _parted(before: str, after: str) -> tuple[str, str]:
    """Leave of two lines what is not the same in both, with a little around it."""
    start = _common(before, after)
    rest = _common(before[start:][::-1], after[start:][::-1])
    low = max(0, start - CONTEXT)
    shown = (f"{text[low : len(text) - rest]}{text[len(text) - rest :][:CONTEXT]}" for text in (before, after))
    one, other = (f"{'…' if low else ''}{text}{'…' if rest > CONTEXT else ''}" for text in shown)
    return one, other


def _common(one: str, other: str) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("`", "'")
