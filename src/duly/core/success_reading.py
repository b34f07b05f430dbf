"""The reader of what a success is, as a task says it."""

from collections.abc import Mapping

from duly.core import matching
from duly.core.field import Field
from duly.core.reading import read_text, refuse_unknown, shown
from duly.core.successes import PARTS, Success
from duly.errors import Invalid

EXITS_MOST = 20
EXIT_MOST = 255
FILE_MOST = 4_095


def read(field: Field, value: object) -> Success:
    """Read a rule; raises Invalid naming the part."""
    if not isinstance(value, Mapping):
        raise Invalid(f'{shown(value)} is not an object such as {{"exit": 0, "file": "report.md"}}', field=field.path)
    refuse_unknown(value, PARTS, field.path)
    given = {name: found for name, found in value.items() if found is not None}
    if not given:
        raise Invalid("it asks for nothing", field=field.path, hint="exit, matches or file")
    return Success(
        exit=_exits(given["exit"], f"{field.path}.exit") if "exit" in given else None,
        matches=_expression(given["matches"], f"{field.path}.matches") if "matches" in given else None,
        file=_file(given["file"], f"{field.path}.file") if "file" in given else None,
    )


def _exits(value: object, path: str) -> tuple[int, ...]:
    given = value if isinstance(value, list | tuple) else [value]
    if not 1 <= len(given) <= EXITS_MOST:
        raise Invalid(f"there are {len(given)}, and 1 to {EXITS_MOST} are allowed", field=path)
    for one in given:
        if isinstance(one, bool) or not isinstance(one, int) or not 0 <= one <= EXIT_MOST:
            raise Invalid(f"{shown(one)} is no exit status from 0 to {EXIT_MOST}", field=path)
    return tuple(sorted(set(given)))


def _expression(value: object, path: str) -> str:
    text = read_text(value, path)
    if not text:
        raise Invalid("it is empty, and would match everything", field=path)
    try:
        matching.expression(text)
    except Invalid as bad:
        raise Invalid(bad.message, field=path, text=bad.text, at=bad.at, hint=bad.hint) from bad
    return text


def _file(value: object, path: str) -> str:
    name = read_text(value, path)
    if not name.strip():
        raise Invalid("the file's name is empty", field=path)
    if len(name.encode()) > FILE_MOST:
        raise Invalid(f"it has {len(name.encode()):,} bytes, and {FILE_MOST:,} are allowed", field=path)
    return name
