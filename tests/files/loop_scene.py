"""A home, a worktree with loop files in it, and a store of either kind that they are brought into."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import databases
from duly.app import loops
from duly.core.task import Task
from duly.operations import projects, shapes, standing
from duly.operations.lookup import find_task
from duly.operations.loops import Reconciled
from duly.store import Store

HEAD = "---\nname: {name}\nschedule: {schedule}\n{more}---\n{prompt}\n"


class Scene:
    """A project `app` in a worktree, which nobody has named yet."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.home = folder / "home"
        self.app = folder / "repo" / "app"
        self.home.mkdir()
        self.app.mkdir(parents=True)
        (self.app / "README").write_text("a project\n")
        (folder / "repo" / ".git").mkdir()
        self.env = {
            "HOME": str(self.home),
            "PATH": os.environ["PATH"],
            "TZ": "Europe/Berlin",
            "DULY_SERVE_WEB": "no",
        }
        for name in ("DULY_CONFIG", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "DULY_RUN", "DULY_STORE"):
            monkeypatch.delenv(name, raising=False)
        for name, value in self.env.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(loops, "AGAIN_AFTER_S", 0.01)
        self.place = databases.unmade(folder)
        databases.copy_blank(monkeypatch)
        with self.store(create=True):
            pass

    @contextmanager
    def store(self, *, create: bool = False) -> Iterator[Store]:
        store = Store.open(self.place, self.env, create=create)
        try:
            yield store
        finally:
            store.close()

    def path(self, name: str, folder: Path | None = None) -> Path:
        return (folder or self.app) / ".agents" / "loops" / f"{name}.md"

    def put(
        self,
        name: str,
        *,
        at: str | None = None,
        folder: Path | None = None,
        schedule: str = "daily 09:00",
        more: str = "",
        prompt: str = "hi",
    ) -> Path:
        """Write a loop file."""
        path = self.path(at or name, folder)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(HEAD.format(name=name, schedule=schedule, more=more, prompt=prompt))
        return path

    def named(self, folder: Path | None = None) -> Reconciled:
        """Name the project's folder, as a person does, and bring its files in."""
        with self.store() as store:
            projects.set_project(store, "app", folder=str(folder or self.app), by="anna")
        return self.look()

    def look(self) -> Reconciled:
        with self.store() as store:
            (project,) = loops.here(store)
            return loops.reconcile(store, project, self.env)

    def task(self, name: str) -> Task:
        with self.store() as store, store.read() as session:
            return find_task(session, name)

    def shape(self, name: str) -> Mapping[str, Any]:
        return shapes.task(self.task(name), pauses=(), last_run=None, open_missed=0)

    def names(self) -> list[str]:
        with self.store() as store, store.read() as session:
            return [task.definition.name for task in session.tasks.page()]

    def project(self) -> Any:
        with self.store() as store, store.read() as session:
            return session.projects.by_key("app")

    def troubles(self) -> list[Any]:
        """What `status` tells of projects."""
        with self.store() as store, store.read() as session:
            found: Any = standing.status(store, session)["projects"]
            return list(found)

    def ledger(self) -> int:
        with self.store() as store, store.read() as session:
            return session.ledger.last()
