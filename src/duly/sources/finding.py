"""Where the loop files of a project lie: in its folder, in those above it up to the worktree's root, and at home.

Only who was asked for is looked at, and what cannot be read is told; nothing here writes.
"""

import os
import stat
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from duly.core.loops import FILE_MOST, NOT_THERE, Fault, Looked, Loop, Spoilt
from duly.sources.loop_file import read_loop
from duly.there import missing

LOOPS = Path(".agents") / "loops"
SUFFIX = ".md"
FILES_MOST = 1_000
"""Loop files of one folder; a folder with more is told, and not read."""
ABOVE_MOST = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Root:
    """A folder that may have loop files, and the folder that none of them may leave by a link."""

    folder: Path
    within: Path

    @property
    def loops(self) -> Path:
        """Where its loop files lie."""
        return self.folder / LOOPS


def roots_of(folder: Path, home: Path) -> list[Root]:
    """Name the folders whose loop files count for a project in this folder, the nearest first."""
    chain = [folder, *folder.parents][:ABOVE_MOST]
    top = next((at for at, one in enumerate(chain) if os.path.lexists(one / ".git")), 0)
    roots = [Root(folder=one, within=chain[top]) for one in chain[: top + 1]]
    if home not in chain[: top + 1]:
        roots.append(Root(folder=home, within=home))
    return roots


def look(folder: str, home: str, *, agents: Collection[str] = ()) -> Looked:
    """Look at the loop files of a project in this folder: what each says, and what could not be read."""
    why = missing(folder)
    if why is not None:
        return Looked(missing=why)
    found: list[Loop | Spoilt] = []
    unread: dict[str, str] = {}
    for root in roots_of(Path(folder), Path(home)):
        try:
            found += [read_at(path, root, agents=agents, home=home) for path in _files(root)]
        except _Unread as bad:
            unread[str(root.loops)] = str(bad)
    return Looked(found=tuple(found), unread=unread)


def read_at(path: Path, root: Root | None, *, agents: Collection[str] = (), home: str | None = None) -> Loop | Spoilt:
    """Read one file; one that a link takes out of what was named is not read."""
    try:
        if _utf8(path) != str(path):
            raise _Unread("its name is not valid UTF-8")
        if root is not None and not path.resolve().is_relative_to(root.within.resolve()):
            return _spoilt(path, f"it is a link that leaves {root.within}")
        return read_loop(_bytes(path), str(path), agents=agents, home=home)
    except _Unread as bad:
        return _spoilt(path, str(bad))
    except (OSError, RuntimeError) as bad:
        return _spoilt(path, f"it cannot be read: {getattr(bad, 'strerror', None) or bad}")


def watched(folder: str, home: str) -> Iterator[Path]:
    """Name what is to be watched for a project: each of its loop folders, or what they would be made in."""
    for root in roots_of(Path(folder), Path(home)):
        for place in (root.loops, root.loops.parent, root.folder):
            if place.is_dir():
                yield place
                break


def traces(folder: str, home: str) -> tuple[object, ...]:
    """Tell, without reading any file, what a change of a project's loop files would change."""
    seen: list[object] = [missing(folder)]
    for root in roots_of(Path(folder), Path(home)):
        try:
            seen += [(str(path), _stat(path)) for path in _files(root)]
        except _Unread as bad:
            seen.append((str(root.loops), str(bad)))
    return tuple(seen)


class _Unread(Exception):
    """A file or a folder that cannot be read; says why."""


def _files(root: Root) -> list[Path]:
    """List the loop files of a folder by their names; there are none where there is no such folder."""
    if not root.folder.is_dir():
        raise _Unread(NOT_THERE)
    try:
        if os.path.lexists(root.loops) and not root.loops.resolve().is_relative_to(root.within.resolve()):
            raise _Unread(f"it is a link that leaves {root.within}")
        with os.scandir(root.loops) as there:
            names = sorted(one.name for one in there if one.name.endswith(SUFFIX) and not one.name.startswith("."))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except (OSError, RuntimeError) as bad:
        raise _Unread(f"it cannot be read: {getattr(bad, 'strerror', None) or bad}") from None
    if len(names) > FILES_MOST:
        raise _Unread(f"it has {len(names):,} files, and {FILES_MOST:,} are allowed")
    return [root.loops / name for name in names]


def _bytes(path: Path) -> bytes:
    # Not to wait: what lies there may be a pipe that nobody writes to.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        os.close(descriptor)
        raise _Unread("it is no plain file")
    with os.fdopen(descriptor, "rb") as file:
        data = file.read(FILE_MOST + 1)
    if len(data) > FILE_MOST:
        raise _Unread(f"it has {found.st_size:,} bytes, and {FILE_MOST:,} are allowed")
    return data


def _stat(path: Path) -> tuple[int, ...] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_mode)


def _spoilt(path: Path, why: str) -> Spoilt:
    return Spoilt(path=_utf8(path), faults=(Fault(field="file", message=why),))


def _utf8(path: Path) -> str:
    """A path as it can be kept and shown, whatever bytes it has."""
    return str(path).encode(errors="replace").decode()
