"""The nursery: a child of the holder that forks keepers and ends what a killed keeper leaves behind.

Run by path, isolated, with the control socket as descriptor 3. Standard library only and nothing of ours but its
siblings of the same kind. It outlives its holder until its last keeper has ended and nothing is left to sweep.
"""

import contextlib
import ctypes
import gc
import math
import os
import select
import signal
import socket
import sys
import time
from types import ModuleType

CONTROL = 3
PR_SET_NAME = 15
PR_SET_CHILD_SUBREAPER = 36
LIBC = ctypes.CDLL(None, use_errno=True)
WAKE_BYTES = 4096
IDLE_FOR_S = 2.0  # a keeper without an attempt is let go after so long
ORPHAN_GRACE_S = 0.5  # the work of a killed keeper has so long after TERM: who waits for it waits one second
AGAIN_AFTER_S = 0.02
AGAIN_UP_TO_S = 1.0
DEFAULTED = (signal.SIGCHLD, signal.SIGUSR1, signal.SIGIO, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)


def _siblings() -> None:
    """Let keeper, processes and output be imported by their full names while nothing else of the house can be."""
    here = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 (pathlib would be a third of the start)
    for name, path in (("duly", []), ("duly.runners", [here])):
        package = ModuleType(name)
        package.__path__ = path
        sys.modules[name] = package


if __name__ == "__main__":
    _siblings()

from duly.runners import ask, keeper, processes  # noqa: E402 (only now can they be found)


class Kept:
    """One keeper as its nursery knows it: the line to it, and the folder of the attempt that it keeps now, if any."""

    __slots__ = ("folder", "line", "since")

    def __init__(self, line: socket.socket, folder: str) -> None:
        self.line = line
        self.folder: str | None = folder
        self.since = 0.0


