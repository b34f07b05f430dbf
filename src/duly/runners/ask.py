"""What a holder asks of a keeper: the ask itself, how it is handed over, and what may be wrong with it.

Standard library only and nothing of ours but its siblings of the same kind: keepers load it by path.
"""

import errno
import marshal
import os
import select
import signal
import socket
import struct
from typing import NamedTuple

from duly.runners import processes

READ_BYTES = 256 * 1024
ARGUMENT_BYTES = 131_072  # Linux takes no single argument or variable larger than this, its NUL included
SIGNALS = tuple(int(one) for one in signal.valid_signals() if one not in (signal.SIGKILL, signal.SIGSTOP))
LENGTH = struct.Struct("!I")
FORBIDDEN = b"forbidden"
BOOT_ID = "/proc/sys/kernel/random/boot_id"


class NoDirectory(OSError):
    """The working directory is missing, is none, or is closed to us."""


class Ask(NamedTuple):
    """What the holder asks for: whose attempt it is, and what to start."""

    run: str
    fence: int
    holder: str
    argv: list[str]
    cwd: str
    env: dict[str, str]
    timeout_s: float | None
    grace_s: float
    stdin: bool
    stdout: bool
    starter: tuple[int, int]


class Origin(NamedTuple):
    """What all keepers of one nursery have in common."""

    nursery: tuple[int, int]
    boot: str
    pids: str


def origin() -> Origin:
    """Give what this process, a nursery, hands down to its keepers."""
    own = processes.read(os.getpid())
    assert own is not None
    boot = processes.read_file(BOOT_ID, 64).decode().strip()
    return Origin((own.pid, own.ticks), boot, processes.namespace())


def sent(ask: Ask) -> bytes:
    """Give the ask as it is handed over; both ends are of one Python and one Duly."""
    body = marshal.dumps(tuple(ask))
    return LENGTH.pack(len(body)) + body


def receive(channel: socket.socket) -> Ask | None:
    """Read the whole ask; None if the holder is gone before it was sent."""
    data = b""
    while len(data) < LENGTH.size or len(data) < LENGTH.size + LENGTH.unpack_from(data)[0]:
        try:
            piece = channel.recv(READ_BYTES)
        except ConnectionError:
            return None
        if not piece:
            return None
        data += piece
    return Ask(*marshal.loads(memoryview(data)[LENGTH.size :]))


def hung_up(channel: socket.socket) -> bool:
    """Say whether the holder has closed its end."""
    poll = select.poll()
    poll.register(channel, select.POLLHUP | select.POLLRDHUP)
    return bool(poll.poll(0))


def answer(channel: socket.socket, word: bytes) -> None:
    """Tell the holder, if it still listens; if it hung up after we had looked, the mark says the rest."""
    try:
        channel.sendall(word + b"\n")
    except OSError:
        return


def mark(ask: Ask, origin: Origin) -> dict[str, object]:
    """Give what the mark `begun` says before the work is started: who keeps it, for whom, and where."""
    own = processes.read(os.getpid())
    assert own is not None
    return {
        "boot": origin.boot,
        "pids": origin.pids,
        "keeper": (own.pid, own.ticks),
        "nursery": origin.nursery,
        "starter": ask.starter,
        "run": ask.run,
        "fence": ask.fence,
        "holder": ask.holder,
        "work": None,
    }


def identity(value: object) -> tuple[int, int]:
    """Read the number and start ticks of a process out of a mark."""
    assert isinstance(value, list | tuple)
    assert len(value) == 2
    return int(value[0]), int(value[1])


def check(ask: Ask) -> None:
    """Say in words what the kernel would say with an error number."""
    sizes = [len(os.fsencode(text)) + 1 for text in ask.argv]
    sizes += [len(os.fsencode(name)) + len(os.fsencode(value)) + 2 for name, value in ask.env.items()]
    for size in sizes:
        if size > ARGUMENT_BYTES:
            raise OSError(errno.E2BIG, f"one argument or variable of {size} bytes; the most is {ARGUMENT_BYTES}")


def why(error: OSError | ValueError, ask: Ask) -> tuple[str, str]:
    """Give the reason of the closed set and a sentence for a work that did not start."""
    program, folder = ask.argv[0], ask.cwd
    if isinstance(error, NoDirectory):
        return "no_directory", f"the working directory {folder} cannot be entered: {error.strerror}"
    number = error.errno if isinstance(error, OSError) else None
    if number == errno.ENOENT and "/" in program and os.access(program, os.F_OK):
        return "not_found", f"{program} is there, but the interpreter that its first line names is not"
    if number in (errno.ENOENT, errno.ENOTDIR):
        return "not_found", f"the program {program} was not found"
    if number in (errno.EACCES, errno.EPERM):
        return "not_executable", f"{program} cannot be executed: {os.strerror(number)}"
    if number == errno.ENOEXEC:
        return "not_executable", f"{program} cannot be executed: it is no program and has no #! line"
    if number == errno.E2BIG:
        return "preflight", (
            f"the command line is too long ({error.args[1]}); give the text by a file, or as the run's input,"
            " which the command reads from $DULY_INPUT_FILE"
        )
    return "preflight", f"the work could not be started: {error}"
