"""The late table as rows of a file: each says, for one road to a start, what becomes of a run so late and why.

`lateness` is counted from the due instant with its spread, `worked` is how long earlier attempts worked, `period` the
distance to the next occurrence. The rows were written from the law, not from what the code answers.
"""

import csv
import re
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

UNITS = {
    "us": timedelta(microseconds=1),
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    number: int
    road: str
    policy: str
    period: timedelta | None
    grace: timedelta | None
    max_age: timedelta
    spread: timedelta
    worked: timedelta
    lateness: timedelta
    fate: str
    reason: str | None
    processes: bool

    def __str__(self) -> str:
        return f"{self.number}-{self.road}-{self.policy}"


def rows() -> list[Row]:
    with (Path(__file__).parent / "late_table.csv").open(newline="") as file:
        return [_row(number, cells) for number, cells in enumerate(csv.DictReader(file), start=2)]


def _row(number: int, cells: dict[str, str]) -> Row:
    return Row(
        number=number,
        road=cells["road"],
        policy=cells["policy"],
        period=None if cells["period"] == "once" else span(cells["period"]),
        grace=None if cells["grace"] == "default" else span(cells["grace"]),
        max_age=span(cells["max_age"]),
        spread=span(cells["spread"]),
        worked=span(cells["worked"]),
        lateness=span(cells["lateness"]),
        fate=cells["fate"],
        reason=cells["reason"] or None,
        processes=cells["processes"] == "yes",
    )


def span(text: str) -> timedelta:
    """Read `6h+1us` or `60s-1us`."""
    total = timedelta(0)
    for sign, number, unit in re.findall(r"([+-]?)(\d+)(us|[smhd])", text):
        total += int(number) * UNITS[unit] * (-1 if sign == "-" else 1)
    assert "".join("".join(part) for part in re.findall(r"([+-]?)(\d+)(us|[smhd])", text)) == text, text
    return total
