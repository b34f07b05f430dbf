"""On what kind of file system a path lies: SQLite needs locks and shared memory that the network's do not keep."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from duly.errors import StoreAway

MOUNTS = Path("/proc/self/mountinfo")
NETWORK = frozenset(
    {
        "9p",
        "acfs",
        "afs",
        "beegfs",
        "ceph",
        "cifs",
        "coda",
        "davfs",
        "gfs2",
        "glusterfs",
        "gpfs",
        "lustre",
        "ncpfs",
        "nfs",
        "nfs4",
        "ocfs2",
        "orangefs",
        "pvfs2",
        "smb3",
        "smbfs",
    }
)
LOCAL_FUSE = frozenset({"fuse-overlayfs", "overlay", "ntfs-3g", "ntfs", "exfat", "gocryptfs", "encfs", "mergerfs"})
"""Of the file systems in user space, those over a disk of this machine; of the others nothing is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """The mount that a path lies on: its place, and its kind as the kernel names it."""

    place: str
    kind: str


def mount_of(path: Path, mounts: Path | None = None) -> Mount | None:
    """Find the mount of a path that need not be there yet; None where the system does not tell."""
    try:
        text = (mounts or MOUNTS).read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return None
    real = os.path.realpath(path)
    found: Mount | None = None
    for line in text.splitlines():
        before, mark, after = line.partition(" - ")
        fields, kinds = before.split(" "), after.split(" ")
        if not mark or len(fields) < 5:
            continue
        place = _unescaped(fields[4])
        inside = place == "/" or real == place or real.startswith(place + "/")
        # Of several at one place the last covers the others.
        if inside and (found is None or len(place) >= len(found.place)):
            found = Mount(place=place, kind=kinds[0])
    return found


def is_network(kind: str) -> bool:
    """Say whether a kind of file system is shared over a network, or may be for all that is known of it."""
    if kind.startswith("fuse."):
        return kind.removeprefix("fuse.") not in LOCAL_FUSE
    return kind in NETWORK


def check_local(path: Path, mounts: Path | None = None) -> None:
    """Refuse a store on a network file system."""
    mount = mount_of(path, mounts)
    if mount is None or not is_network(mount.kind):
        return
    raise StoreAway(
        f"the store {path} lies on a network file system ({mount.kind} at {mount.place}), where SQLite's locks do not"
        " keep two machines apart",
        details={"file_system": mount.kind, "mount": mount.place},
        hint="a path on a local disk with --store; for several machines PostgreSQL is the store;"
        " --allow-network-fs where one machine alone uses it",
    )


def _unescaped(place: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match.group(1), 8)), place)
