"""Mutation score of the core: `python tests/mutants/measure.py [MODULE …]`, by mutmut.

Works in a copy (`.mutants/`), and goes on where it was interrupted: what was noticed is not asked again, as long as its
function is the same. Says for each module how many changes its tests noticed, and names those that they did not; of the
whole core it writes docs/mutants.md anew, as `--page` does without asking.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import mutants_page
from mutants_kept import Measured, measured

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / ".mutants"
PURE = ("tests/core", "tests/time", "tests/definitions", "tests/events")
"""The folders whose tests ask the core alone: no database, no process. Which of them reach a change is looked up."""
PAGE_ALONE = "--page"
"""Asks about nothing, and writes the page from what is kept."""
SHARED = ("data", "late_rows.py", "late_table.csv", "zone_maker.py")
SETTINGS = """\
[tool.pytest.ini_options]
pythonpath = ["src", "tests", {folders}]
markers = ["slow: takes more than ten seconds", "file: asks what only a store in a SQLite file has"]

[tool.mutmut]
source_paths = ["src/"]
only_mutate = ["src/duly/core/*.py"]
also_copy = ["tests"]
track_dependencies = false
"""


def prepare() -> None:
    """Lay out the copy; what was measured of unchanged functions is kept by mutmut itself."""
    WORK.mkdir(exist_ok=True)
    for name in ("src", "tests", "mutants/tests"):
        shutil.rmtree(WORK / name, ignore_errors=True)
    leave = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "src", WORK / "src", ignore=leave)
    for name in (*PURE, *(f"tests/{name}" for name in SHARED)):
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, WORK / name, ignore=leave)
        else:
            shutil.copy2(ROOT / name, WORK / name)
    folders = ", ".join(json.dumps(name) for name in PURE)
    (WORK / "pyproject.toml").write_text(SETTINGS.format(folders=folders))


def main(given: Sequence[str]) -> int:
    every = sorted(path.stem for path in (ROOT / "src" / "duly" / "core").glob("*.py") if path.stem != "__init__")
    core = WORK / "mutants" / "src" / "duly" / "core"
    if list(given) == [PAGE_ALONE]:
        _write_page(core, every)
        return 0
    unknown = set(given) - set(every)
    if unknown:
        raise SystemExit(f"the core has no module {', '.join(sorted(unknown))}")
    prepare()
    asked = subprocess.run(
        [sys.executable, Path(__file__).with_name("asking.py"), " ".join(given or every), " ".join(PURE)],
        cwd=WORK,
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0"},
        check=False,
    )
    if asked.returncode:
        return asked.returncode
    for one in (measured(core, module) for module in given or every):
        _tell(one)
    if not given:
        _write_page(core, every)
    return 0


def _write_page(core: Path, modules: Sequence[str]) -> None:
    text = mutants_page.written([measured(core, module) for module in modules], PURE)
    mutants_page.PAGE.write_text(text, encoding="utf-8")


def _tell(one: Measured) -> None:
    noticed, of = one.changes - len(one.survivors), one.changes
    score = f", {noticed / of:.0%}" if of else ""
    print(f"{one.module:16} {noticed}/{of} noticed{score}, {one.untested} reached by no test")
    for survivor in one.survivors:
        print(f"    {survivor.name}: {survivor.before} → {survivor.after or 'nothing'}")


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
