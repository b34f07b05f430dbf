"""Plain YAML, written so that readers of its old and its new version understand the same."""

import json
import re
from collections.abc import Mapping, Sequence

# What no reader takes for anything but a text.
BARE = re.compile(r"[A-Za-z/][A-Za-z0-9_./@+-]*")
NOT_TEXTS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
# What may not stand as it is, or breaks a line for some readers and not for others.
UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
STEP = "  "


def yaml_lines(value: object, indent: str = "") -> list[str]:
    """Write a mapping or a list as lines, one item each; all within is JSON's kind of values."""
    if isinstance(value, Mapping):
        return [line for key, item in value.items() for line in _item(f"{_text(str(key))}:", item, indent)]
    assert isinstance(value, Sequence)
    return [line for item in value for line in _item("-", item, indent)]


def _item(head: str, item: object, indent: str) -> list[str]:
    if isinstance(item, str):
        block = _block(item)
        if block is None:
            return [f"{indent}{head} {_text(item)}"]
        mark, lines = block
        return [f"{indent}{head} {mark}", *(f"{indent}{STEP}{line}" if line else "" for line in lines)]
    if not isinstance(item, Mapping | list | tuple) or not item:
        return [f"{indent}{head} {json.dumps(item)}"]
    inner = yaml_lines(item, indent + STEP)
    if head == "-":
        # The first line of what is in a list stands beside its dash.
        return [f"{indent}- {inner[0].removeprefix(indent + STEP)}", *inner[1:]]
    return [f"{indent}{head}", *inner]


def _text(text: str) -> str:
    if BARE.fullmatch(text) and text.lower() not in NOT_TEXTS:
        return text
    return UNPRINTABLE.sub(_escaped, json.dumps(text, ensure_ascii=False))


def _escaped(match: re.Match[str]) -> str:
    return f"\\u{ord(match.group()):04x}"


def _block(text: str) -> tuple[str, list[str]] | None:
    """Lay a text of several lines out as it is, where every reader gives it back so."""
    body = text.removesuffix("\n")
    lines = body.split("\n")
    if len(lines) < 2 or "\t" in text or UNPRINTABLE.search(text) or lines[0][:1] in {" ", ""}:
        return None
    if any(line != line.rstrip() or (not line.strip() and line) for line in lines) or not lines[-1]:
        return None
    return ("|" if text.endswith("\n") else "|-"), lines
