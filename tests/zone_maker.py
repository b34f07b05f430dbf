"""Zone data made by a test: files as the zone compiler writes them, in a folder taken for the system's."""

import io
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from duly import zones

TOWN = "Test/Town"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Change = tuple[datetime, timedelta]


def compiled(before: timedelta, changes: Sequence[Change] = ()) -> bytes:
    """A zone that is so far ahead of UTC at first, and from each of these instants on so far."""
    offsets = list(dict.fromkeys([before, *(offset for _, offset in changes)]))
    kinds = b"".join(struct.pack(">lbb", int(offset.total_seconds()), 0, 0) for offset in offsets)
    counts = struct.pack(">6l", 0, 0, 0, len(changes), len(offsets), 4)
    times = b"".join(struct.pack(">q", int((at - EPOCH).total_seconds())) for at, _ in changes)
    which = bytes(offsets.index(offset) for _, offset in changes)
    empty = struct.pack(">6l", 0, 0, 0, 0, 1, 4) + struct.pack(">lbb", 0, 0, 0) + b"XXX\0"
    last = changes[-1][1] if changes else before
    behind = -int(last.total_seconds())
    minutes, seconds = divmod(abs(behind), 60)
    footer = f"<XXX>{'-' if behind < 0 else ''}{minutes // 60}:{minutes % 60:02d}:{seconds:02d}"
    head = b"TZif2" + bytes(15)
    return head + empty + head + counts + times + which + kinds + b"XXX\0" + b"\n" + footer.encode() + b"\n"


def town(before: timedelta, changes: Sequence[Change] = ()) -> ZoneInfo:
    return ZoneInfo.from_file(io.BytesIO(compiled(before, changes)), key=TOWN)


def write(folder: Path, version: str, before: timedelta, changes: Sequence[Change] = ()) -> Path:
    """Write zone data of a version, with one town in them."""
    (folder / "Test").mkdir(parents=True, exist_ok=True)
    (folder / "tzdata.zi").write_text(f"# version {version}\nZ {TOWN} 0 - LMT\n")
    (folder / TOWN).write_bytes(compiled(before, changes))
    return folder


@contextmanager
def zone_data(folder: Path) -> Iterator[None]:
    """Let this process have these zone data for a while, as if it were one that was started with them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(zones, "TZPATH", (str(folder),))
        _forget()
        try:
            yield
        finally:
            patch.undo()
            _forget()


def _forget() -> None:
    for kept in (
        zones.names,
        zones.zone_data_version,
        zones._spelled,
        zones._load,
        zones.zone,
        zones._system_folder,
        zones._system_version,
    ):
        kept.cache_clear()
