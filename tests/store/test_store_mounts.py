"""Stores on network file systems, told by a table of mounts that the test writes."""

from pathlib import Path

import pytest

from by_hand import by_hand
from duly.app import service
from duly.errors import StoreAway
from duly.store import Store, mounts
from duly.store.address import Address

pytestmark = pytest.mark.file("place")

TABLE = """\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:25 / {folder} rw - {kind} server:/export rw
31 30 0:26 / {folder}/deep rw master:1 - tmpfs tmpfs rw
32 22 0:27 / {folder}\\040two rw - cifs //server/share rw
a line that is none
"""


def table(folder: Path, kind: str) -> Path:
    path = folder / "mountinfo"
    path.write_text(TABLE.format(folder=folder / "share", kind=kind))
    return path


def test_the_mount_of_a_path_is_the_innermost_one_and_names_with_blanks_are_read(tmp_path: Path) -> None:
    given = table(tmp_path, "nfs4")
    kinds = {
        name: found.kind if (found := mounts.mount_of(tmp_path / name, given)) else None
        for name in ("share/duly.db", "share", "share2/duly.db", "share/deep/duly.db", "share two/a/b/duly.db", "x")
    }
    assert kinds == {
        "share/duly.db": "nfs4",
        "share": "nfs4",
        "share2/duly.db": "ext4",
        "share/deep/duly.db": "tmpfs",
        "share two/a/b/duly.db": "cifs",
        "x": "ext4",
    }


def test_a_link_into_a_network_is_followed_to_where_the_file_is(tmp_path: Path) -> None:
    (tmp_path / "share").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "share")
    with pytest.raises(StoreAway, match="nfs"):
        mounts.check_local(tmp_path / "link" / "duly.db", table(tmp_path, "nfs"))


@pytest.mark.parametrize(
    ("kind", "network"),
    [
        *((kind, True) for kind in ("nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "fuse.sshfs", "fuse.rclone")),
        *((kind, False) for kind in ("ext4", "xfs", "btrfs", "zfs", "overlay", "tmpfs", "fuseblk", "virtiofs")),
        *((kind, False) for kind in ("fuse.fuse-overlayfs", "fuse.gocryptfs")),
    ],
)
def test_the_kinds_that_cross_a_network_are_known(tmp_path: Path, kind: str, network: bool) -> None:
    assert mounts.is_network(kind) == network


def test_where_the_system_does_not_tell_nothing_is_refused(tmp_path: Path) -> None:
    mounts.check_local(tmp_path / "duly.db", tmp_path / "nowhere")
    assert mounts.mount_of(Path("/")) is not None, "this system does"


def test_serve_refuses_a_store_on_a_network_and_makes_nothing_unless_it_is_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "share").mkdir()
    monkeypatch.setattr(mounts, "MOUNTS", table(tmp_path, "nfs4"))
    monkeypatch.setenv("HOME", str(tmp_path))
    address = Address(path=tmp_path / "share" / "duly.db")
    with pytest.raises(StoreAway, match="network file system") as refused:
        service.serve(address, until_idle=True)
    assert "PostgreSQL" in str(refused.value.hint)
    assert list(address.path.parent.iterdir()) == []
    assert service.serve(address, until_idle=True, allow_network_fs=True) == 0
    with pytest.raises(StoreAway):
        service.serve(address, until_idle=True)


def test_a_second_machine_that_serves_a_shared_store_is_refused_while_the_first_beats(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    address = Address(path=tmp_path / "duly.db")
    assert service.serve(address, until_idle=True, allow_network_fs=True) == 0
    store = Store.open(address)
    with store.write() as session:
        by_hand(session.line, "UPDATE holders SET state = 'alive', host = 'other', boot = 'another boot'")
    with pytest.raises(StoreAway, match="other serves this store too"):
        service.serve(address, until_idle=True, allow_network_fs=True)
    with store.write() as session:
        by_hand(session.line, "UPDATE holders SET last_beat_us = last_beat_us - 200000000")
    store.close()
    assert service.serve(address, until_idle=True, allow_network_fs=True) == 0
