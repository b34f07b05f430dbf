"""The house reads itself: sizes, docstrings, words, and pages that must stay true."""

import ast
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "duly"
FILE_LINES = 400
FUNCTION_LINES = 60
CORE_FUNCTION_LINES = 40
NOT_IN_CODE = ("worker", "misfire", "helper", "util", "utils", "manager", "handler")
"""Words that mean several things in this field (a signal's handler is the signal module's own word)."""
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")


def sources() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def tracked(*patterns: str) -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "--", *patterns], cwd=ROOT, capture_output=True, text=True, check=False)
    return [ROOT / line for line in listed.stdout.splitlines() if (ROOT / line).is_file()]


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_file_of_the_house_fits_its_room(path: Path) -> None:
    lines = path.read_text().count("\n")
    assert lines <= FILE_LINES, f"{lines} lines"
    most = CORE_FUNCTION_LINES if path.is_relative_to(SOURCE / "core") else FUNCTION_LINES
    long = [
        f"{node.name} has {(node.end_lineno or 0) - node.lineno + 1} lines"
        for node in functions(path)
        if (node.end_lineno or 0) - node.lineno + 1 > most
    ]
    # A revision of the schema is a list of columns, written once and never changed.
    assert long == [] or path.is_relative_to(SOURCE / "store" / "migrations")


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_file_says_what_it_is_for_and_leaves_nothing_unfinished(path: Path) -> None:
    text = path.read_text()
    assert ast.get_docstring(ast.parse(text)), "no docstring"
    assert UNFINISHED.findall(text) == []


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_names_use_the_words_of_the_house(path: Path) -> None:
    tree = ast.parse(path.read_text())
    names = {path.stem} | {
        node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef)
    }
    wrong = {name for name in names for word in NOT_IN_CODE if word in re.split(r"_|(?<=[a-z])(?=[A-Z])", name.lower())}
    assert wrong == set()


def test_every_test_is_titled_as_a_sentence() -> None:
    titles = [
        node.name
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        for node in functions(path)
        if node.name.startswith("test_")
    ]
    assert len(titles) > 100
    assert [title for title in titles if title.count("_") < 3] == []


def test_the_map_of_the_house_names_every_room_and_no_room_that_is_not_there() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    rooms = {str(path.relative_to(SOURCE)) for path in sources() if path.name != "__init__.py"}
    named = set(re.findall(r"`((?:[a-z_0-9]+/)*[a-z_0-9]+\.py)`", page))
    assert rooms - named == set(), "not on the map"
    assert named - rooms == set(), "on the map, and not there"


def test_the_page_of_dependencies_names_each_one_and_no_other() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"]]
    for name, extra in project["optional-dependencies"].items():
        wanted += extra if name != "all" else []
    names = {re.match(r"[A-Za-z0-9.-]+", one).group().lower() for one in wanted}  # type: ignore[union-attr]
    page = (ROOT / "docs" / "dependencies.md").read_text()
    told = {name.lower() for name in re.findall(r"^\| `([A-Za-z0-9.-]+)", page, re.MULTILINE)}
    assert told == names


def test_locks_hold_hashes_and_no_address() -> None:
    locks = tracked("*.lock")
    assert locks
    for lock in locks:
        text = lock.read_text()
        assert "://" not in text
        assert "--hash=sha256:" in text


def test_no_page_or_code_names_a_machines_path_or_a_registrys_host() -> None:
    wrong = re.compile(r"/(?:work|root|home/[a-z]+)/|pypi\.org|pythonhosted|npmjs|registry\.(?:npm|yarn)")
    for path in tracked("*.py", "*.md", "*.toml", "Makefile", ".ci/*"):
        if path == Path(__file__):
            continue
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            assert not wrong.search(line), f"{path.relative_to(ROOT)}:{number}: {line.strip()}"


def test_the_readmes_commands_are_targets_of_the_makefile() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    asked = set(re.findall(r"make ([a-z]+)", (ROOT / "README.md").read_text()))
    assert {"demo", "test"} <= asked <= targets
    assert {"demo", "test", "check", "bench"} <= targets
