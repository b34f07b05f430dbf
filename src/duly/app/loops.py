"""Loop files of this host: brought into the store at the start, when they change and when asked; switched in place.

Only folders that a person named count (`duly project set NAME --dir PATH`). On a server each host looks after the
folders that were named on it.
"""

import os
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from duly import clock, config
from duly.core.loops import Looked, path_of
from duly.core.reconciling import Remove
from duly.core.task import Task
from duly.errors import DulyError, Refused, StoreAway
from duly.operations import loops, owned, tasks
from duly.operations.lookup import find_task
from duly.operations.loops import Reconciled
from duly.sources import finding, toggling
from duly.store import Store
from duly.store.projects import Project

if TYPE_CHECKING:
    from duly.holder.holder import Tell

LOOK_EVERY_S = 5.0
"""So often projects and traces are looked at, whether or not anybody told of a change."""
POLL_EVERY_S = 1.0
"""The same where changes cannot be watched."""
DEBOUNCE_MS = 300
STEP_MS = 50
AGAIN_AFTER_S = 0.5
"""A file that is gone may be on its way to its place: it is looked for again after so long."""
LOOKS_MOST = 5
FIRST_WITHIN_S = 10.0
"""So long a start waits for the first look, so that nothing runs by a file that has gone."""
ENDS_WITHIN_S = 2.0


def agents_of(environ: Mapping[str, str]) -> Collection[str]:
    """Name the agents that the config of this host has, those that cannot be used too."""
    found = config.load(environ)
    return {*found.agents, *found.agent_faults}


def home_of(environ: Mapping[str, str]) -> str:
    """Give the home whose loop files count."""
    return environ.get("HOME") or str(Path.home())


def reconcile(store: Store, project: Project, environ: Mapping[str, str]) -> Reconciled:
    """Bring the tasks of a project to what its files say now."""
    assert project.dir is not None
    looked = _looked(store, project, environ)
    return loops.reconcile(store, project.key, project.dir, looked)


def here(store: Store) -> list[Project]:
    """Give the projects whose folders are looked after by this host."""
    with store.read() as session:
        return [one for one in session.projects.all() if one.dir is not None and owned.is_here(store, one)]


def switch(
    store: Store, word: str, *, on: bool, by: str, environ: Mapping[str, str] | None = None, run: str | None = None
) -> Task:
    """Switch a task on or off; one that a file defines is switched in the file, and then in the store.

    `run`: the run whose work asks; what it switches on waits for a person.
    """
    with store.read() as session:
        task = find_task(session, word)
        path = path_of(task.source)
        project = None if path is None else owned.project_of(session, task)
    change = tasks.enable if on else tasks.disable
    how: dict[str, Any] = {"run": run} if on else {}
    if path is None or project is None or project.dir is None:
        return change(store, task.id, by=by, in_file=path is not None, **how)
    if not owned.is_here(store, project):
        raise Refused(
            "owned_by_file",
            f"{path} on {project.dir_host} says whether it is on",
            details={"task": task.id, "path": path, "host": project.dir_host},
            hint=f"do it there, or hold the task: duly pause {word}",
        )
    toggling.toggle(path, _root(path, project.dir, home_of(os.environ if environ is None else environ)), on=on)
    return change(store, task.id, by=by, in_file=True, **how)


