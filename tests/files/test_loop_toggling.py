"""Switching a loop file: one value is written, and not one byte more."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duly.errors import Refused
from duly.sources.finding import Root
from duly.sources.toggling import says, switched, toggle

HEAD = b"---\nname: x\nschedule: daily 09:00\n"

WAYS: dict[str, tuple[bytes, bytes]] = {
    "off": (HEAD + b"enabled: false\n---\nhi\n", HEAD + b"enabled: true\n---\nhi\n"),
    "unsaid": (HEAD + b"---\nhi", HEAD + b"enabled: true\n---\nhi"),
    "nothing": (HEAD + b"enabled:\nicon: sun\n---\nhi", HEAD + b"enabled: true\nicon: sun\n---\nhi"),
    "a text": (HEAD + b'enabled: "no"\n---\nhi', HEAD + b"enabled: true\n---\nhi"),
    "a note": (HEAD + b"enabled:   false   # until May\n---\nhi", HEAD + b"enabled:   true   # until May\n---\nhi"),
    "of another tool": (HEAD + b"disabled: true\n---\nhi", HEAD + b"disabled: true\nenabled: true\n---\nhi"),
    "in the text too": (HEAD + b"---\nenabled: false\n", HEAD + b"enabled: true\n---\nenabled: false\n"),
    "inside another": (
        HEAD + b"labels:\n  enabled: 'false'\n---\nhi",
        HEAD + b"labels:\n  enabled: 'false'\nenabled: true\n---\nhi",
    ),
    "windows": (
        b"\xef\xbb\xbf---\r\nname: x\r\nenabled: false\r\n---\r\nhi\r\n",
        b"\xef\xbb\xbf---\r\nname: x\r\nenabled: true\r\n---\r\nhi\r\n",
    ),
    "odd but kept": (
        b"---\nname:   'x'\n\n# why\nschedule: */5 * * * *\nunknown: {a: [1,2]}\n---\n  body \t\n\n",
        b"---\nname:   'x'\n\n# why\nschedule: */5 * * * *\nunknown: {a: [1,2]}\nenabled: true\n---\n  body \t\n\n",
    ),
}


@pytest.mark.parametrize("name", WAYS)
def test_only_the_value_is_written_and_all_else_stays_byte_for_byte(name: str) -> None:
    before, after = WAYS[name]
    assert switched(before, "x.md", on=True) == after
    assert says(after) is True
    assert says(switched(after, "x.md", on=False)) is False


@pytest.mark.parametrize(
    "data",
    [
        b"---\n{name: x, enabled: false}\n---\nhi",
        b'---\nname: x\n"enabled": false\n---\nhi',
        b"---\nname: [\n---\nhi",
        b"no front matter",
    ],
)
def test_a_file_in_which_it_cannot_be_written_alone_is_refused_and_says_why(data: bytes) -> None:
    with pytest.raises(Refused) as refused:
        switched(data, "x.md", on=True)
    assert refused.value.reason == "owned_by_file"
    assert "x.md" in refused.value.message


AROUND = [b"icon: sun", b"# why", b"", b"agent: plan", b"notes: |\n  enabled: maybe"]
KEYS = st.lists(st.sampled_from(AROUND), unique=True)


@given(KEYS, st.sampled_from([b"", b"enabled: false", b"enabled: true # x"]), st.binary(max_size=40), st.booleans())
def test_whatever_stands_around_it_stays(keys: list[bytes], own: bytes, text: bytes, crlf: bool) -> None:
    lines = [b"---", b"name: x", *keys, *([own] if own else []), b"---", b"hi"]
    head = (b"\r\n" if crlf else b"\n").join(line.replace(b"\n", b"\r\n") if crlf else line for line in lines)
    data = head + text.decode("utf-8", "ignore").replace("\0", "").encode()
    on = switched(data, "x.md", on=True)
    off = switched(on, "x.md", on=False)
    assert says(on) is True
    assert says(off) is False
    assert switched(off, "x.md", on=True) == on
    assert [line for line in on.splitlines() if not line.startswith(b"enabled:")] == [
        line for line in data.splitlines() if not line.startswith(b"enabled:")
    ]


def test_the_file_is_put_in_place_whole_and_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "x.md"
    path.write_bytes(HEAD + b"---\nhi\n")
    path.chmod(0o640)
    assert toggle(str(path), None, on=True) is True
    assert says(path.read_bytes()) is True
    assert path.stat().st_mode & 0o777 == 0o640
    assert os.listdir(tmp_path) == ["x.md"]  # noqa: PTH208 - nothing is left beside it
    before = path.stat()
    assert toggle(str(path), None, on=True) is False
    assert path.stat() == before


def test_a_link_stays_a_link_and_leads_no_further_than_it_may(tmp_path: Path) -> None:
    folder = tmp_path / "app"
    folder.mkdir()
    (folder / "real.md").write_bytes(HEAD + b"---\nhi\n")
    (folder / "link.md").symlink_to(folder / "real.md")
    root = Root(folder=folder, within=folder)
    assert toggle(str(folder / "link.md"), root, on=True) is True
    assert (folder / "link.md").is_symlink()
    assert says((folder / "real.md").read_bytes()) is True
    outside = tmp_path / "outside.md"
    outside.write_bytes(HEAD + b"---\nhi\n")
    (folder / "out.md").symlink_to(outside)
    with pytest.raises(Refused):
        toggle(str(folder / "out.md"), root, on=True)
    assert says(outside.read_bytes()) is None


def test_a_file_that_is_not_there_or_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused) as refused:
        toggle(str(tmp_path / "gone.md"), None, on=True)
    assert refused.value.reason == "owned_by_file"
    (tmp_path / "dir.md").mkdir()
    with pytest.raises(Refused):
        toggle(str(tmp_path / "dir.md"), None, on=True)
