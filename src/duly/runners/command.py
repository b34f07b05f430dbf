"""The runner for commands: an argument list or a shell line, under a keeper, with its output in the attempt's log."""

import os
import re
import select
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import assert_never

from duly.core.reasons import Refusal
from duly.ports import Assignment, Detached, How, Outcome, OutcomeWord
from duly.runners import folders, keeping, logs, nurseries, success
from duly.runners.ask import Ask
from duly.runners.nurseries import Nursery
from duly.runners.starting import ARGUMENT_BYTES
from duly.secrets import Missing, Secrets

GRACE = timedelta(seconds=10)
SHELL = "/bin/sh"
SWEPT_WITHIN_S = 5.0
INPUT_BYTES = 65_536  # more than this is told by the file alone
EVENT = "event.json"
OURS = "DULY_"
NAME = re.compile(r"[^=\0]+")
ATTACH_TRIES = 5
LOOK_EVERY_MS = 500
ORDER_EVERY_MS = 1000


class Command:
    """Performs one attempt of a command. `stop` may come before, during and after `perform`, from any thread."""

    at_once = True

    def __init__(
        self,
        nursery: Nursery,
        *,
        environment: Callable[[], Mapping[str, str]] = lambda: os.environ,
        secrets: Secrets | None = None,
        grace: timedelta = GRACE,
    ) -> None:
        self._nursery = nursery
        self._environment = environment
        self._secrets = secrets or Secrets(environ=environment())
        self._grace = grace
        self._lock = threading.Lock()
        self._wish: How | None = None
        self._bell: int | None = None

    def check(self, action: Mapping[str, object]) -> Refusal | None:
        """Say what is wrong with the action itself; whether the program is there is seen at the start."""
        fault = _fault(action)
        return None if fault is None else Refusal(reason="invalid", sentence=fault)

    def perform(self, assignment: Assignment, checkpoint: Mapping[str, object] | None) -> Outcome | Detached:
        """Start the command and stay until it has ended; with a checkpoint, look after what was started before."""
        with self._lock:
            self._bell = os.eventfd(int(self._wish is not None))  # what was wished before is heard at the first look
        try:
            if checkpoint is not None:
                return self._attach(assignment)
            if self._wish is not None:
                return _never(self._wish)
            return self._start(assignment)
        finally:
            with self._lock:
                os.close(self._bell)
                self._bell = None

    def stop(self, how: How) -> None:
        """Ask for the end, or the letting go; an end asked for is not taken back, and a kill not softened."""
        with self._lock:
            if self._wish == "kill" or (self._wish == "term" and how == "detach"):
                return
            self._wish = how
            if self._bell is not None:
                os.eventfd_write(self._bell, 1)

    def _start(self, assignment: Assignment) -> Outcome | Detached:
        fault = _fault(assignment.action) or _fault_of(assignment.args)
        if fault is not None:
            return _not_begun("preflight", fault)
        env = self._env(assignment)
        if isinstance(env, str):
            return _not_begun("preflight", env)
        try:
            folders.make_folder(assignment.folder)
            if assignment.input is not None:
                folders.write_private(assignment.folder / "input", assignment.input)
            if assignment.event is not None:
                folders.write_private(assignment.folder / EVENT, assignment.event.body)
            argv = _argv(assignment)
        except OSError as error:
            return _not_begun("preflight", f"the attempt's folder cannot be made: {error}")
        ask = Ask(
            run=assignment.run,
            fence=assignment.fence,
            holder=assignment.holder,
            argv=argv,
            cwd=success.cwd_of(assignment),
            env=env,
            timeout_s=assignment.timeout.total_seconds(),
            idle_s=None if assignment.idle_timeout is None else assignment.idle_timeout.total_seconds(),
            leave=assignment.leftovers == "leave",
            grace_s=self._grace.total_seconds(),
            spoken=False,
            starter=nurseries.this_process(),
        )
        started = self._nursery.start(assignment.folder, ask)
        match started:
            case nurseries.Started():
                if started.channel is None:
                    return self._attach(assignment)
                with started.channel:
                    return self._watch(assignment, started.channel.fileno())
            case nurseries.Forbidden():
                return _not_begun("fence_lost", "the attempt was taken away before it began", word="abandoned")
            case nurseries.NotStarted():
                return _not_begun("preflight", started.why)
            case _:
                assert_never(started)

    def _attach(self, assignment: Assignment) -> Outcome | Detached:
        for _ in range(ATTACH_TRIES):
            seen = keeping.look(assignment.folder)
            if isinstance(seen, keeping.KeeperStopped):
                keeping.continue_or_kill(seen)
            elif isinstance(seen, keeping.KeeperAlive):
                ended = nurseries.watch(seen.pid, seen.ticks)
                if ended is None:
                    continue
                try:
                    # A keeper that has this order takes no other attempt afterwards, so that its end is the work's;
                    # one that was through before the order came has left its exit file.
                    keeping.send_adopt(assignment.folder, holder=assignment.holder, fence=assignment.fence)
                    if isinstance(keeping.look(assignment.folder), keeping.KeeperAlive | keeping.KeeperStopped):
                        return self._watch(assignment, ended, outlived=assignment.leftovers == "leave")
                finally:
                    os.close(ended)
            elif isinstance(seen, keeping.Elsewhere) and seen.lock_held:
                return self._watch_unseen(assignment)
            elif not isinstance(seen, keeping.NeverStarted):
                return self._settle(assignment)
            elif keeping.forbid_start(assignment.folder):
                return _not_begun("returned", "it had not begun", word="abandoned")
        return self._settle(assignment)

    def _watch(self, assignment: Assignment, ended: int, *, outlived: bool = False) -> Outcome | Detached:
        """Wait until the descriptor says that the keeper is through, passing on what is wished meanwhile.

        `outlived`: it tells the end of the keeper itself, who may stay with what the work was allowed to leave.
        """
        bell = self._bell
        assert bell is not None
        poll = select.poll()
        poll.register(ended, select.POLLIN)
        poll.register(bell, select.POLLIN)
        again = LOOK_EVERY_MS if outlived else None
        while ended not in (ready := [descriptor for descriptor, _ in poll.poll(again)]):
            if outlived and isinstance(keeping.look(assignment.folder), keeping.Ended):
                break
            if ready:
                os.eventfd_read(bell)
            if self._wish == "detach":
                return Detached()
            if self._wish is not None:
                self._order(assignment, self._wish)
                again = min(again or ORDER_EVERY_MS, ORDER_EVERY_MS)  # a keeper may be frozen after it was looked at
        return self._settle(assignment)

    def _watch_unseen(self, assignment: Assignment) -> Outcome | Detached:
        """Look again and again for the end of a work whose keeper is in another pid namespace and obeys files only."""
        keeping.send_adopt(assignment.folder, holder=assignment.holder, fence=assignment.fence)
        bell = self._bell
        assert bell is not None
        poll = select.poll()
        poll.register(bell, select.POLLIN)
        while isinstance(seen := keeping.look(assignment.folder), keeping.Elsewhere) and seen.lock_held:
            if poll.poll(LOOK_EVERY_MS):
                os.eventfd_read(bell)
                if self._wish == "detach":
                    return Detached()
                if self._wish is not None:
                    self._order(assignment, self._wish)
        return self._settle(assignment)

    def _order(self, assignment: Assignment, how: How) -> None:
        assert how != "detach"
        try:
            keeping.send_end(assignment.folder, holder=assignment.holder, fence=assignment.fence, how=how)
        except OSError:
            # A full disk takes no order. What must end at once still ends, with its keeper, by the nursery.
            if how == "kill":
                keeping.kill_keeper(assignment.folder)
        seen = keeping.look(assignment.folder)
        if isinstance(seen, keeping.KeeperStopped):
            keeping.continue_or_kill(seen)

    def _settle(self, assignment: Assignment) -> Outcome:
        """Read how it ended; for a keeper that was killed, see that nothing of its work is left."""
        folder = assignment.folder
        seen = keeping.look(folder)
        if isinstance(seen, keeping.KeeperAlive | keeping.KeeperStopped):
            # Without an exit file it can only be dying: what it holds is closed an instant before it is dead.
            nurseries.wait_end(seen.pid, seen.ticks, within_s=SWEPT_WITHIN_S)
            seen = keeping.look(folder)
        if isinstance(seen, keeping.KeeperGone) and seen.nursery_alive:
            keeping.wait_swept(folder, within_s=SWEPT_WITHIN_S)
            seen = keeping.look(folder)
        match seen:
            case keeping.Ended():
                return success.outcome_of(seen.exit, assignment)
            case keeping.Swept():
                return _abandoned(folder, "its keeper was killed, and what that left was ended", confirmed=True)
            case keeping.Rebooted():
                return _abandoned(folder, "the machine was restarted while it ran", confirmed=True)
            case keeping.KeeperGone():
                left = keeping.end_strays(folder, assignment.run)
                said = f"; not ended: {', '.join(left)}" if left else ""
                return _abandoned(folder, f"its keeper and nursery were both killed{said}", confirmed=False)
            case keeping.Elsewhere():
                return _abandoned(folder, "its keeper lives where it cannot be seen from here", confirmed=False)
            case keeping.NeverStarted() | keeping.KeeperAlive() | keeping.KeeperStopped():
                return _abandoned(folder, "its traces are gone", confirmed=False)
            case _:
                assert_never(seen)

    def _env(self, assignment: Assignment) -> dict[str, str] | str:
        """Give what the work shall see, or a sentence about a secret that is missing."""
        env = without_ours(self._environment())
        env |= told(assignment)
        given = assignment.action.get("env") or {}
        assert isinstance(given, Mapping)
        for name, value in given.items():
            try:
                env[name] = self._secrets.fill(value)
            except Missing as missing:
                return f"the variable {name}: {missing}"
        # Byte for byte: the nursery reads every text as UTF-8, whatever this process takes its own environment for.
        return as_utf8(env)


