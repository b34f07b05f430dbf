"""The page of survivors agrees with itself: its rows are modules of the core, and the sums are the rows'."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "mutants.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| `(\w+)` \| (\d+) \| (\d+) \| (\d+ %|\d+%|–) \| (\d+) \| (\d+) \|$", PAGE, re.MULTILINE)


def test_every_row_is_of_a_module_of_the_core() -> None:
    modules = {path.stem for path in (ROOT / "src/duly/core").glob("*.py")}
    assert len(ROWS) > 30
    assert {row[0] for row in ROWS} - modules == set()


def test_the_score_of_the_whole_is_that_of_its_rows() -> None:
    found = re.search(r"\*\*([\d,]+) of ([\d,]+) changes noticed, ([\d.]+)%\*\*", PAGE)
    assert found is not None
    noticed, asked = (int(text.replace(",", "")) for text in found.groups()[:2])
    assert noticed == sum(int(row[2]) for row in ROWS)
    assert asked == sum(int(row[1]) - int(row[5]) for row in ROWS)
    assert float(found[3]) == round(100 * noticed / asked, 1)


def test_every_survivor_is_listed_under_a_reason() -> None:
    noticed, asked = sum(int(row[2]) for row in ROWS), sum(int(row[1]) - int(row[5]) for row in ROWS)
    kinds = [int(number) for number in re.findall(r"^### .* \((\d+)\)$", PAGE, re.MULTILINE)]
    assert sum(kinds) == asked - noticed
    listed = re.findall(r"^\| `\w+\.[\w.]+`.* \|$", PAGE, re.MULTILINE)
    times = [re.search(r"\((\d+) times\) \|$", line) for line in listed]
    assert sum(int(one[1]) if one else 1 for one in times) == asked - noticed
