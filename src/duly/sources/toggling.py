"""Switching a loop file on or off where it lies: the one value is written, all else stays byte for byte."""

import os
import re
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from duly.errors import Refused
from duly.sources import finding
from duly.sources.front_matter import Unreadable, read

LINE = re.compile(rb"(enabled[ \t]*:[ \t]*)([^\s#]*)([ \t]*(?:#.*)?\r?\n?)")
END = re.compile(rb"(?:---|\.\.\.)[ \t]*\r?\n?")


def toggle(path: str, root: finding.Root | None, *, on: bool) -> bool:
    """Write `enabled` into a file; False where it says so already. Refused `owned_by_file` where it cannot be written.

    The file is put in its place whole, with its mode; who changes it at the same moment is not written over.
    """
    link = Path(path)
    try:
        place = link.resolve(strict=True)
        if root is not None and not place.is_relative_to(root.within.resolve()):
            raise _refused(path, f"it is a link that leaves {root.within}")
        before = place.stat()
        if not stat.S_ISREG(before.st_mode):
            raise _refused(path, "it is no plain file")
        data = place.read_bytes()
        if says(data) is on:
            return False
        _put(place, switched(data, path, on=on), before)
    except OSError as bad:
        raise _refused(path, f"it cannot be written: {bad.strerror}") from bad
    return True


def says(data: bytes) -> bool | None:
    """Tell whether a file says that it is on; None where it does not read, or leaves it open."""
    try:
        value = read(data).values.get("enabled")
    except Unreadable:
        return None
    return value if isinstance(value, bool) else None


def switched(data: bytes, path: str, *, on: bool) -> bytes:
    """Give a file's bytes with `enabled` as wanted and nothing else changed; Refused where that cannot be done."""
    try:
        was = read(data)
    except Unreadable as bad:
        line = f" (line {bad.fault.line})" if bad.fault.line else ""
        raise _refused(path, f"it does not read{line}: {bad}") from bad
    word = b"true" if on else b"false"
    lines = data.splitlines(keepends=True)
    end = next(at for at, line in enumerate(lines[1:], 1) if END.fullmatch(line))
    said = next((at for at, line in enumerate(lines[:end]) if LINE.fullmatch(line)), None)
    if said is not None:
        found = LINE.fullmatch(lines[said])
        assert found is not None
        lines[said] = _valued(found, word)
    else:
        lines.insert(end, b"enabled: " + word + (b"\r\n" if lines[0].endswith(b"\r\n") else b"\n"))
    made = b"".join(lines)
    try:
        now = read(made)
    except Unreadable:
        now = was
    if now.values != {**was.values, "enabled": on} or now.text != was.text:
        raise _refused(path, "its front matter is written in a way in which `enabled` cannot be set alone")
    return made


def _valued(found: "re.Match[bytes]", word: bytes) -> bytes:
    head, _, tail = found.groups()
    gap = b" " if head.endswith(b":") else b""
    return bytes(head + gap + word + tail)


def _put(place: Path, data: bytes, before: os.stat_result) -> None:
    """Put a file in the place of the one that was read: whole or not at all, and on disk."""
    descriptor, name = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name}.", suffix=".tmp")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            os.fchmod(file.fileno(), stat.S_IMODE(before.st_mode))
            with suppress(OSError):  # only root may give a file to somebody else
                os.fchown(file.fileno(), before.st_uid, before.st_gid)
            file.flush()
            os.fsync(file.fileno())
        now = place.stat()
        if (now.st_ino, now.st_mtime_ns, now.st_size) != (before.st_ino, before.st_mtime_ns, before.st_size):
            raise _refused(str(place), "somebody changed it at this moment; try again")
        Path(name).replace(place)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _refused(path: str, why: str) -> Refused:
    return Refused(
        "owned_by_file",
        f"{path} defines the task, and {why}",
        details={"path": path},
        hint="mend the file, or hold the task: duly pause TASK",
    )
