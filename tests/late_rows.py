"""The rows of `late_table.csv`: what becomes of late work on every road, written down from the table, not from a run.

`lateness` counts from the due instant with its share of the spread; `older` occurrences were missed before the one that
the row judges, one every `distance`; `real`: the row is also tried with real processes.
"""

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import groupby
from pathlib import Path
from typing import Any

UNITS = {"d": 86_400_000_000, "h": 3_600_000_000, "m": 60_000_000, "s": 1_000_000, "us": 1}
COUNTS = ("at_most", "times")


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    road: str
    on_missed: str
    rules: Mapping[str, Any]
    until_newest: bool
    distance: timedelta | None
    older: int
    lateness: timedelta
    more: Mapping[str, str]
    fate: str
    reason: str
    older_fates: str
    real: bool
    title: str


def rows() -> list[Row]:
    with Path(__file__).with_name("late_table.csv").open(newline="") as file:
        return [_row(number, line) for number, line in enumerate(csv.DictReader(file), 2)]


def span(text: str) -> timedelta:
    """A span such as `6h+1us` or `-1s`."""
    sign = -1 if text.startswith("-") else 1
    parts = text.removeprefix("-").split("+")
    found = [re.fullmatch(r"(\d+)(us|[dhms])", part) for part in parts]
    assert all(found), text
    return sign * timedelta(microseconds=sum(int(one[1]) * UNITS[one[2]] for one in found if one))


def counted(fates: Sequence[str]) -> str:
    """Fates in a row, as the table writes them: `3 stale, 1 catch_up`."""
    return ", ".join(f"{len(list(same))} {fate}" for fate, same in groupby(fates))


def _row(number: int, line: Mapping[str, str]) -> Row:
    rules: dict[str, Any] = {"on_missed": line["on_missed"]}
    given = _pairs(line["rules"])
    for name, value in given.items():
        if name != "until":
            rules[name] = int(value) if name in COUNTS else span(value)
    return Row(
        road=line["road"],
        on_missed=line["on_missed"],
        rules=rules,
        until_newest=given.get("until") == "newest",
        distance=None if line["distance"] == "none" else span(line["distance"]),
        older=int(line["older"]),
        lateness=span(line["lateness"]),
        more=_pairs(line["more"]),
        fate=line["fate"],
        reason=line["reason"],
        older_fates=line["older_fates"],
        real=line["real"] == "yes",
        title=f"{number} {line['road']} {line['on_missed']} {line['rules']} {line['lateness']} {line['more']}".strip(),
    )


def _pairs(text: str) -> dict[str, str]:
    return dict(pair.split("=", 1) for pair in text.split())