def _fault(action: Mapping[str, object]) -> str | None:
    argv, shell, env, cwd = (action.get(name) for name in ("argv", "shell", "env", "cwd"))
    if (argv is None) == (shell is None):
        return "a command has either argv, a list, or shell, a line"
    if shell is not None and not (isinstance(shell, str) and shell.strip()):
        return "shell is one line of text, not empty"
    if shell is None and not (isinstance(argv, list | tuple) and argv and all(isinstance(one, str) for one in argv)):
        return "argv is a list of texts and names the program first"
    if isinstance(argv, list | tuple) and not argv[0]:
        return "argv names the program first, and that name is empty"
    if not isinstance(cwd, str | None) or not isinstance(env or {}, Mapping):
        return "cwd is a path, env an object of names and texts"
    variables = dict(env) if isinstance(env, Mapping) else {}
    if not all(isinstance(name, str) and NAME.fullmatch(name) for name in variables):
        return "a variable's name is a text without '='"
    if not all(isinstance(text, str) for text in variables.values()):
        return "a variable's value is a text"
    if isinstance(shell, str) and "\0" in shell:
        return "a command's texts cannot hold the character NUL"
    return _fault_of([*(() if shell is not None else _texts(argv)), cwd or "", *variables.values()])


def _fault_of(texts: Sequence[str]) -> str | None:
    """Say what is wrong with texts that a program is to be given, each as one argument."""
    for text in texts:
        if "\0" in text:
            return "a command's texts cannot hold the character NUL"
        if len(text.encode("utf-8", "surrogateescape")) >= ARGUMENT_BYTES:
            return (
                f"one argument is larger than {ARGUMENT_BYTES - 1} bytes, which is the most that Linux takes; give the"
                " text by a file, or as the run's input, which the command reads from $DULY_INPUT_FILE"
            )
    return None


