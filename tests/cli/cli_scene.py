"""How tests call the command line: in this process for speed, or as a process of its own."""

import io
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import databases
from by_hand import dump_of, rows_at
from duly import ids
from duly.cli.frame import run
from duly.clock import Clock
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
        self.place = databases.unmade(home)
        self.address = str(self.place)
        """How people are shown where the store is."""
        self.env = {
            "HOME": str(home),
            "DULY_SERVE_WEB": "no",
            "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
            "DULY_STORE": databases.given(self.place),
            "TZ": "Europe/Berlin",
            "LC_ALL": "C.UTF-8",
        }
        gone = ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "DULY_CONFIG", "DULY_TASK", "DULY_FENCE")
        for name in (*gone, "NO_COLOR", "FORCE_COLOR", "COLUMNS", "DULY_RUN"):
            monkeypatch.delenv(name, raising=False)
        for name, value in self.env.items():
            monkeypatch.setenv(name, value)
        self.monkeypatch = monkeypatch
        databases.copy_blank(monkeypatch)

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

    @property
    def file(self) -> Path:
        """The file of the store, in tests of what a file has of its own."""
        assert isinstance(self.place, Address)
        return self.place.path

    @property
    def run_folder(self) -> Path:
        """Where holders' locks and attempts of the store lie on this host; only once the store is made."""
        if isinstance(self.place, Address):
            return self.place.run_folder
        with self.opened() as store:
            return store.run_folder

    @contextmanager
    def opened(self, clock: Clock | None = None) -> Iterator[Store]:
        """Open the store past the command line."""
        store = Store.open(self.place, self.env, clock=clock)
        try:
            yield store
        finally:
            store.close()

    def sql(self, text: str, *values: object) -> list[tuple[Any, ...]]:
        """Do by hand what no statement of ours does; committed when it returns."""
        return rows_at(self.place, text, *values)

    def dump(self) -> object:
        """All that stands at the store's address."""
        return dump_of(self.place)

    def anew(self) -> None:
        """Take the store away as it stands, and make it empty."""
        if isinstance(self.place, Address):
            for path in self.home.glob(f"{self.file.name}*"):
                if path.is_file():
                    path.unlink()
        else:
            databases.take_away(self.place)
            self.place = databases.unmade(self.home)
        self.ok("init")

    def is_made(self) -> bool:
        """Whether anything stands at the store's address."""
        return self.dump() is not None


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

    with scene.opened() as store, store.write() as session:
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
    return ran.id


def _stream() -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    raw = stream.buffer
    assert isinstance(raw, io.BytesIO)
    return raw.getvalue().decode()
