"""The readers of what a call is: which function, and the arguments it is given as JSON."""

import json
from collections.abc import Mapping
from math import isfinite

from duly.core.field import Field
from duly.core.reading import read_text, shown
from duly.errors import Invalid

ARGUMENTS_DEEP_MOST = 50
INTEGER_MOST = 2**63


def read(field: Field, value: object) -> object:
    """Read a function's name or its arguments; raises Invalid naming the field."""
    return _function(field, value) if field.kind == "function" else _arguments(field, value)


def _function(field: Field, value: object) -> str:
    text = read_text(value, field.path)
    if len(text) > field.most:
        raise Invalid(f"it has {len(text):,} characters, and {field.most:,} are allowed", field=field.path)
    module, colon, name = text.partition(":")
    if not colon:
        hint = ":".join(text.rsplit(".", 1)) if "." in text else "package.module:function"
        raise Invalid(f"{shown(text)} has no colon between module and function", field=field.path, text=text, hint=hint)
    for words, at in ((module, 0), (name, len(module) + 1)):
        if not all(word.isidentifier() for word in words.split(".")):
            raise Invalid(
                f"{shown(words)} is not the name of a {'function' if at else 'module'}",
                field=field.path,
                text=text,
                at=at,
                hint="package.module:function",
            )
    return text


def _arguments(field: Field, value: object) -> tuple[object, ...] | Mapping[str, object]:
    hint = '["one", 2], or {"name": "value"}'
    if isinstance(value, str) or not isinstance(value, list | tuple | Mapping):
        raise Invalid(f"{shown(value)} is neither a list nor an object", field=field.path, hint=hint)
    read = _json(value, field.path)
    size = len(json.dumps(read))
    if size > field.most:
        raise Invalid(f"as JSON it has {size:,} characters, and {field.most:,} are allowed", field=field.path)
    if isinstance(read, list):
        return tuple(read)
    assert isinstance(read, dict)
    for name in read:
        if not name.isidentifier():
            raise Invalid(f"{shown(name)} is not the name of an argument", field=field.path)
    return read


def _json(value: object, path: str, deep: int = 0) -> object:
    """Give plain JSON of it, or refuse what is none."""
    if deep > ARGUMENTS_DEEP_MOST:
        raise Invalid(f"it is nested deeper than {ARGUMENTS_DEEP_MOST} levels", field=path)
    if isinstance(value, str):
        return read_text(value, path)
    if value is None or isinstance(value, bool) or (isinstance(value, float) and isfinite(value)):
        return value
    if isinstance(value, int):
        if not -INTEGER_MOST <= value < INTEGER_MOST:
            raise Invalid("a whole number has 64 bits at most", field=path)
        return value
    if isinstance(value, list | tuple):
        return [_json(item, f"{path}[{at}]", deep + 1) for at, item in enumerate(value)]
    if isinstance(value, Mapping):
        return {read_text(key, path): _json(item, f"{path}.{key}", deep + 1) for key, item in value.items()}
    raise Invalid(f"{shown(value)} is not JSON", field=path)
