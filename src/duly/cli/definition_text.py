"""A definition as text to edit: TOML, with the rules that are in force by default as comments, and read back.

Every text that can stand in a definition comes back byte for byte.
"""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time

from duly.core import spans
from duly.core.rule_fields import RULES
from duly.errors import Invalid

TEXT_MOST = 16 * 1024 * 1024
"""Bytes of a text that is read as a definition."""
LINE = 100
BARE = re.compile(r"[A-Za-z0-9_-]+")
PLACE = re.compile(r" \(at line (\d+), column (\d+)\)$")
AT_END = " (at end of document)"
# In this order; what else a definition holds follows.
TOP = ("name", "project", "description", "enabled", "triggers", "zone")
TABLES = ("labels", "action", "rules")


def write(
    definition: Mapping[str, object], *, head: Sequence[str], rules: Mapping[str, object], origins: Mapping[str, str]
) -> str:
    """Write a definition as its author wrote it; `rules` are those in force, `origins` whose default some are."""
    definition = _with_args_as_text(definition)
    given = {name: definition[name] for name in (*TOP, *definition) if name in definition and name not in TABLES}
    lines = [*(f"# {line}".rstrip() for line in head), ""]
    lines += [f"{_key(name)} = {_value(value)}" for name, value in given.items()]
    for name in TABLES:
        lines += ["", *_table((name,), definition.get(name))]
    own = definition.get("rules")
    lines += _defaults(rules, origins, own if isinstance(own, Mapping) else {})
    return "\n".join(lines) + "\n"


def read(text: str) -> dict[str, object]:
    """Read such a text into JSON; Invalid names the line, and draws it with the place."""
    if len(text.encode("utf-8", "surrogateescape")) > TEXT_MOST:
        raise Invalid(f"it is longer than {TEXT_MOST // 1024 // 1024} MiB", field="text")
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as bad:
        raise _told(text, str(bad)) from None
    except RecursionError:
        raise Invalid("it is nested too deep", field="text") from None
    return _with_args_read({name: _json(value) for name, value in found.items()})


def _with_args_as_text(definition: Mapping[str, object]) -> Mapping[str, object]:
    """Write arguments that hold a null, which TOML has not, as the JSON they are."""
    action = definition.get("action")
    if not isinstance(action, Mapping) or not _holds_null(action.get("args", ())):
        return definition
    return {**definition, "action": {**action, "args": json.dumps(action["args"], ensure_ascii=False)}}


def _with_args_read(definition: dict[str, object]) -> dict[str, object]:
    action = definition.get("action")
    if isinstance(action, dict) and isinstance(action.get("args"), str):
        try:
            action["args"] = json.loads(action["args"])
        except ValueError as bad:
            raise Invalid("it is a text, and not the JSON of a list or an object", field="action.args") from bad
    return definition


def _holds_null(value: object) -> bool:
    match value:
        case None:
            return True
        case Mapping():
            return any(_holds_null(item) for item in value.values())
        case list() | tuple():
            return any(_holds_null(item) for item in value)
        case _:
            return False


def is_empty(text: str) -> bool:
    """Whether nothing is left of a text but blanks and comments."""
    return all(not line.strip() or line.lstrip().startswith("#") for line in text.splitlines())


def _told(text: str, message: str) -> Invalid:
    place = PLACE.search(message)
    lines = text.splitlines() or [""]
    if place is None:
        return Invalid(f"it is not TOML: {message.removesuffix(AT_END)}", field=f"line {len(lines)}")
    number, column = int(place[1]), int(place[2])
    line = lines[number - 1] if number <= len(lines) else ""
    return Invalid(
        f"it is not TOML: {message[: place.start()]}", field=f"line {number}", text=line, at=min(column - 1, len(line))
    )


def _json(value: object) -> object:
    """Turn what TOML has and JSON has not into texts: times as people write them."""
    match value:
        case dict():
            return {key: _json(item) for key, item in value.items()}
        case list():
            return [_json(item) for item in value]
        case datetime():
            if value.tzinfo is not None:
                return spans.write_instant(value.astimezone(UTC))
            return value.isoformat(" ", "seconds")
        case date() | time():
            return value.isoformat()
        case _:
            return value


def _table(path: tuple[str, ...], value: object) -> Iterator[str]:
    yield f"[{'.'.join(_key(step) for step in path)}]"
    if not isinstance(value, Mapping):
        return
    nested = {}
    for key, item in value.items():
        # Rules stay in one table, so that the ones below it which are in force by default can be uncommented in place.
        if isinstance(item, Mapping) and item and path != ("rules",):
            nested[key] = item
        elif not isinstance(item, Mapping) or item:
            yield f"{_key(key)} = {_value(item)}"
    for key, item in nested.items():
        yield ""
        yield from _table((*path, key), item)


def _defaults(rules: Mapping[str, object], origins: Mapping[str, str], own: Mapping[str, object]) -> Iterator[str]:
    """Write the rules that nobody wrote as comments: to see them, and to take the mark away."""
    open_ = [field for field in RULES if field.name not in own]
    if not open_:
        return
    yield ""
    yield "# In force by default; take the mark away to make one the task's own."
    for field in open_:
        value = rules.get(field.name)
        text = f"# {field.name} = {_value(value)}" if value not in (None, {}, []) else f"# {field.name} ="
        notes = [f"{origins[field.name]}'s default"] if field.name in origins else []
        notes += [field.default_text] if value is None and field.default_text else []
        notes += [", ".join(field.allowed)] if field.allowed else []
        yield f"{text:<32} # {'; '.join(notes)}" if notes else text


def _key(name: str) -> str:
    return name if BARE.fullmatch(name) else _text(name)


def _value(value: object) -> str:
    match value:
        case str():
            return _text(value, long="\n" in value)
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(value)
        case Mapping():
            return "{" + ", ".join(f"{_key(str(key))} = {_value(item)}" for key, item in value.items()) + "}"
        case list() | tuple():
            items = [_value(item) for item in value]
            line = f"[{', '.join(items)}]"
            if len(line) <= LINE and "\n" not in line:
                return line
            return "\n".join(["[", *(f"    {item}," for item in items), "]"])
        case _:
            return _text("")


def _text(value: str, *, long: bool = False) -> str:
    if long and _stands_as_it_is(value):
        return f"'''\n{value}'''"
    # JSON's escapes are TOML's; DEL is one more that may not stand by itself.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _stands_as_it_is(value: str) -> bool:
    plain = all(char in "\n\t" or (char >= " " and char != "\x7f") for char in value)
    return plain and "'''" not in value and not value.endswith("'")
