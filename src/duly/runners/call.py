"""The runner for calls: an importable Python function, in a child of its own by default, in a thread by choice.

In a child it is a command like others: our interpreter under a keeper. In a thread it costs no start and sees the
state of its process, and the price is that nobody can end it: the run goes on until the function returns.
"""

import contextvars
import json
import os
import sys
import threading
from collections.abc import Mapping
from dataclasses import replace

from duly import clock, importing
from duly.core.reasons import Refusal
from duly.ports import Assignment, Detached, How, Outcome
from duly.runners import calling, folders, functions, output
from duly.runners.command import Command
from duly.runners.nurseries import Nursery
from duly.secrets import Secrets
from duly.told import IN_THREAD, Cause, ThisRun

LAST_CHARACTERS = 2_000
PASSED_ON = ("DULY_STORE", "DULY_CONFIG")
"""Of our own variables a child sees these: it is the same program as its holder, and means the same store."""


class Call:
    """Performs one attempt of a call. `stop` may come before, during and after `perform`, from any thread."""

    at_once = True

    def __init__(self, nursery: Nursery, secrets: Secrets | None = None) -> None:
        self._command = Command(nursery, secrets=secrets)
        self._lock = threading.Lock()
        self._wish: How | None = None
        self._ended = False
        self._overdue = threading.Event()

    def kept(self, action: Mapping[str, object]) -> bool:
        """Whether this work is a process under a keeper."""
        return action.get("in") != "thread"

    @property
    def overdue(self) -> bool:
        """Its time is over, and it goes on: a function in a thread cannot be ended."""
        return self._overdue.is_set()

    def check(self, action: Mapping[str, object]) -> Refusal | None:
        """Say what is wrong with the action, and with the function as far as its source tells; runs nothing of it."""
        fault = _fault(action)
        return None if fault is None else Refusal(reason="invalid", sentence=fault)

    def perform(self, assignment: Assignment, checkpoint: Mapping[str, object] | None) -> Outcome | Detached:
        """Call the function and stay until it has ended; with a checkpoint, look after what was started before."""
        if checkpoint is not None:
            return self._command.perform(assignment, checkpoint)
        refusal = self.check(assignment.action)
        if refusal is not None:
            return Outcome(word="failed", reason="preflight", error=refusal.sentence, side_effect=False)
        if not self.kept(assignment.action):
            return self._perform_here(assignment)
        try:
            command = _as_command(assignment)
        except OSError as error:
            told = f"the attempt's folder cannot be made: {error}"
            return Outcome(word="failed", reason="preflight", error=told, side_effect=False)
        return self._command.perform(command, None)

    def stop(self, how: How) -> None:
        """Ask for the end; what runs in a thread only hears of it in its outcome."""
        with self._lock:
            if not self._ended:
                self._wish = how
        self._command.stop(how)

    def _perform_here(self, assignment: Assignment) -> Outcome:
        with self._lock:
            if self._wish is not None:
                told = "it was cancelled before it began"
                return Outcome(word="cancelled", reason="cancelled_by_hand", error=told, side_effect=False)
        made: list[Outcome] = []
        thread = threading.Thread(
            target=lambda: made.append(self._run(assignment)), name=f"call {assignment.task_name}", daemon=True
        )
        began_s = clock.monotonic_s()
        thread.start()
        thread.join(min(assignment.timeout.total_seconds(), threading.TIMEOUT_MAX))
        with self._lock:
            if not self._ended:
                self._overdue.set()
        thread.join()
        return self._judged(made[0], clock.monotonic_s() - began_s, assignment)

    def _run(self, assignment: Assignment) -> Outcome:
        outcome = contextvars.copy_context().run(_called, assignment)
        with self._lock:
            self._ended = True
        return outcome

    def _judged(self, outcome: Outcome, took_s: float, assignment: Assignment) -> Outcome:
        """What was to end and could not is no success, however it came back; a wish after its end changes nothing."""
        how = "returned" if outcome.word == "succeeded" else f"failed ({outcome.error})"
        price = f"a function in a thread cannot be ended, and this one {how} after {took_s:.1f} s"
        if self.overdue:
            limit = f"its timeout was {assignment.timeout.total_seconds():g} s"
            return replace(outcome, word="timed_out", reason="timeout", error=f"{limit}; {price}"[:LAST_CHARACTERS])
        if self._wish is not None:
            told = f"cancelled; {price}"[:LAST_CHARACTERS]
            return replace(outcome, word="cancelled", reason="cancelled_by_hand", error=told)
        return outcome


