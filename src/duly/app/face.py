"""`Duly`, the Python face: tasks by decorator or by calls, served in a script, in a program, in web workers.

Making one opens nothing, starts nothing and loads little, for the child of a call imports it too.
"""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from duly.errors import Refused
from duly.importing import is_importing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime
    from typing import Self, Unpack

    from duly.app.background import Background
    from duly.app.defining import Wanted
    from duly.app.lines import Lines
    from duly.app.values import Function, Moment, Options, Outcome, Run, Serving, Span, State, Task, Work
    from duly.store.store import Session, Store

F = TypeVar("F", bound="Callable[..., Any]")
DRAIN = timedelta(seconds=5)
"""How long live runs may go on where a program stops serving, before they are left to whoever serves next."""


class Duly:
    """A store, and all that can be done with it; safe from any thread."""

    def __init__(self, store: str | os.PathLike[str] | None = None, *, project: str | None = None) -> None:
        """Mean this store: a path or URL, else DULY_STORE, the config file or the default. `project` owns its tasks."""
        self._given = None if store is None else os.fspath(store)
        if self._given and "://" not in self._given:
            self._given = os.path.abspath(os.path.expanduser(self._given))  # noqa: PTH100, PTH111 - links stay
        self._project = project
        self._lock = threading.RLock()
        self._pending: list[Wanted] = []
        self._names: dict[Callable[..., Any], str] = {}
        self._lines: Lines | None = None
        self._background: Background | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, _error: object, _trace: object) -> None:
        self.close()

    def task(self, *when: str, name: str | None = None, **options: Unpack[Options]) -> Callable[[F], F]:
        """Define a task that calls the decorated function at these times; without any, by hand only.

        The function stays as it is. The task is written when the store is first used: added if it is new, changed
        with a new version if its definition is another, left alone if it is the same.
        """

        def define(function: F) -> F:
            if is_importing():
                return function  # in the child that calls it, which defines nothing
            from duly.app import defining

            one = self._wanted(name or function.__name__, when, {"call": function, **options})
            defining.check(one)
            with self._lock:
                self._pending.append(one)
                self._names[function] = f"{one.given.get('project', 'default')}/{one.given['name']}"
            return function

        return define

    def define(self, name: str, *when: str, **work: Unpack[Work]) -> Task:
        """Define a task as the decorator does, and write it now; the same definition again writes nothing."""
        from duly.app import answers, defining

        one = self._wanted(name, when, work)
        defining.check(one)
        defining.check_function(one)
        with self._use(create=True) as store:
            return answers.task(store, defining.define(store, one, by=_caller()).id)

    def add(self, name: str, *when: str, **work: Unpack[Work]) -> Task:
        """Add a task that is not there yet; Refused `already_exists` where it is."""
        from duly.app import answers, defining

        one = self._wanted(name, when, work)
        defining.check_function(one)
        with self._use(create=True) as store:
            return answers.task(store, defining.add(store, one, by=_caller()).id)

    def edit(self, task: Function, *, if_version: int | None = None, **changes: Any) -> Task:
        """Change parts of a task by the names that `add` has for them, `when` and `name`; None is the default again.

        Refused `version_conflict` where `if_version` is not its version any more.
        """
        from duly.app import answers, defining
        from duly.operations import edits

        patch = defining.patch(changes)
        with self._use() as store:
            edited = edits.edit(store, self._of(task), patch, by=_caller(), if_version=if_version)
            return answers.task(store, edited.after.id)

    def remove(self, task: Function) -> None:
        """Remove a task: what waits ends skipped, what runs is cancelled; its runs and its ledger stay."""
        from duly.operations import tasks

        with self._use() as store:
            tasks.remove(store, self._of(task), by=_caller())

    def enable(self, task: Function) -> Task:
        """Switch a task on; it owes nothing of the time it was off."""
        from duly.app import answers, loops

        with self._use() as store:
            return answers.task(store, loops.switch(store, self._of(task), on=True, by=_caller()).id)

    def disable(self, task: Function) -> Task:
        """Switch a task off: nothing opens it by time; a live run goes on."""
        from duly.app import answers, loops

        with self._use() as store:
            return answers.task(store, loops.switch(store, self._of(task), on=False, by=_caller()).id)

    def pause(
        self,
        task: Function | None = None,
        *,
        project: str | None = None,
        everything: bool = False,
        until: Moment | Span | None = None,
        note: str | None = None,
    ) -> None:
        """Hold a task, a project or everything: nothing opens by time until the hold is lifted or over."""
        from duly.app import defining
        from duly.operations import tasks

        scope, target = defining.scope(None if task is None else self._of(task), project, everything=everything)
        end = defining.moment(until, "until")
        with self._use() as store:
            tasks.pause(store, scope, target, until=end, note=note, by=_caller())

    def unpause(self, task: Function | None = None, *, project: str | None = None, everything: bool = False) -> None:
        """Lift the hold of a task, a project or everything; nothing of the time held is run."""
        from duly.app import defining
        from duly.operations import tasks

        scope, target = defining.scope(None if task is None else self._of(task), project, everything=everything)
        with self._use() as store:
            tasks.unpause(store, scope, target, by=_caller())

    def get(self, task: Function) -> Task:
        """Give a task as it stands now; Refused `unknown_task` where there is none."""
        from duly.app import answers

        with self._read() as session:
            if session is None:
                raise Refused("unknown_task", f"there is no task {self._of(task)}: there is no store yet")
            return answers.named(session, self._of(task))

    def tasks(self) -> list[Task]:
        """Give all tasks, by project and name."""
        from duly.app import answers

        with self._read() as session:
            return [] if session is None else answers.tasks(session)

    def next(self, task: Function, most: int = 5) -> list[datetime]:
        """Give the next instants at which a task is due, the nearest first."""
        from duly.app import answers

        with self._read() as session:
            return [] if session is None else answers.upcoming(session, self._of(task), most)

    def run(
        self,
        task: Function,
        *args: str,
        input: str | None = None,  # noqa: A002 - what it is called everywhere
        key: str | None = None,
        queue: bool = False,
        anyway: bool = False,
    ) -> Run:
        """Open a run now, whatever the schedule says; further arguments and the input are for it alone.

        The same `key` again answers with the run it opened first. Refused `already_running` (not with `queue`), or
        `paused` (not with `anyway`). It starts when somebody serves; `wait` waits for its end.
        """
        from duly.app import answers
        from duly.operations import rail, runs

        asked: dict[str, Any] = {"input_": input, "args": args, "key": key, "queue": queue, "anyway": anyway}
        asked["run"] = rail.asking_run()
        with self._use() as store:
            return answers.run(store, runs.run_now(store, self._of(task), by=_caller(), **asked).id)

    def emit(self, source: str, data: object = None, *, key: str | None = None) -> list[Run]:
        """Tell of an event, with JSON values as its data; gives the runs it opened, one a task that listens to it.

        The same `key` again, with the same data, answers as the first time and opens nothing.
        """
        from duly.app import answers

        with self._use() as store:
            return answers.emitted(store, source, data, key=key, by=_caller())

    def cancel(self, run: Run | str) -> Run:
        """Ask for the end of a run: a waiting one ends at once, a running one when its holder has ended it."""
        from duly.app import answers
        from duly.operations import runs

        with self._use() as store:
            return answers.run(store, runs.cancel(store, _id(run), by=_caller()).id)

    def wait(self, run: Run | str, within: float | timedelta | None = None) -> Run:
        """Wait for the end of a run and give it; TimeoutError where it has not ended within so many seconds."""
        from duly.app import answers

        with self._use() as store:
            return answers.ended(store, _id(run), within)

    def runs(
        self,
        task: Function | None = None,
        *,
        state: State | None = None,
        outcome: Outcome | None = None,
        since: datetime | None = None,
        most: int = 50,
    ) -> list[Run]:
        """Give runs, the newest first."""
        from duly.app.values import run_of
        from duly.operations import listing

        asked: dict[str, Any] = {"state": state, "outcome": outcome, "since": since, "most": most, "cursor": None}
        with self._read() as session:
            if session is None:
                return []
            page, _ = listing.runs(session, task=None if task is None else self._of(task), **asked)
            return [run_of(shape) for shape in page]

    def log(self, run: Run | str) -> bytes:
        """Give what a run's last attempt has written so far; its head and its tail where that is very much."""
        from duly.app import answers

        with self._use() as store:
            return answers.output(store, _id(run))

    def why(self, of: Function | Run, at: datetime | None = None) -> Mapping[str, Any]:
        """Tell why a task ran or did not, at an instant of the past or the future, or why a run is as it is."""
        from duly.operations import shapes_why
        from duly.operations.why import why

        with self._use() as store, store.read() as session:
            return shapes_why.why(why(session, self._of(of) if isinstance(of, str) or callable(of) else of.id, at=at))

    def status(self) -> Mapping[str, Any]:
        """Tell how things stand, as `duly status --json` does."""
        from duly.operations import standing

        line = self._line()
        if not line.exists() and not self._pending:
            return standing.nothing(str(line.address))
        with self._use() as store, store.read() as session:
            return standing.status(store, session)

    def serve(self, *, until_idle: bool = False, signals: bool = True, **how: Unpack[Serving]) -> None:
        """Run what is due, in this thread, until TERM or INT, until `stop`, or until nothing is left to do.

        Those signals stop it, in the main thread and while it serves, unless `signals` is false.
        """
        made = self._made(until_idle=until_idle, **how)
        try:
            made.serve_here(signals=signals)
        finally:
            with self._lock:
                self._background = None

    def start(self, **how: Unpack[Serving]) -> None:
        """Run what is due, in the background of this process, until `stop`; started already, it goes on as it is.

        It is not carried over a fork: start it in each process that shall serve, after the fork.
        """
        with self._lock:
            if self.serving:
                return
            made = self._made(**{"drain": DRAIN, **how})  # type: ignore[arg-type]
            try:
                made.start()
            except BaseException:
                self._background = None
                raise

    def stop(self, within: float | timedelta | None = None) -> bool:
        """Stop what `start` or `serve` began, and wait for it, so long at most where `within` says so.

        Runs end or, after the drain, are left to whoever serves next. False where it has not ended in time: a
        function in a thread cannot be ended, and the holder stays with it.
        """
        background = self._background
        if background is None:
            return True
        return background.stop(within.total_seconds() if isinstance(within, timedelta) else within)

    @property
    def serving(self) -> bool:
        """Something runs what is due, in this process, by this object."""
        background = self._background
        return background is not None and background.alive

    def close(self) -> None:
        """Stop serving and close what is open; used again, it opens anew."""
        self.stop()
        if self._lines is not None:
            self._lines.close()

    def before_fork(self) -> None:
        """Nothing to do here: what must not be carried over a fork is not held by this object itself."""

    def after_fork_here(self) -> None:
        """Go on as before."""

    def after_fork_in_child(self) -> None:
        """Be a `Duly` that serves nothing; another thread of the parent may have had the lock."""
        self._lock = threading.RLock()

    def _made(self, *, until_idle: bool = False, **how: Unpack[Serving]) -> Background:
        from duly.app import defining
        from duly.app.background import Background

        wanted = defining.wish_of(how, until_idle=until_idle)
        self._line().prepare()
        with self._use(create=True):
            pass  # what is defined so far is written before anything is served
        with self._lock:
            if self.serving:
                raise Refused("already_running", "this object serves already", hint="stop() first")
            self._background = Background(self._line(), wanted)
            return self._background

    def _wanted(self, name: str, when: Sequence[str], work: Mapping[str, Any]) -> Wanted:
        from duly.app import defining

        own = {} if self._project is None else {"project": self._project}
        return defining.wanted(name, when, {**own, **work})

    def _line(self) -> Lines:
        from duly.app import forks
        from duly.app.lines import address, lines

        with self._lock:
            if self._lines is None:
                self._lines = lines(address(self._given))
                forks.take_part(self)
            return self._lines

    @contextmanager
    def _use(self, *, create: bool = False) -> Iterator[Store]:
        """Have the store, with everything written that was defined before."""
        line = self._line()
        with self._lock:
            while self._pending and not is_importing():
                from duly.app import defining

                with line.use(create=True) as store:
                    defining.check_function(self._pending[0])
                    defining.define(store, self._pending[0], by=_caller())
                del self._pending[0]
        with line.use(create=create) as store:
            yield store

    @contextmanager
    def _read(self) -> Iterator[Session | None]:
        """See the store at one moment; None where there is none yet."""
        line = self._line()
        line.check()
        if not line.exists() and not self._pending:
            yield None
            return
        with self._use() as store, store.read() as session:
            yield session

    def _of(self, task: Function) -> str:
        """Give the word by which a task is found: a function stands for the task that it was decorated for."""
        return task if isinstance(task, str) else self._names.get(task) or str(getattr(task, "__name__", task))


def _id(run: Run | str) -> str:
    return run if isinstance(run, str) else run.id


def _caller() -> str:
    from duly.operations.lookup import caller

    return caller()
