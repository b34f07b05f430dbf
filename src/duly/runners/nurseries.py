"""The holder's end of a nursery: one process of ours, started at the first need and anew when it has died."""

import contextlib
import fcntl
import os
import select
import signal
import socket
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from duly import clock
from duly.runners import ask as asking
from duly.runners import keeping, nursery, processes
from duly.runners.ask import Ask

START_TRIES = 3
ANSWER_WITHIN_S = 30.0
LOCK_WITHIN_S = 2.0
LOCK_EVERY_S = 0.005
CLOSE_WITHIN_S = 1.0
ANSWER_BYTES = 4096
KEPT_VARIABLES = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "DULY_RUN", "DULY_FENCE")
"""What a nursery sees of its holder's environment: no secret, but the run it is itself a part of, if any."""

BIND_NOW = {"LD_BIND_NOW": "1"}  # else every keeper looks up again, for itself, each C function that it calls


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """A keeper has put its mark down and starts the work; the channel is closed from its end when all is over.

    Until then the holder keeps the channel open: a keeper takes it for a sign that nobody else watches.
    """

    pid: int
    ticks: int
    channel: socket.socket | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Forbidden:
    """The attempt has a mark already: another start of it, or a sweeper that forbids it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotStarted:
    """No keeper could be had; nothing of the attempt has started, and nothing of it will."""

    why: str


class Nursery:
    """Starts keepers, from any thread; `close` hangs up, which ends no work."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._control: socket.socket | None = None
        self._process: int | None = None
        self._owner = os.getpid()

    def start(self, folder: Path, ask: Ask, descriptors: Sequence[int] = ()) -> Started | Forbidden | NotStarted:
        """Start what is asked in this attempt's folder; `descriptors` are the streams that `ask` announces."""
        why = "the nursery ended before it answered"
        for tried in range(START_TRIES):
            answer: Started | Forbidden | None = None
            ours, theirs = socket.socketpair()
            ours.settimeout(ANSWER_WITHIN_S)
            try:
                with theirs, _locked(folder) as lock:
                    if lock is None and not tried:
                        return Forbidden()
                    if lock is None:
                        break  # what did not answer us has it still
                    self._send(folder, [theirs.fileno(), lock, *descriptors])
                # Our own copy of the lock is closed: held now means that something of the attempt lives.
                answer = _converse(ours, ask)
            except OSError as error:
                return NotStarted(why=f"the nursery cannot be started: {error}")
            finally:
                if not isinstance(answer, Started):
                    ours.close()
            if answer is not None:
                return answer
            seen = keeping.look(folder)
            if not isinstance(seen, keeping.NeverStarted):
                return _begun(seen)
            with contextlib.suppress(OSError):
                why = (folder / "fault").read_text().strip().splitlines()[-1]
        try:
            forbidden = keeping.forbid_start(folder)
        except OSError as error:
            # No mark can be made, by us or by a keeper, and no keeper is left that might still try.
            return NotStarted(why=f"{why}; {error}")
        return NotStarted(why=why) if forbidden else _begun(keeping.look(folder))

    @property
    def pid(self) -> int | None:
        """The process that is the nursery now, if one was needed."""
        return self._process

    def close(self) -> None:
        """Hang up; the nursery ends when its last keeper has ended."""
        with self._lock:
            ours = (self._owner, self._process)
            self._drop()
            until = clock.monotonic_s() + CLOSE_WITHIN_S
            while ours in _left and clock.monotonic_s() < until:
                clock.pause(LOCK_EVERY_S)
                _reap()

    def forget(self) -> None:
        """In a forked child: let go of the parent's line, so that its nursery hears the parent's end."""
        self._lock = threading.Lock()
        if self._control is not None:
            self._control.close()
        self._control = self._process = None

    def _send(self, folder: Path, descriptors: Sequence[int]) -> None:
        message = os.fsencode(folder)
        with self._lock:
            for last in (False, True):
                if self._control is None or self._owner != os.getpid():
                    self._spawn()
                assert self._control is not None
                try:
                    socket.send_fds(self._control, [message], list(descriptors))
                    return
                except OSError:
                    self._drop()
                    if last:
                        raise

    def _spawn(self) -> None:
        _reap()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.settimeout(ANSWER_WITHIN_S)
        # posix_spawn forks without copying the pages of a big holder, and is safe beside other threads.
        with theirs:
            number = theirs.fileno()
            if number == nursery.CONTROL:
                os.set_inheritable(number, True)  # dup2 onto itself would leave it closed on exec
            self._process = os.posix_spawn(
                sys.executable,
                [sys.executable, "-I", "-S", "-X", "utf8", nursery.__file__],
                {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ} | BIND_NOW,
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, number, nursery.CONTROL),
                    (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                    (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                    (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
                ],
                setsigmask=[],
                setsigdef=[one for one in signal.valid_signals() if one not in (signal.SIGKILL, signal.SIGSTOP)],
            )
        self._control = ours
        self._owner = os.getpid()

    def _drop(self) -> None:
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._process is not None and self._owner == os.getpid():
            _left.add((self._owner, self._process))
        self._process = None
        _reap()


_left: set[tuple[int, int]] = set()
"""Nurseries that were given up, as (their parent, they): each lives as long as its keepers, and then whoever comes by
takes in its end."""


def _reap() -> None:
    """Take in the ends of nurseries that were given up."""
    for owner, pid in list(_left):
        try:
            ended = owner != os.getpid() or os.waitpid(pid, os.WNOHANG)[0] == pid
        except ChildProcessError:
            ended = True  # somebody else in this process has taken it in
        if ended:
            _left.discard((owner, pid))


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[int | None]:
    """Hold the attempt's lock for the keeper to inherit, or None if something of the attempt has it."""
    descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        yield descriptor if _take(descriptor) else None
    finally:
        os.close(descriptor)


def _take(descriptor: int) -> bool:
    until = clock.monotonic_s() + LOCK_WITHIN_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            # Somebody who only looks holds it for an instant.
            if clock.monotonic_s() > until:
                return False
            clock.pause(LOCK_EVERY_S)


def _converse(channel: socket.socket, ask: Ask) -> Started | Forbidden | None:
    """Hand the ask over and give the answer; None if whoever had the other end is gone or does not answer."""
    data = b""
    try:
        channel.sendall(asking.sent(ask))
        while not data.endswith(b"\n"):
            piece = channel.recv(ANSWER_BYTES)
            if not piece:
                return None
            data += piece
    except OSError:
        return None
    if data.strip() == asking.FORBIDDEN:
        return Forbidden()
    pid, ticks = data.split()
    return Started(pid=int(pid), ticks=int(ticks), channel=channel)


def _begun(seen: keeping.Look) -> Started:
    """Give what has begun though nobody answered us; if it is gone already, the folder says how."""
    if isinstance(seen, keeping.KeeperAlive | keeping.KeeperStopped):
        return Started(pid=seen.pid, ticks=seen.ticks, channel=None)
    return Started(pid=0, ticks=0, channel=None)


def this_process() -> tuple[int, int]:
    """Identify this process by its number and start ticks."""
    own = processes.read(os.getpid())
    assert own is not None
    return own.pid, own.ticks


def watch(pid: int, ticks: int) -> int | None:
    """Open a descriptor that becomes readable when this very process ends; None if it has ended."""
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:
        return None
    if processes.living(pid, ticks) is None:
        os.close(descriptor)
        return None
    return descriptor


def wait_end(pid: int, ticks: int, *, within_s: float) -> None:
    """Wait so long for the end of this very process."""
    descriptor = watch(pid, ticks)
    if descriptor is not None:
        try:
            poll = select.poll()
            poll.register(descriptor, select.POLLIN)
            poll.poll(int(within_s * 1000))
        finally:
            os.close(descriptor)