def _argv(assignment: Assignment) -> list[str]:
    """Give the words of the command; a shell line too long for one of them goes by a file in the attempt's folder."""
    argv, shell = assignment.action.get("argv"), assignment.action.get("shell")
    more = _texts(assignment.args)
    if shell is None:
        return [*_texts(argv), *more]
    line = str(shell)
    if len(line.encode("utf-8", "surrogateescape")) >= ARGUMENT_BYTES:
        folders.write_private(assignment.folder / "line", line)
        return [SHELL, str(assignment.folder / "line"), *more]
    return [SHELL, "-c", line, *([SHELL, *more] if more else [])]  # after a line comes its $0, then $1


def _texts(words: object) -> list[str]:
    assert isinstance(words, list | tuple)
    return [_utf8(str(one)) for one in words]


def told(assignment: Assignment) -> dict[str, str]:
    """Give what the work is told about itself."""
    told = {
        "DULY_TASK": assignment.task_name,
        "DULY_PROJECT": assignment.project,
        "DULY_RUN": assignment.run,
        "DULY_ATTEMPT": str(assignment.attempt),
        "DULY_FENCE": str(assignment.fence),
        "DULY_OCCURRENCE": assignment.occurrence,
        "DULY_OPENED_BY": assignment.opened_by,
    }
    told |= assignment.lent
    if assignment.due_at is not None:
        told["DULY_DUE_AT"] = _rfc3339(assignment.due_at)
    if assignment.event is not None:
        told |= {
            "DULY_EVENT_FILE": str(assignment.folder / EVENT),
            "DULY_EVENT_SOURCE": assignment.event.source,
            "DULY_EVENT_KEY": assignment.event.key or "",
        }
    if assignment.input is None:
        told |= {"DULY_INPUT": "", "DULY_INPUT_FILE": os.devnull}
    else:
        told["DULY_INPUT_FILE"] = str(assignment.folder / "input")
        if "\0" not in assignment.input and len(assignment.input.encode("utf-8", "surrogateescape")) <= INPUT_BYTES:
            told["DULY_INPUT"] = assignment.input
    return told


def _rfc3339(instant: datetime) -> str:
    return instant.isoformat().replace("+00:00", "Z")


def without_ours(environ: Mapping[str, str]) -> dict[str, str]:
    """Give variables without those of our own, which mean the process that serves and not its work."""
    return {name: value for name, value in environ.items() if not name.startswith(OURS)}


def as_utf8(env: Mapping[str, str]) -> dict[str, str]:
    """Give variables byte for byte as the nursery reads them."""
    return {_utf8(name): _utf8(value) for name, value in env.items()}


def _utf8(text: str) -> str:
    return text if text.isascii() else os.fsencode(text).decode("utf-8", "surrogateescape")


def _never(wish: How) -> Outcome:
    if wish == "detach":
        return _not_begun("returned", "it was let go before it began", word="abandoned")
    return _not_begun("cancelled_by_hand", "it was cancelled before it began", word="cancelled")


def _not_begun(reason: str, error: str, *, word: OutcomeWord = "failed") -> Outcome:
    return Outcome(word=word, reason=reason, error=error, side_effect=False)


def _abandoned(folder: Path, error: str, *, confirmed: bool) -> Outcome:
    return Outcome(
        word="abandoned",
        reason="holder_died" if confirmed else "end_not_confirmed",
        error=error,
        confirmed=confirmed,
        log_bytes=logs.size(folder),
    )