def _fault(action: Mapping[str, object]) -> str | None:
    function, args, where = action.get("function"), action.get("args"), action.get("in", "child")
    if not isinstance(function, str) or not all(function.partition(":")):
        return "a call has a function, package.module:function"
    if args is not None and (isinstance(args, str) or not isinstance(args, list | tuple | Mapping)):
        return "args is a list, or an object of names"
    try:
        json.dumps(args, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        return f"args is not JSON: {error}"
    if where not in ("child", "thread"):
        return "in is child or thread"
    if where == "thread":
        return functions.fault(function, sys.path, here=True)
    return functions.fault(function, _path_of(action), here=False)


def _path_of(action: Mapping[str, object]) -> list[str]:
    """Give the child's path for modules: its own folder where one was named, and what this process finds itself."""
    cwd = action.get("cwd")
    own = [cwd] if isinstance(cwd, str) else []
    return own + [os.path.abspath(entry) for entry in sys.path]  # noqa: PTH100 - texts are wanted, links as they are


def _as_command(assignment: Assignment) -> Assignment:
    """Make the call a command: our interpreter, with a file in the attempt's folder that says what to call."""
    action = assignment.action
    cwd = action.get("cwd")
    told = {
        "function": action["function"],
        "args": action.get("args") or [],
        "more": list(assignment.args),
        "path": _path_of(action),
    }
    folders.make_folder(assignment.folder)
    folders.write_private(assignment.folder / "call", json.dumps(told))
    argv = [sys.executable, "-P", "-u", calling.__file__, str(assignment.folder / "call"), str(action["function"])]
    given = action.get("env")
    env = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    command = {
        "kind": "command",
        "argv": argv,
        "cwd": cwd if isinstance(cwd, str) else os.getcwd(),  # noqa: PTH109 - a text is wanted
        "env": env | (dict(given) if isinstance(given, Mapping) else {}),
    }
    return replace(assignment, action=command, args=())


def _called(assignment: Assignment) -> Outcome:
    """Call the function in this thread; what it raises is told as a command's exit status and last words would be."""
    action = assignment.action
    IN_THREAD.set(_this_run(assignment))
    try:
        importing.IN_THREAD.set(True)
        function = calling.find(str(action["function"]))
        importing.IN_THREAD.set(False)
        calling.call(function, action.get("args") or [], list(assignment.args))
    except calling.Unfit as unfit:
        return Outcome(word="failed", reason="exit_status", exit_code=unfit.status, error=str(unfit))
    except SystemExit as left:
        return _left(left, assignment)
    except BaseException as error:  # noqa: BLE001 - it is the function's own, and must not take its holder along
        text = calling.traced(error)
        return _failed(calling.FAILED, text.rstrip().rpartition("\n")[2], text, assignment)
    return Outcome(word="succeeded", exit_code=0)


def _left(left: SystemExit, assignment: Assignment) -> Outcome:
    code = left.code
    if code is None or code == 0:
        return Outcome(word="succeeded", exit_code=0)
    if isinstance(code, int):
        return _failed(code & 0xFF, f"exit status {code & 0xFF}", "", assignment)
    return _failed(calling.FAILED, str(code), f"{code}\n", assignment)


def _failed(status: int, error: str, text: str, assignment: Assignment) -> Outcome:
    data = text.encode("utf-8", "replace")[: output.HEAD_BYTES]
    try:
        if data:
            folders.make_folder(assignment.folder)
            folders.write_private(assignment.folder / output.LOG, data.decode("utf-8", "replace"))
    except OSError:
        data = b""  # the error itself is told all the same
    return Outcome(
        word="failed", reason="exit_status", exit_code=status, error=error[:LAST_CHARACTERS], log_bytes=len(data)
    )


def _this_run(assignment: Assignment) -> ThisRun:
    return ThisRun(
        id=assignment.run,
        task=assignment.task_name,
        project=assignment.project,
        attempt=assignment.attempt,
        fence=assignment.fence,
        occurrence=assignment.occurrence,
        due_at=assignment.due_at,
        opened_by=assignment.opened_by,
        input=assignment.input,
        event=_cause(assignment),
    )


def _cause(assignment: Assignment) -> Cause | None:
    event = assignment.event
    return None if event is None else Cause(source=event.source, key=event.key, data=json.loads(event.body))
