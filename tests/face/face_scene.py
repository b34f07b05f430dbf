"""What the tests of the Python face share: a home, a module of functions in it, programs that use them."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import databases
from by_hand import by_hand, dump_of
from duly import Duly
from duly.store import Store

WITHIN_S = 60.0
SHOP = """
import asyncio, os, sys, threading, time
from pathlib import Path

HERE = Path(__file__).parent

def witness(*words):
    with (HERE / "witness").open("a") as file:
        file.write(" ".join(map(str, words)) + "\\n")

def nightly(*words):
    print("nightly", *words)

async def gently(*words):
    await asyncio.sleep(0.01)
    print("gently", *words)

def waits():
    witness("waits", os.getpid())
    while not (HERE / "go").exists():
        time.sleep(0.01)

def fails():
    raise ValueError("no such shelf")

class Shelf:
    @staticmethod
    def count(): ...
    @classmethod
    def tidy(cls): ...
    def own(self): ...
"""


class Home:
    """A home of its own, a store in it, and a module of functions that this process and its children find."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.place = databases.unmade(folder)
        self.store = databases.given(self.place)
        """How a program names the store."""
        self.witness = folder / "witness"
        self.name = f"shop_{folder.name}".replace("-", "_")
        self._monkeypatch = monkeypatch
        self._open: list[Duly] = []
        (folder / f"{self.name}.py").write_text(SHOP)
        monkeypatch.syspath_prepend(str(folder))
        monkeypatch.setenv("HOME", str(folder))
        monkeypatch.setenv("TZ", "UTC")
        for name in ("DULY_STORE", "DULY_CONFIG", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "DULY_RUN"):
            monkeypatch.delenv(name, raising=False)

    @property
    def shop(self) -> Any:
        """The module, imported here."""
        from importlib import import_module

        return import_module(self.name)

    def duly(self, **more: Any) -> Duly:
        made = Duly(self.store, **more)
        self._open.append(made)
        return made

    def write(self, name: str, text: str) -> None:
        """Write a program, which says where its store is as people do who keep it in a file beside them."""
        (self.folder / name).write_text(text.replace('"duly.db"', repr(self.store)))

    def is_made(self) -> bool:
        """Whether anything stands at the store's address."""
        return dump_of(self.place) is not None

    def program(self, text: str, *words: str, name: str = "program.py") -> subprocess.Popen[str]:
        """Start a program in this home; `WITHIN_S` is what a test gives it."""
        self.write(name, text)
        return subprocess.Popen(
            [sys.executable, *(words or (name,))],
            cwd=self.folder,
            env=self.environ(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def ran(self, text: str, *words: str, name: str = "program.py") -> str:
        """Run a program to its good end and give what it printed."""
        with self.program(text, *words, name=name) as process:
            try:
                out, errors = process.communicate(timeout=WITHIN_S)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
        assert process.returncode == 0, errors
        return out

    def environ(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "DULY_SERVE_WEB": "no",
        }

    def cli(self, *words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "duly", "--store", self.store, *words],
            env=self.environ(),
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=WITHIN_S,
            check=False,
        )
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout

    def lines(self) -> list[list[str]]:
        """What the work wrote of itself, a line a start."""
        return [line.split() for line in self.witness.read_text().splitlines()] if self.witness.exists() else []

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        store = Store.find(self.place, {"HOME": str(self.folder)})
        assert store is not None
        try:
            with store.read() as session:
                return by_hand(session.line, query)
        finally:
            store.close()

    def close(self) -> None:
        (self.folder / "go").touch()
        for duly in self._open:
            duly.close()
        sys.modules.pop(self.name, None)
        for pid in self.leftovers():
            os.kill(pid, signal.SIGKILL)

    def leftovers(self) -> list[int]:
        """Processes that still carry this home."""
        found = []
        for path in Path("/proc").iterdir():
            if not path.name.isdecimal() or int(path.name) == os.getpid():
                continue
            try:
                variables = (path / "environ").read_bytes().split(b"\0")
                dead = (path / "stat").read_text().rpartition(")")[2].split()[0] in "ZX"
            except OSError:
                continue
            if f"HOME={self.folder}".encode() in variables and not dead:
                found.append(int(path.name))
        return found


def until(condition: Callable[[], Any], within_s: float = WITHIN_S) -> Any:
    """Wait for a condition and give its value."""
    end = time.monotonic() + within_s
    while not (value := condition()):
        assert time.monotonic() < end, "it did not come true in time"
        time.sleep(0.02)
    return value


def module(name: str, text: str) -> ModuleType:
    """Make a module of this text, as if it had been imported."""
    made = ModuleType(name)
    exec(text, made.__dict__)
    return made
