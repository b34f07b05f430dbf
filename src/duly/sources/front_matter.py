"""The front matter of a loop file and its text below: read leniently, every value with the line it stands in.

YAML is read as YAML 1.2 has it, and moments stay texts. Of what YAML does not take, one thing is read all the same: a
value without quotes that holds a colon, or begins with a sign that means something to YAML, such as a cron line's `*`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from duly.core.loops import FILE_MOST, Fault

BOM = b"\xef\xbb\xbf"
OTHER_BOMS = (b"\xff\xfe", b"\xfe\xff")
NODES_MOST = 2_000
"""Values of one front matter, those that are named once and used again counted each time."""
DEPTH_MOST = 20
DIGITS_MOST = 18
MARKERS = ("<<<<<<<", "=======", ">>>>>>>")
PLAIN_LINE = re.compile(r"([A-Za-z_][\w-]*[ \t]*:[ \t]+)([^\s\"'\[{|>#].*)")
MEANS_SOMETHING = tuple("*&!%@`")
WHOLE = re.compile(r"[-+]?[0-9]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontMatter:
    """A file taken apart: its values by their keys, the line of each key, and the text below."""

    values: Mapping[str, Any]
    lines: Mapping[str, int]
    text: str
    text_line: int


class Unreadable(Exception):
    """The file cannot be taken apart; says why."""

    def __init__(self, message: str, *, line: int | None = None, field: str = "file", hint: str | None = None) -> None:
        super().__init__(message)
        self.fault = Fault(field=field, message=message, line=line, hint=hint)


def read(data: bytes) -> FrontMatter:
    """Take a file apart; raises Unreadable with the line."""
    lines = [line.removesuffix("\r") for line in _decoded(data).split("\n")]
    if lines[0].rstrip() != "---":
        raise Unreadable("it does not begin with a line ---", line=1, hint="front matter between two lines ---")
    end = next((at for at, line in enumerate(lines[1:], 1) if line.rstrip() in ("---", "...")), None)
    _refuse_conflict(lines)
    if end is None:
        raise Unreadable("the front matter has no end: a second line --- is missing", line=1)
    head = lines[1:end]
    values, at = _mapping(head)
    body = lines[end + 1 :]
    blank = next((count for count, line in enumerate(body) if line.strip()), len(body))
    return FrontMatter(
        values=values,
        lines=at,
        text="\n".join(body[blank:]).rstrip(),
        text_line=min(end + 2 + blank, len(lines)),
    )


def _decoded(data: bytes) -> str:
    if len(data) > FILE_MOST:
        raise Unreadable(f"it has {len(data):,} bytes, and {FILE_MOST:,} are allowed")
    if data.startswith(OTHER_BOMS):
        raise Unreadable("it is UTF-16, and UTF-8 is read", line=1)
    if not data.removeprefix(BOM).strip():
        raise Unreadable("it is empty", line=1)
    if b"\0" in data:
        raise Unreadable("it holds a NUL character", line=data[: data.index(b"\0")].count(b"\n") + 1)
    try:
        return data.removeprefix(BOM).decode()
    except UnicodeDecodeError as bad:
        line = data.removeprefix(BOM)[: bad.start].count(b"\n") + 1
        raise Unreadable("it is not valid UTF-8", line=line) from None


def _refuse_conflict(lines: Sequence[str]) -> None:
    """A merge that nobody finished: both sides stand in the file, and neither is meant."""
    wanted, first = 0, 0
    for at, line in enumerate(lines, 1):
        if line == MARKERS[wanted] or line.startswith(f"{MARKERS[wanted]} "):
            first = at if wanted == 0 else first
            wanted += 1
        if wanted == len(MARKERS):
            raise Unreadable(f"an unfinished merge: conflict markers in lines {first} to {at}", line=first)


def _mapping(head: Sequence[str]) -> tuple[dict[str, Any], dict[str, int]]:
    node = _composed(head)
    if node is None:
        return {}, {}
    if node.id != "mapping":
        raise Unreadable("the front matter is no list of `key: value`", line=2)
    counted = [0]
    values: dict[str, Any] = {}
    lines: dict[str, int] = {}
    for key, value in node.value:
        name, line = str(key.value), key.start_mark.line + 2
        if key.id != "scalar":
            raise Unreadable("a key is no plain word", line=line)
        if name in values:
            raise Unreadable(f"it is there twice, in lines {lines[name]} and {line}", line=line, field=name)
        lines[name] = line
        values[name] = _value(value, counted)
    return values, lines


def _composed(head: Sequence[str]) -> Any:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    strict: Exception | None = None
    for lines in (head, [_mended(line) for line in head]):
        try:
            return YAML(typ="safe", pure=True).compose("\n".join(lines) + "\n")
        except RecursionError:
            raise Unreadable("the front matter is nested too deep") from None
        except (YAMLError, ValueError) as bad:
            strict = strict or bad
    mark = strict.problem_mark if isinstance(strict, MarkedYAMLError) else None
    said = (strict.problem if isinstance(strict, MarkedYAMLError) else None) or str(strict).splitlines()[0]
    raise Unreadable(f"it is no YAML: {said}", line=None if mark is None else min(mark.line, len(head) - 1) + 2)


def _mended(line: str) -> str:
    """Put quotes around a plain value that YAML would not take."""
    found = PLAIN_LINE.fullmatch(line)
    if found is None:
        return line
    value, mark, note = found[2].partition(" #")
    value = value.rstrip()
    if ": " not in value and not value.endswith(":") and not value.startswith(MEANS_SOMETHING):
        return line
    quoted = value.replace("'", "''")
    return f"{found[1]}'{quoted}'{mark}{note}"


def _value(node: Any, counted: list[int], depth: int = 0) -> Any:
    counted[0] += 1
    if counted[0] > NODES_MOST:
        raise Unreadable(f"the front matter has more than {NODES_MOST:,} values", line=node.start_mark.line + 2)
    if depth > DEPTH_MOST:
        raise Unreadable("the front matter is nested too deep", line=node.start_mark.line + 2)
    if node.id == "sequence":
        return [_value(one, counted, depth + 1) for one in node.value]
    if node.id == "mapping":
        return {str(key.value): _value(value, counted, depth + 1) for key, value in node.value}
    return _scalar(node.tag.rpartition(":")[2], node.value)


def _scalar(kind: str, text: str) -> Any:
    if kind == "null":
        return None
    if kind == "bool":
        return text.lower() == "true"
    if kind == "int" and len(text) <= DIGITS_MOST and WHOLE.fullmatch(text):
        return int(text)
    if kind == "float":
        try:
            return float(text)
        except ValueError:
            return text
    return text