class Nursery:
    """Forks, reaps and sweeps, one thing at a time, and never waits for any of its keepers."""

    def __init__(self, control: socket.socket) -> None:
        self._origin = ask.origin()
        self._pid = os.getpid()
        self._control: socket.socket | None = control
        self._keepers: dict[int, Kept] = {}
        self._idle: list[Kept] = []
        self._lost: list[tuple[int, str]] = []
        self._termed_at: float | None = None
        self._again_s = AGAIN_AFTER_S
        self._wake_in, self._wake_out = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(self._wake_out, warn_on_full_buffer=False)
        self._poll = select.poll()
        self._poll.register(self._wake_in, select.POLLIN)
        self._poll.register(control, select.POLLIN)

    def run(self) -> None:
        """Serve until the holder has hung up and nothing is left to stay for."""
        while self._control is not None or self._keepers or self._lost:
            ready = [descriptor for descriptor, _ in self._poll.poll(self._wait_ms())]
            control = -1 if self._control is None else self._control.fileno()
            for descriptor in ready:
                if descriptor == self._wake_in:
                    with contextlib.suppress(BlockingIOError):
                        os.read(self._wake_in, WAKE_BYTES)
                elif descriptor != control:
                    self._hear(descriptor)
            if self._wake_in in ready:
                self._reap()
            if control in ready:
                self._take()  # last, so that it finds the keepers that have just become free
            self._thin(time.monotonic() - IDLE_FOR_S)
            if self._lost:
                self._reap()
                self._sweep()

    def _wait_ms(self) -> int | None:
        if self._lost:
            return int(self._again_s * 1000)
        return int(IDLE_FOR_S * 1000) if self._idle else None

    def _take(self) -> None:
        assert self._control is not None
        try:
            message, descriptors = ask.take(self._control, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        if not message:
            self._poll.unregister(self._control)
            self._control.close()
            self._control = None
            self._thin(math.inf)
            return
        try:
            if not self._hand_on(message, descriptors):
                self._fork(message, descriptors)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    def _hand_on(self, message: bytes, descriptors: list[int]) -> bool:
        """Give the attempt to a keeper that is through with its last one, if there is any."""
        while self._idle:
            kept = self._idle.pop()
            try:
                socket.send_fds(kept.line, [message], descriptors)
            except OSError:
                continue  # it was killed, and will be reaped
            kept.folder = os.fsdecode(message)
            return True
        return False

    def _fork(self, message: bytes, descriptors: list[int]) -> None:
        line, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            pid = os.fork()
        except OSError:
            line.close()
            far.close()
            return  # the channel closes without an answer, and the holder sees that
        if pid:
            far.close()
            self._keepers[pid] = Kept(line, os.fsdecode(message))
            self._poll.register(line, select.POLLIN)
            return
        status = 70
        try:
            signal.set_wakeup_fd(-1)
            os.close(self._wake_in)
            os.close(self._wake_out)
            # A keeper must hold no end of what others wait to see closed.
            for one in (self._control, line, *(kept.line for kept in self._keepers.values())):
                if one is not None:
                    one.close()
            _be_subreaper(b"duly-keeper")
            keeper.main(far, message, descriptors, self._origin)
            status = 0
        finally:
            os._exit(status)  # a fork must never go on as its parent, whatever happened

    def _hear(self, descriptor: int) -> None:
        """Hear from a keeper what it has no attempt for any more; its end is told by the signal."""
        for kept in self._keepers.values():
            if kept.line.fileno() == descriptor:
                word = kept.line.recv(len(keeper.DONE))
                if word == keeper.DONE:
                    kept.folder = None
                    kept.since = time.monotonic()
                    self._idle.append(kept)
                    if self._control is None:
                        self._thin(math.inf)
                elif word == keeper.LEAVING:
                    kept.folder = None
                else:
                    self._poll.unregister(descriptor)
                return

    def _thin(self, before: float) -> None:
        """Let the keepers go that have had nothing to do since before this instant."""
        while self._idle and self._idle[0].since < before:
            kept = self._idle.pop(0)
            self._poll.unregister(kept.line)
            kept.line.shutdown(socket.SHUT_WR)

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            kept = self._keepers.pop(pid, None)
            if kept is None:
                continue
            if kept in self._idle:
                self._idle.remove(kept)
            with contextlib.suppress(KeyError):
                self._poll.unregister(kept.line)
            kept.line.close()
            if kept.folder is not None and status != 0:
                self._lost.append((pid, kept.folder))
                self._termed_at = None
                self._again_s = AGAIN_AFTER_S

    def _sweep(self) -> None:
        """End every child that is not a living keeper, and all below it; mark the folders when none is left."""
        everybody = processes.table()
        orphans = [
            process
            for process in everybody.values()
            if process.parent == self._pid and process.pid not in self._keepers
        ]
        below = processes.below([orphan.pid for orphan in orphans], everybody)
        left = [orphan for orphan in orphans if orphan.state not in processes.DEAD] + below
        if not left:
            for pid, folder in self._lost:
                self._write_swept(pid, folder)
            self._lost.clear()
            return
        if self._termed_at is None:
            self._termed_at = time.monotonic()
            processes.ask_to_end(left)
        elif time.monotonic() >= self._termed_at + ORPHAN_GRACE_S:
            for process in left:
                processes.send(process, signal.SIGKILL)
            self._again_s = min(AGAIN_UP_TO_S, self._again_s * 2)

    def _write_swept(self, pid: int, folder: str) -> None:
        with contextlib.suppress(OSError):  # the folder is gone: nobody waits for the mark
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                processes.write_whole(descriptor, "swept", {"keeper": pid})
            finally:
                os.close(descriptor)


def _be_subreaper(name: bytes) -> None:
    LIBC.prctl(PR_SET_NAME, name, 0, 0, 0)
    if LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "cannot become a subreaper")


def main() -> None:
    """Become a nursery: a session of its own, deaf to the terminal, holding nothing but the control socket."""
    os.closerange(CONTROL + 1, os.sysconf("SC_OPEN_MAX"))
    os.set_inheritable(CONTROL, False)
    os.setsid()
    os.chdir("/")
    for number in DEFAULTED:
        # Caught, not ignored: what is caught is the default again in the work, what is ignored stays ignored.
        signal.signal(number, _nothing)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    _be_subreaper(b"duly-nursery")
    gc.collect()
    gc.freeze()
    Nursery(socket.socket(fileno=CONTROL)).run()


def _nothing(number: int, frame: object) -> None:
    """Wake the poll by the wake-up descriptor, and do nothing else."""


if __name__ == "__main__":
    main()
