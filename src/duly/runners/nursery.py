"""The nursery: a child of the holder that forks keepers and ends what a killed keeper leaves behind.

Run by path, isolated, with the control socket as descriptor 3. Standard library only and nothing of ours but its
siblings of the same kind. It outlives its holder until its last keeper has ended and nothing is left to sweep.
"""

import contextlib
import ctypes
import gc
import os
import select
import signal
import socket
import struct
import sys
import time
import traceback
from types import ModuleType, TracebackType

CONTROL = 3
PR_SET_NAME = 15
PR_SET_CHILD_SUBREAPER = 36
LIBC = ctypes.CDLL(None, use_errno=True)
MESSAGE_BYTES = 8192
DESCRIPTOR = struct.Struct("i")
EXTRA_BYTES = socket.CMSG_SPACE(8 * DESCRIPTOR.size)  # the channel, the lock, perhaps the work's stdin and stdout
RECEIVED = socket.MSG_CMSG_CLOEXEC | socket.MSG_DONTWAIT  # never inheritable, not even for an instant
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


class Nursery:
    """Forks, reaps and sweeps, one thing at a time, and never waits for any of its keepers."""

    def __init__(self, control: socket.socket) -> None:
        self._origin = ask.origin()
        self._pid = os.getpid()
        self._control: socket.socket | None = control
        self._keepers: dict[int, str] = {}
        self._lost: list[str] = []
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
            ready = self._poll.poll(int(self._again_s * 1000) if self._lost else None)
            for descriptor, _ in ready:
                if descriptor == self._wake_in:
                    with contextlib.suppress(BlockingIOError):
                        os.read(self._wake_in, MESSAGE_BYTES)
                    self._reap()
                else:
                    self._take()
            if self._lost:
                self._reap()
                self._sweep()

    def _take(self) -> None:
        control = self._control
        assert control is not None
        try:
            message, extra, _, _ = control.recvmsg(MESSAGE_BYTES, EXTRA_BYTES, RECEIVED)
        except BlockingIOError:
            return
        except OSError:
            message, extra = b"", []
        if not message:
            self._poll.unregister(control)
            control.close()
            self._control = None
            return
        descriptors = [number for _, _, data in extra for (number,) in DESCRIPTOR.iter_unpack(data)]
        try:
            self._fork(os.fsdecode(message), descriptors)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    def _fork(self, folder: str, descriptors: list[int]) -> None:
        try:
            pid = os.fork()
        except OSError:
            return  # the channel closes without an answer, and the holder sees that
        if pid:
            self._keepers[pid] = folder
            return
        status = 70
        try:
            if self._control is not None:
                self._control.close()
            signal.set_wakeup_fd(-1)
            os.close(self._wake_in)
            os.close(self._wake_out)
            _be_subreaper(b"duly-keeper")
            channel = socket.socket(fileno=descriptors[0])
            keeper.main(channel, folder, descriptors[1], descriptors[2:], self._origin)
            status = 0
        except BaseException:  # noqa: BLE001 (a fork must never go on as its parent)
            _tell(folder, *sys.exc_info())
        finally:
            os._exit(status)

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            folder = self._keepers.pop(pid, None)
            if folder is not None and status != 0:
                self._lost.append(folder)
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
            for folder in self._lost:
                self._write_swept(folder)
            self._lost.clear()
            return
        if self._termed_at is None:
            self._termed_at = time.monotonic()
            processes.ask_to_end(left)
        elif time.monotonic() >= self._termed_at + ORPHAN_GRACE_S:
            for process in left:
                processes.send(process, signal.SIGKILL)
            self._again_s = min(AGAIN_UP_TO_S, self._again_s * 2)

    def _write_swept(self, folder: str) -> None:
        with contextlib.suppress(OSError):  # the folder is gone: nobody waits for the mark
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                processes.write_whole(descriptor, "swept", {"nursery": self._origin.nursery})
            finally:
                os.close(descriptor)


def _be_subreaper(name: bytes) -> None:
    LIBC.prctl(PR_SET_NAME, name, 0, 0, 0)
    if LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "cannot become a subreaper")


def _tell(
    folder: str, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
) -> None:
    """Leave what broke a keeper in its attempt's folder; the nursery ends its tree as if it had been killed."""
    with contextlib.suppress(OSError):
        descriptor = os.open(f"{folder}/fault", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        os.write(descriptor, "".join(traceback.format_exception(kind, error, trace)).encode())


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
