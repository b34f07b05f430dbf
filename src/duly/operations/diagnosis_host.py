"""What `doctor` looks at on this machine: the settings, the stores that were here, disk, rights, locks."""

import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from duly import config
from duly.errors import Invalid
from duly.operations.ailment import Ailment
from duly.operations.serving import holders_alive, lock_files
from duly.store import address as addresses
from duly.store import mounts
from duly.store.address import Address

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
    for setting in config.SETTINGS:
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
    mount = mounts.mount_of(address.path)
    if mount is not None and mounts.is_network(mount.kind):
        yield Ailment(
            check="network_fs",
            subject=mount.place,
            text=f"the store lies on a network file system ({mount.kind} at {mount.place}), whose locks cannot be"
            " relied on",
            details={"file_system": mount.kind, "mount": mount.place},
            hint="move it to a local disk: duly backup, and duly restore there",
        )
    disk = os.statvfs(address.path.parent)
    free, size = disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize
    least = max(DISK_LEAST_BYTES, min(int(size * DISK_LEAST_SHARE), DISK_ENOUGH_BYTES))
    if free < least:
        yield Ailment(
            check="disk_almost_full",
            subject=str(address.path.parent),
            text=f"{free:,} of {size:,} bytes are free on the store's disk; below {least:,} it is almost full",
            details={"free_bytes": free, "size_bytes": size, "least_bytes": least},
            hint="make room; duly prune takes old runs, their logs and their ledger away",
        )
    if disk.f_files and disk.f_favail < INODES_LEAST:
        yield Ailment(
            check="disk_almost_full",
            subject=str(address.path.parent),
            text=f"only {disk.f_favail:,} more files fit on the store's disk",
            details={"free_files": disk.f_favail, "least_files": INODES_LEAST},
            hint="make room; duly prune takes the logs of old runs away",
        )


def rights(address: Address) -> Iterator[Ailment]:
    """The store, its log and its run folder are this user's alone."""
    for path, wanted in _private(address):
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


def locks(address: Address) -> Iterator[Ailment]:
    """Who died left no lock file that nobody clears: a holder that serves clears those of others."""
    alive = holders_alive(address.run_folder)
    if alive:
        return
    stale = sorted(lock_files(address.run_folder) - alive)
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


def _private(address: Address) -> Iterator[tuple[Path, int]]:
    yield address.path.resolve(), 0o600
    yield address.run_folder, 0o700
    yield address.run_folder / "holders", 0o700
    yield address.run_folder / "attempts", 0o700
