"""Reading, telling apart and signalling the machine's processes.

Standard library only and nothing of ours: keepers and nurseries load it by path. The values are named tuples
because `dataclasses` would double what a nursery loads before it can fork.
"""

import _thread
import json
import os
import signal
import zlib
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

PROC = "/proc"
STAT_BYTES = 4096
ENVIRON_BYTES = 4 * 1024 * 1024  # a process may carry 2 MiB of environment and arguments by default
WHOLE_BYTES = 1024 * 1024  # no file of an attempt that is written whole comes near to this
ENCODE = json.JSONEncoder(separators=(",", ":")).encode
DEAD = "ZX"  # a zombie is dead, whoever has not reaped it yet
STOPPED = "Tt"


class Process(NamedTuple):
    """One process as it was read: (pid, ticks) tells it from every other process of this boot."""

    pid: int
    parent: int
    group: int
    session: int
    state: str
    ticks: int
    name: str


def read(pid: int) -> Process | None:
    """Give the process of this number as it stands now, zombies too, or None."""
    try:
        text = read_file(f"{PROC}/{pid}/stat", STAT_BYTES).decode("utf-8", "replace")
    except OSError:
        return None
    # The name may hold blanks and parentheses, so the fields are counted from the last ")".
    opening, closing = text.find("("), text.rfind(")")
    fields = text[closing + 2 :].split()
    if opening < 0 or len(fields) < 20:
        return None
    state, parent, group, session = fields[0], int(fields[1]), int(fields[2]), int(fields[3])
    name = text[opening + 1 : closing]
    return Process(pid, parent, group, session, state, int(fields[19]), name)


def living(pid: int, ticks: int) -> Process | None:
    """Give the process that has this number and these start ticks, if it is alive."""
    found = read(pid)
    if found is None or found.ticks != ticks or found.state in DEAD:
        return None
    return found


def table() -> dict[int, Process]:
    """Give every process that can be seen, by its number."""
    with os.scandir(PROC) as entries:
        numbers = [int(entry.name) for entry in entries if entry.name.isdigit()]
    return {pid: found for pid in numbers if (found := read(pid)) is not None}


def below(roots: Collection[int], everybody: Mapping[int, Process]) -> list[Process]:
    """Give the living processes that descend from one of these, themselves not among them."""
    children: dict[int, list[Process]] = {}
    for process in everybody.values():
        children.setdefault(process.parent, []).append(process)
    out: list[Process] = []
    seen = set(roots)
    ahead = list(roots)
    while ahead:
        for child in children.get(ahead.pop(), ()):
            if child.pid not in seen:
                seen.add(child.pid)
                ahead.append(child.pid)
                if child.state not in DEAD:
                    out.append(child)
    return out


def of_run(run: str, fence: int, everybody: Iterable[Process]) -> list[Process]:
    """Give the living processes whose environment names this run, and no other fence of it."""
    named = f"DULY_RUN={run}".encode()
    fenced = f"DULY_FENCE={fence}".encode()
    out = []
    for process in everybody:
        if process.state in DEAD:
            continue
        variables = environ(process.pid)
        fences = [one for one in variables if one.startswith(b"DULY_FENCE=")]
        if named in variables and fences in ([], [fenced]):
            out.append(process)
    return out


def environ(pid: int) -> list[bytes]:
    """Give the variables a process was started with, as NAME=VALUE; none where they cannot be read."""
    try:
        return read_file(f"{PROC}/{pid}/environ", ENVIRON_BYTES).split(b"\0")
    except OSError:
        return []


def send(process: Process | tuple[int, int], signum: int) -> bool:
    """Signal the process with this number and these ticks and no other; say whether it was sent."""
    pid, ticks = (process.pid, process.ticks) if isinstance(process, Process) else process
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        # Compared after the descriptor is held: from here on the number cannot pass to another process unseen.
        if living(pid, ticks) is None:
            return False
        signal.pidfd_send_signal(descriptor, signum)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def namespace() -> str:
    """Name the pid namespace we are in: numbers of processes mean nothing outside it."""
    return os.readlink(f"{PROC}/self/ns/pid")  # noqa: PTH115 (pathlib would be a third of a nursery's start)


def ask_to_end(victims: Iterable[Process]) -> None:
    """Send TERM, and CONT, so that those that were stopped can act on it."""
    for victim in victims:
        if send(victim, signal.SIGTERM):
            send(victim, signal.SIGCONT)


def read_file(path: str, most: int, folder: int | None = None) -> bytes:
    """Give the first bytes of a file; OSError where it cannot be read."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder)
    try:
        pieces = []
        while most > 0 and (piece := os.read(descriptor, min(most, 65536))):
            pieces.append(piece)
            most -= len(piece)
        return b"".join(pieces)
    finally:
        os.close(descriptor)


def line(fields: Mapping[str, object]) -> bytes:
    """Give these fields as a line, and the line that proves it whole."""
    body = ENCODE(fields).encode("ascii")
    return b"%s\nwhole %08x\n" % (body, zlib.crc32(body))


def write_whole(folder: int, name: str, fields: Mapping[str, object]) -> None:
    """Put a file in place at once: readers see the old one, or all of the new one."""
    aside = f".{name}.{os.getpid()}.{_thread.get_native_id()}"
    descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600, dir_fd=folder)
    try:
        write_all(descriptor, line(fields))
    except OSError:
        os.unlink(aside, dir_fd=folder)
        raise
    finally:
        os.close(descriptor)
    os.rename(aside, name, src_dir_fd=folder, dst_dir_fd=folder)


def create_whole(folder: int, name: str, fields: Mapping[str, object]) -> int | None:
    """Create a file only if there is none, and give it to be appended to; of several that try one does not get None."""
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        descriptor = os.open(name, flags, 0o600, dir_fd=folder)
    except FileExistsError:
        return None
    try:
        write_all(descriptor, line(fields))
    except OSError:
        # A full disk: an empty mark would say for ever that something began, and nothing has.
        os.close(descriptor)
        os.unlink(name, dir_fd=folder)
        raise
    return descriptor


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of it, or raise OSError."""
    while data:
        data = data[os.write(descriptor, data) :]


def read_whole(folder: int, name: str) -> dict[str, object] | None:
    """Give the last fields in a file of ours that are proven whole, or None."""
    try:
        lines = read_file(name, WHOLE_BYTES, folder).split(b"\n")
    except FileNotFoundError:
        return None
    for at in range(len(lines) - 2, 0, -1):
        if lines[at] == b"whole %08x" % zlib.crc32(lines[at - 1]):
            fields = json.loads(lines[at - 1])
            return fields if isinstance(fields, dict) else None
    return None
