"""What a holder asks of a keeper: the ask itself, how it is handed over, and the mark that answers it.

Standard library only and nothing of ours but its siblings of the same kind: keepers load it by path.
"""

import marshal
import os
import select
import socket
import struct
from typing import NamedTuple

from duly.runners import processes

READ_BYTES = 256 * 1024
LENGTH = struct.Struct("!I")
FORBIDDEN = b"forbidden"
MESSAGE_BYTES = 8192
DESCRIPTOR = struct.Struct("i")
EXTRA_BYTES = socket.CMSG_SPACE(8 * DESCRIPTOR.size)  # the channel, the lock, perhaps the work's streams and its log
BOOT_ID = "/proc/sys/kernel/random/boot_id"


class Ask(NamedTuple):
    """What the holder asks for: whose attempt it is, and what to start.

    `spoken`: four descriptors come with it, the three streams of the work and the reading end of what is logged.
    """

    run: str
    fence: int
    holder: str
    argv: list[str]
    cwd: str
    env: dict[str, str]
    timeout_s: float | None
    idle_s: float | None
    grace_s: float
    leave: bool
    spoken: bool
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


def take(line: socket.socket, flags: int = 0) -> tuple[bytes, list[int]]:
    """Take one attempt's folder and descriptors from whoever hands them on; b"" if that end was closed."""
    try:
        # Never inheritable, not even for an instant.
        message, extra, _, _ = line.recvmsg(MESSAGE_BYTES, EXTRA_BYTES, socket.MSG_CMSG_CLOEXEC | flags)
    except ConnectionError:
        return b"", []
    return message, [number for _, _, data in extra for (number,) in DESCRIPTOR.iter_unpack(data)]


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
