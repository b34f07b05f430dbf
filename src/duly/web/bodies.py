"""Bodies of requests, read strictly: JSON in UTF-8, each key once, no number that JSON does not know."""

import json
from typing import Annotated, Any

from fastapi import Depends, Request

from duly.errors import Invalid
from duly.web.problems import Unreadable

BODY_MOST = 1024 * 1024
"""Bytes of a body; the guard before all routes refuses more with 413."""
DEPTH_MOST = 100
JSON = "application/json"
MERGE = "application/merge-patch+json"
UTF_8 = frozenset({"charset=utf-8", 'charset="utf-8"'})


async def _asked(request: Request) -> dict[str, Any]:
    """Read an object; none at all where nothing was sent."""
    data = await request.body()
    if not data:
        return {}
    check_media(request, (JSON, MERGE) if request.method == "PATCH" else (JSON,))
    read = read_json(data)
    if not isinstance(read, dict):
        raise Invalid("an object is wanted")
    return read


Asked = Annotated[dict[str, Any], Depends(_asked)]
"""The object that was sent; empty where nothing was. Other shapes and kinds of bodies are refused."""


def check_media(request: Request, known: tuple[str, ...]) -> None:
    """Refuse (415) a body that says it is something else; one without a word is taken for JSON."""
    given = request.headers.get("content-type")
    if given is None:
        return
    kind, *parameters = (part.strip().lower() for part in given.split(";"))
    if kind not in known or any(one.startswith("charset=") and one not in UTF_8 for one in parameters):
        raise Unreadable(415, f"a body is {' or '.join(known)}, in UTF-8", hint=f"Content-Type: {known[0]}")


def read_json(data: bytes) -> object:
    """Read JSON; Unreadable (400) where it is none."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise Unreadable(400, f"the body is not UTF-8 (byte {error.start})") from error
    try:
        read = json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant, parse_int=_whole)
        _check(read, 0)
    except json.JSONDecodeError as error:
        message = f"the body is not JSON: {error.msg.lower()} (line {error.lineno}, column {error.colno})"
        raise Unreadable(400, message) from error
    except RecursionError as error:
        raise _too_deep() from error
    return read


def refuse_others(given: dict[str, Any], *known: str) -> None:
    """Refuse keys of a body that nobody reads."""
    from duly.core.reading import nearest, shown

    for key in given:
        if key not in known:
            near = nearest(key, known)
            raise Invalid(
                f"{shown(key)} is not known here",
                field=key,
                hint=near,
                details={"allowed": list(known)},
            )


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    read = dict(pairs)
    if len(read) != len(pairs):
        raise Unreadable(400, "the body is not JSON that can be relied on: a key stands in it twice")
    return read


def _no_constant(word: str) -> object:
    raise Unreadable(400, f"the body is not JSON: {word} is no number of it")


def _whole(digits: str) -> int:
    if len(digits) > 30:
        raise Unreadable(400, "the body has a number with more than 30 digits")
    return int(digits)


def _check(value: object, depth: int) -> None:
    if depth > DEPTH_MOST:
        raise _too_deep()
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise Unreadable(400, "a text of the body has half a character (a lone surrogate)") from error
        return
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        raise Unreadable(400, "the body has a number that is too large")
    inner = [*value, *value.values()] if isinstance(value, dict) else value if isinstance(value, list) else ()
    for one in inner:
        _check(one, depth + 1)


def _too_deep() -> Unreadable:
    return Unreadable(400, f"lists and objects stand in each other more than {DEPTH_MOST} deep")
