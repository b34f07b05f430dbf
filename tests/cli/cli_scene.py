"""How tests call the command line: in this process for speed, or as a process of its own."""

import io
import json
import sqlite3
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from duly import ids
from duly.cli.frame import run
from duly.core.run import Entry, Run
from duly.store import Store
from duly.store.address import Address
from duly.store.tasks import FAILURE

DULY = str(Path(sys.executable).with_name("duly"))


@dataclass(frozen=True, slots=True)
class Called:
    code: int
    out: str
    err: str

    @property
    def first(self) -> str:
        return self.err.splitlines()[0] if self.err else ""

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def fault(self) -> Any:
        return json.loads(self.err)


class Scene:
    """A home of its own, a store in it, and ways to call Duly."""

    def __init__(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.home = home
        self.store = home / "duly.db"
        self.env = {
            "HOME": str(home),
            "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
            "DULY_STORE": str(self.store),
            "TZ": "Europe/Berlin",
            "LC_ALL": "C.UTF-8",
        }
        gone = ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "DULY_CONFIG", "DULY_TASK", "DULY_FENCE")
        for name in (*gone, "NO_COLOR", "FORCE_COLOR", "COLUMNS", "DULY_RUN"):
            monkeypatch.delenv(name, raising=False)
        for name, value in self.env.items():
            monkeypatch.setenv(name, value)
        self.monkeypatch = monkeypatch

    def call(self, *args: str) -> Called:
        """Call in this process."""
        out, err = _stream(), _stream()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "stdout", out)
            patch.setattr(sys, "stderr", err)
            code = run(args)
        return Called(code, _text(out), _text(err))

    def ok(self, *args: str) -> Called:
        """Call, and expect success."""
        called = self.call(*args)
        assert called.code == 0, called
        return called

    def process(self, *args: str, env: Mapping[str, str] | None = None, stdin: str = "") -> Called:
        """Call as a process of its own."""
        done = subprocess.run(
            [DULY, *args],
            env={**self.env, **(env or {})},
            input=stdin,
            check=False,
            capture_output=True,
            text=True,
            timeout=60,
        )
        return Called(done.returncode, done.stdout, done.stderr)

    def add(
        self, name: str = "hello", *options: str, when: str = "daily 09:00", argv: Sequence[str] = ("true",)
    ) -> Any:
        return self.ok("add", name, "--when", when, *options, "--json", "--", *argv).json

    def dump(self) -> object:
        return dump_of(self.store)


def dump_of(path: Path) -> object:
    """All that a path holds: a database's rows, a file's bytes, a folder's names, or nothing."""
    if path.is_dir():
        return sorted(one.name for one in path.iterdir())
    if not path.exists():
        return None
    data = path.read_bytes()
    if not data.startswith(b"SQLite format 3"):
        return data
    with sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True) as raw:
        lines = list(raw.iterdump())
    raw.close()
    return lines


def ended(
    scene: Scene,
    task: str,
    *,
    outcome: str = "failed",
    reason: str = "exit_status",
    error: str | None = "no disk",
    code: int | None = 3,
) -> str:
    """Let a run of two attempts have come to its end, as a holder would have written it."""
    store = Store.open(Address(path=scene.store), scene.env)
    now = datetime(2026, 11, 1, 8, tzinfo=UTC)
    ran = Run(
        id=ids.new("run"),
        task=task,
        occurrence="at:2026-11-01T08:00:00Z",
        due_at=now,
        opened_at=now,
        opened_by="schedule",
        state="ended",
        outcome=outcome,  # type: ignore[arg-type]
        reason=reason,
        error=error,
        attempt=2,
        fence=7,
        holder="hld_x",
        not_before=now,
        definition_version=1,
        started_at=now + timedelta(seconds=2),
        ended_at=now + timedelta(seconds=9),
        exit_code=code,
    )

    def entry(kind: str, after: int, attempt: int, **more: object) -> Entry:
        at = now + timedelta(seconds=after)
        return Entry(kind=kind, at=at, task=task, run=ran.id, attempt=attempt, holder="hld_x", **more)  # type: ignore[arg-type]

    try:
        with store.write() as session:
            session.runs.insert([ran])
            session.ledger.add(
                [
                    entry("claimed", 0, 1, details={"fence": 6}),
                    entry("swept", 1, 1, reason="holder_died"),
                    entry("claimed", 2, 2, details={"fence": 7}),
                    entry("ended", 9, 2, reason=reason, details={"outcome": outcome, "exit_code": code}),
                ]
            )
            session.tasks.count_end([(task, ran.id, FAILURE)])
    finally:
        store.close()
    return ran.id


def _stream() -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    raw = stream.buffer
    assert isinstance(raw, io.BytesIO)
    return raw.getvalue().decode()
