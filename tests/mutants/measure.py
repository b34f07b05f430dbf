"""Mutation score of the core: `python tests/mutants/measure.py [MODULE …]`, by mutmut, over the tests in tests/core.

Works in a copy (`.mutants/`), and goes on where it was interrupted. Says for each module how many changes its tests
noticed, and names those that they did not.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / ".mutants"
SLOW = (
    "every_occurrence_has_the_one_fate",
    "share_is_less",
    "whatever_becomes",
    "successive_plans",
    "another_hash_seed",
)
"""Tests that draw very many inputs, or need Duly installed: each change would be asked by them for half a minute."""
DRAWS = 25
SETTINGS = """\
[tool.pytest.ini_options]
pythonpath = ["src", "tests", "tests/core"]
markers = ["slow: takes more than ten seconds"]

[tool.mutmut]
source_paths = ["src/"]
only_mutate = {only}
also_copy = ["tests"]
pytest_add_cli_args_test_selection = ["tests/core"]
pytest_add_cli_args = ["-q", "-x", "-k", "not ({slow})"]
"""
CONFTEST = f"""\
from hypothesis import settings

settings.register_profile("mutants", deadline=None, max_examples={DRAWS}, derandomize=True)
settings.load_profile("mutants")
"""
NOTICED, MISSED, UNTESTED = 1, 0, 33
"""The exit codes by which mutmut keeps what became of a change."""


def prepare(modules: Sequence[str]) -> None:
    """Lay out the copy; what was measured of unchanged functions is kept by mutmut itself."""
    WORK.mkdir(exist_ok=True)
    asked = WORK / "asked"
    if not asked.exists() or asked.read_text().split() != list(modules):
        shutil.rmtree(WORK / "mutants", ignore_errors=True)  # other modules were changed in it
        asked.write_text(" ".join(modules))
    for name in ("src", "tests"):
        shutil.rmtree(WORK / name, ignore_errors=True)
    shutil.copytree(ROOT / "src", WORK / "src", ignore=shutil.ignore_patterns("__pycache__"))
    (WORK / "tests").mkdir()
    for name in ("core", "data"):
        shutil.copytree(ROOT / "tests" / name, WORK / "tests" / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("late_rows.py", "late_table.csv", "zone_maker.py"):
        shutil.copy(ROOT / "tests" / name, WORK / "tests" / name)
    (WORK / "tests" / "conftest.py").write_text(CONFTEST)
    only = json.dumps([f"src/duly/core/{name}.py" for name in modules])
    (WORK / "pyproject.toml").write_text(SETTINGS.format(only=only, slow=" or ".join(SLOW)))


def told(module: str) -> tuple[int, int, int, list[str]]:
    """Changes that were noticed, missed, and reached by no test; and the names of those that were missed."""
    path = WORK / "mutants" / "src" / "duly" / "core" / f"{module}.py.meta"
    codes: dict[str, int | None] = json.loads(path.read_text())["exit_code_by_key"] if path.exists() else {}
    missed = [name for name, code in codes.items() if code == MISSED]
    untested = sum(code == UNTESTED for code in codes.values())
    asked = sum(code is not None for code in codes.values())
    return asked - len(missed) - untested, len(missed), untested, missed


def main(given: Sequence[str]) -> int:
    every = sorted(path.stem for path in (ROOT / "src" / "duly" / "core").glob("*.py") if path.stem != "__init__")
    unknown = set(given) - set(every)
    if unknown:
        raise SystemExit(f"the core has no module {', '.join(sorted(unknown))}")
    modules = list(given) or every
    prepare(modules)
    mutmut = Path(sys.executable).with_name("mutmut")
    processes = os.environ.get("DULY_MUTANT_PROCESSES", str(os.cpu_count()))
    subprocess.run(
        [mutmut, "run", "--max-children", processes],
        cwd=WORK,
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
        check=False,
    )
    print()
    for module in modules:
        noticed, missed, untested, names = told(module)
        of = noticed + missed + untested
        print(
            f"{module:16} {noticed}/{of} noticed{f', {noticed / of:.0%}' if of else ''}, {untested} reached by no test"
        )
        for name in names:
            print(f"    {name}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