class Watching:
    """Looks after the loop files of this host's projects from `start` to `stop`, in a thread of its own."""

    def __init__(self, store: Store, environ: Mapping[str, str], tell: "Tell") -> None:
        self._store = store
        self._environ = environ
        self._tell = tell
        self._stop = threading.Event()
        self._first = threading.Event()
        self._seen: dict[str, tuple[object, ...]] = {}
        self._paths: frozenset[str] = frozenset()
        self._changes: Iterator[set[tuple[Any, str]]] | None = None
        self._troubled: str | None = None
        self._thread = threading.Thread(target=self._run, name="duly-loops", daemon=True)

    def start(self) -> None:
        """Begin, and wait for the first look, but not for ever: a folder may be one that does not answer."""
        self._thread.start()
        if not self._first.wait(FIRST_WITHIN_S):
            self._tell("loop files wait: their folders do not answer", {})

    def stop(self) -> None:
        """End, and wait for that a little."""
        self._stop.set()
        self._thread.join(ENDS_WITHIN_S)

    def step(self, store: Store) -> None:
        """Look once at each project's traces, and bring in what has changed since the last look."""
        projects = here(store)
        for project in projects:
            assert project.dir is not None
            home = home_of(self._environ)
            traces = (project.dir, *finding.traces(project.dir, home))
            if self._seen.get(project.key) != traces:
                self._told(project, reconcile(store, project, self._environ))
                self._seen[project.key] = traces
        self._seen = {one.key: self._seen[one.key] for one in projects}

    def _run(self) -> None:
        try:
            with self._store.another_once() as own:
                while not self._stop.is_set():
                    self._guarded(lambda: self.step(own))
                    self._first.set()
                    self._guarded(lambda: self._wait(own))
        except StoreAway as error:
            self._tell("loop files are no longer looked after", {"error": error.message})
        finally:
            self._first.set()

    def _guarded(self, do: Callable[[], None]) -> None:
        """Do something that may fail; what fails is told once, and tried again a little later."""
        try:
            do()
            self._troubled = None
        except (DulyError, OSError, RuntimeError, ValueError) as error:
            told = error.message if isinstance(error, DulyError) else f"{type(error).__name__}: {error}"
            if told != self._troubled:
                self._tell("loop files could not be looked at", {"error": told})
            self._troubled = told
            self._stop.wait(LOOK_EVERY_S)

    def _wait(self, store: Store) -> None:
        """Wait until something may have changed."""
        home = home_of(self._environ)
        paths = {str(path) for one in here(store) for path in finding.watched(str(one.dir), home)}
        if paths != self._paths or self._changes is None:
            self._paths, self._changes = frozenset(paths), self._watched(paths)
        if self._changes is None:
            self._stop.wait(POLL_EVERY_S if paths else LOOK_EVERY_S)
            return
        until_s = clock.monotonic_s() + LOOK_EVERY_S
        try:
            # What else goes on in those folders is no reason to look, nor one not to look in time.
            while (seen := next(self._changes, None)) and not any(_concerns(path) for _, path in seen):
                if clock.monotonic_s() >= until_s:
                    return
        except (OSError, RuntimeError) as error:
            self._tell("loop files are polled: changes cannot be watched", {"error": str(error)})
            self._changes = None
            self._stop.wait(POLL_EVERY_S)

    def _watched(self, paths: Collection[str]) -> "Iterator[set[tuple[Any, str]]] | None":
        if not paths:
            return None
        from watchfiles import watch

        return watch(
            *paths,
            watch_filter=None,
            debounce=DEBOUNCE_MS,
            step=STEP_MS,
            stop_event=self._stop,
            rust_timeout=int(LOOK_EVERY_S * 1000),
            yield_on_timeout=True,
            recursive=False,
            ignore_permission_denied=True,
        )

    def _told(self, project: Project, done: Reconciled) -> None:
        if done.missing is not None:
            self._tell("the folder of a project cannot be used", {"project": project.name, "why": done.missing})
        changes = {"added": done.added, "changed": done.changed, "removed": done.removed}
        if any(changes.values()):
            told = {name: list(names) for name, names in changes.items() if names}
            self._tell("loop files", {"project": project.name, **told})
        for path, fault in done.faults:
            self._tell("a loop file", {"path": path, "line": fault.line, "wrong": f"{fault.field}: {fault.message}"})


def _concerns(path: str) -> bool:
    name = os.path.basename(path)  # noqa: PTH119 - a text is all there is of it
    return name.endswith(finding.SUFFIX) or name in {".agents", "loops", ".git"}


def _looked(store: Store, project: Project, environ: Mapping[str, str]) -> Looked:
    """Look at a project's files; what would remove a task is looked at again, until two looks agree on it."""
    agents, home = agents_of(environ), home_of(environ)
    before: set[str] = set()
    for _ in range(LOOKS_MOST):
        looked = finding.look(str(project.dir), home, agents=agents)
        with store.read() as session:
            wanted = loops.decision(session, project.key, looked)
        gone = {change.path for change in wanted.changes if isinstance(change, Remove)}
        if gone == before:
            return looked
        before = gone
        clock.pause(AGAIN_AFTER_S)
    return Looked(missing="its files do not stand still")


def _root(path: str, folder: str, home: str) -> finding.Root:
    """Give the folder that a file belongs to, which no link may leave."""
    loops_ = Path(path).parent
    found = next((one for one in finding.roots_of(Path(folder), Path(home)) if one.loops == loops_), None)
    return found or finding.Root(folder=loops_, within=loops_)
