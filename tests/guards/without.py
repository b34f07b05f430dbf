"""Take each guard away, in a copy of the source, and see which tests turn red: `python tests/guards/without.py`.

`--only NAME …` for some of them; `--find NAME --in tests/…` runs what lies there and names all that turn red.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "duly"
TABLE = Path(__file__).with_name("guards.toml")
RED = re.compile(r"^FAILED (\S+::\S+?)(?:\[.*)?(?: - .*)?$", re.MULTILINE)
PATIENCE_S = 900


@dataclass(frozen=True, slots=True)
class Guard:
    name: str
    promise: str
    file: str
    text: str
    instead: str
    red: Sequence[str]
    """Tests by their names as pytest has them; one of many inputs is enough."""


def guards() -> list[Guard]:
    """Read the table."""
    return [Guard(**row) for row in tomllib.loads(TABLE.read_text())["guard"]]


def taken_away(guard: Guard) -> str:
    """Give the file's text without the guard; what is not there once, word for word, is refused."""
    text = (SOURCE / guard.file).read_text()
    if text.count(guard.text) != 1:
        raise SystemExit(
            f"{guard.name}: {guard.file} has it {text.count(guard.text)} times, and not once:\n{guard.text}"
        )
    return text.replace(guard.text, guard.instead)


@contextmanager
def without(guard: Guard) -> Iterator[Path]:
    """A copy of the source without the guard."""
    changed = taken_away(guard)
    with tempfile.TemporaryDirectory() as name:
        copy = Path(name) / "src" / "duly"
        shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__"))
        (copy / guard.file).write_text(changed)
        yield copy.parent


def red(source: Path, tests: Sequence[str]) -> set[str]:
    """Run tests over a source and name those that failed."""
    command = [sys.executable, "-m", "pytest", "-q", "-rf", "--tb=no", "-p", "no:cacheprovider", *tests]
    environ = os.environ | {"PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        command, cwd=ROOT, env=environ, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    if done.returncode not in {0, 1}:
        raise SystemExit(f"the tests could not be run:\n{done.stdout}{done.stderr}")
    return set(RED.findall(done.stdout))


def main(given: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--find", nargs="+", default=[])
    parser.add_argument("--in", nargs="+", default=["tests"], dest="where")
    asked = parser.parse_args(given)
    every = guards()
    unknown = {*asked.only, *asked.find} - {guard.name for guard in every}
    if unknown:
        raise SystemExit(f"there is no guard {', '.join(sorted(unknown))}")
    missed = 0
    for guard in every:
        if asked.find:
            if guard.name in asked.find:
                with without(guard) as source:
                    print(f"{guard.name}:", *sorted(red(source, asked.where)), sep="\n  ", flush=True)
        elif not asked.only or guard.name in asked.only:
            with without(guard) as source:
                found = red(source, guard.red)
            green = [name for name in guard.red if name not in found]
            missed += bool(green)
            told = f"GREEN WITHOUT IT: {', '.join(green)}" if green else f"{len(found)} red"
            print(f"{guard.promise}  {guard.name:50} {told}", flush=True)
    if not asked.find:
        print(f"{missed} guards could be taken away unseen" if missed else "each guard is seen when it is gone")
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
