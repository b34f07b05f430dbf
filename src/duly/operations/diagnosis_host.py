"""What `doctor` looks at on this machine: the settings, the stores that were here, disk, rights, locks."""

import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from duly import config
from duly.core.settings import SETTINGS
from duly.errors import Invalid
from duly.operations.ailment import Ailment
from duly.operations.serving import holders_alive
from duly.store import address as addresses
from duly.store import mounts
from duly.store.address import Address
from duly.store.locks import lock_files

DISK_LEAST_BYTES = 200 * 1024 * 1024
DISK_LEAST_SHARE = 0.05
DISK_ENOUGH_BYTES = 2 * 1024 * 1024 * 1024
"""However large the disk is, so much is enough."""
INODES_LEAST = 1_000
OTHERS = stat.S_IRWXG | stat.S_IRWXO


def settings(environ: Mapping[str, str]) -> Iterator[Ailment]:
    """The config file reads, every key in it is known, every value can be used."""
    try:
        found = config.load(environ)
    except Invalid as bad:
        where = config.place(environ)
        yield Ailment(
            check="config_unread", subject=str(where), text=f"{bad.field}: {bad.message}", hint=f"mend {where}"
        )
        return
    for text in found.warnings:
        yield Ailment(check="config_unknown", subject=str(found.path), text=text, hint="duly config show")
    for setting in SETTINGS:
        try:
            config.in_force(setting.key, found, environ)
        except Invalid as bad:
            yield Ailment(
                check="config_unusable",
                subject=setting.key,
                text=f"{bad.field}: {bad.message}",
                hint=bad.hint or "duly config show",
            )


def stores(environ: Mapping[str, str]) -> Iterator[Ailment]:
    """Every store that was ever seen here still stands."""
    listed = addresses.state_folder(environ) / "stores"
    for path in addresses.remembered(environ):
        if not Path(path).exists():
            yield Ailment(
                check="store_gone",
                subject=path,
                text=f"the store {path} is gone: it stood here before",
                hint=f"duly restore BACKUP --store {path}; or, if it is not missed, take its line out of {listed}",
            )


def place(address: Address) -> Iterator[Ailment]:
    """The store lies on a disk of this machine that has room."""
    hint = "move it to a local disk: duly backup, and duly restore there"
    yield from _disk("the store", address.path, address.path.parent, hint)


def run_folder(folder: Path) -> Iterator[Ailment]:
    """The run folder of a store on a server lies, or will lie, on a disk of this machine that has room."""
    there = next(one for one in (folder, *folder.parents) if one.exists())
    yield from _disk("the run folder", there, there, "set XDG_STATE_HOME to a folder on a local disk")


def _disk(what: str, path: Path, folder: Path, hint: str) -> Iterator[Ailment]:
    mount = mounts.mount_of(path)
    if mount is not None and mounts.is_network(mount.kind):
        yield Ailment(
            check="network_fs",
            subject=mount.place,
            text=f"{what} lies on a network file system ({mount.kind} at {mount.place}), whose locks cannot be"
            " relied on",
            details={"file_system": mount.kind, "mount": mount.place},
            hint=hint,
        )
    disk = os.statvfs(folder)
    free, size = disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize
    least = max(DISK_LEAST_BYTES, min(int(size * DISK_LEAST_SHARE), DISK_ENOUGH_BYTES))
    if free < least:
        yield Ailment(
            check="disk_almost_full",
            subject=str(folder),
            text=f"{free:,} of {size:,} bytes are free on {what}'s disk; below {least:,} it is almost full",
            details={"free_bytes": free, "size_bytes": size, "least_bytes": least},
            hint="make room; duly prune takes old runs, their logs and their ledger away",
        )
    if disk.f_files and disk.f_favail < INODES_LEAST:
        yield Ailment(
            check="disk_almost_full",
            subject=str(folder),
            text=f"only {disk.f_favail:,} more files fit on {what}'s disk",
            details={"free_files": disk.f_favail, "least_files": INODES_LEAST},
            hint="make room; duly prune takes the logs of old runs away",
        )


def rights(run_folder: Path, file: Path | None = None) -> Iterator[Ailment]:
    """The run folder, and the file of a store in one, are this user's alone."""
    for path, wanted in _private(run_folder, file):
        try:
            found = path.stat()
        except OSError:
            continue
        if found.st_uid != os.geteuid() and os.geteuid() != 0:
            yield Ailment(
                check="not_ours",
                subject=str(path),
                text=f"{path} belongs to user {found.st_uid}, and this is {os.geteuid()}",
                details={"owner": found.st_uid, "user": os.geteuid()},
                hint="serve it as the user who owns it",
            )
        if found.st_mode & OTHERS:
            yield Ailment(
                check="open_to_others",
                subject=str(path),
                text=f"{path} is open to other users (mode {stat.S_IMODE(found.st_mode):04o}, not {wanted:04o})",
                details={"mode": f"{stat.S_IMODE(found.st_mode):04o}", "wanted": f"{wanted:04o}"},
                hint=f"chmod {wanted:04o} {path}",
            )


def locks(run_folder: Path) -> Iterator[Ailment]:
    """Who died left no lock file that nobody clears: a holder that serves clears those of others."""
    alive = holders_alive(run_folder)
    if alive:
        return
    stale = sorted(lock_files(run_folder) - alive)
    if stale:
        yield Ailment(
            check="stale_locks",
            subject=stale[0],
            text=f"{len(stale)} lock files of holders that died are left, of {', '.join(stale[:3])}"
            if stale[1:]
            else f"the lock file of {stale[0]} is left, which died",
            details={"holders": stale},
            hint="duly serve takes over what they held, and clears them",
        )


def _private(run_folder: Path, file: Path | None) -> Iterator[tuple[Path, int]]:
    if file is not None:
        yield file.resolve(), 0o600
    for folder in (run_folder, run_folder / "holders", run_folder / "attempts"):
        yield folder, 0o700
