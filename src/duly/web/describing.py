"""What a route says of itself: what it takes and answers, as OpenAPI has it, with an example of each.

A shape is a name in `answers.SHAPES`; `[task]` is a list of them, in pages. A `body` is a JSON Schema.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from duly.web.answers import EXAMPLES, SHAPES
from duly.web.bodies import JSON, MERGE
from duly.web.problems import MEDIA, TITLES

WRITTEN = "x-example"
"""The key under which an example waits as a text."""
ANY_ROUTE = (400, 401, 403, 404, 405, 408, 413, 415, 421, 422, 429, 503)
"""What every route that wants a token may answer."""
OPEN_ROUTE = (400, 405, 408, 413, 421)


def described(
    summary: str,
    *,
    right: str | None,
    answer: str | None = None,
    status: int = 200,
    body: Mapping[str, Any] | None = None,
    example: object = None,
    merge: bool = False,
    errors: Sequence[int] = (),
    headers: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Give what a route's decorator is told; `example` is one of its body, `errors` are statuses beyond ANY_ROUTE."""
    told: dict[str, Any] = {"description": TITLES.get(status, "Done")}
    if answer is not None:
        told["content"] = {JSON: {"schema": schema_of(answer), WRITTEN: as_text(example_of(answer))}}
    if headers:
        told["headers"] = {name: {"description": what, "schema": {"type": "string"}} for name, what in headers.items()}
    usual = ANY_ROUTE if right is not None else OPEN_ROUTE
    answers: dict[int | str, Any] = {one: problem(one) for one in sorted({*usual, *errors})}
    extra: dict[str, Any] = {"security": [] if right is None else [{"token": [right]}, {"session": []}]}
    if body is not None:
        content: dict[str, Any] = {"schema": dict(body)}
        if example is not None:
            content[WRITTEN] = as_text(example)
        kinds = (MERGE, JSON) if merge else (JSON,)
        extra["requestBody"] = {"required": bool(body.get("required")), "content": dict.fromkeys(kinds, content)}
    return {
        "summary": summary,
        "response_model": None,
        "status_code": status,
        "responses": {status: told} | answers,
        "openapi_extra": extra,
    }


def as_text(example: object) -> str:
    """Write an example as a text, so that the framework does not leave out what is null in it; see `unfold`."""
    return json.dumps(example)


def unfold(page: Mapping[str, Any]) -> None:
    """Put the examples of a page in the place of their texts."""
    for methods in page["paths"].values():
        for told in methods.values():
            answers = [*told.get("responses", {}).values(), told.get("requestBody", {})]
            for content in (one for answer in answers for one in answer.get("content", {}).values()):
                if WRITTEN in content:
                    content["example"] = json.loads(content.pop(WRITTEN))


def problem(status: int) -> dict[str, Any]:
    """Describe an error's answer."""
    return {
        "description": TITLES[status],
        "content": {MEDIA: {"schema": {"$ref": "#/components/schemas/problem"}}},
    }


def schema_of(answer: str) -> dict[str, Any]:
    """Give the schema of a shape by its name, or of a list of it."""
    if not answer.startswith("["):
        assert answer in SHAPES, answer
        return {"$ref": f"#/components/schemas/{answer}"}
    return {
        "type": "object",
        "required": ["items", "next"],
        "properties": {
            "items": {"type": "array", "items": schema_of(answer[1:-1])},
            "next": {"type": ["string", "null"], "description": "what continues the list, as `cursor`"},
        },
    }


def example_of(answer: str) -> object:
    """Give an example of a shape, or of a list of it."""
    if answer.startswith("["):
        return {"items": [EXAMPLES[answer[1:-1]]], "next": None}
    return EXAMPLES[answer]


def components() -> dict[str, Any]:
    """Give the schemas of all shapes, made from the table of their fields."""
    made = {name: _object(fields) for name, fields in SHAPES.items()}
    made["problem"] = _object(SHAPES["problem"])
    return made


def _object(fields: Mapping[str, str]) -> dict[str, Any]:
    return {
        "type": "object",
        "required": sorted(fields),
        "properties": {name: _kind(word) for name, word in fields.items()},
    }


def _kind(word: str) -> dict[str, Any]:
    """Read one word of the table: `text`, `instant?` (or null), `[run]` (a list)."""
    if word.endswith("?"):
        inner = _kind(word[:-1])
        if isinstance(inner.get("type"), str):
            return inner | {"type": [inner["type"], "null"]}
        return {"anyOf": [inner, {"type": "null"}]}
    if word.startswith("["):
        return {"type": "array", "items": _kind(word[1:-1])}
    known: Mapping[str, dict[str, Any]] = {
        "text": {"type": "string"},
        "instant": {"type": "string", "format": "date-time"},
        "whole": {"type": "integer"},
        "number": {"type": "number"},
        "truth": {"type": "boolean"},
        "object": {"type": "object"},
        "any": {},
    }
    if word in known:
        return dict(known[word])
    assert word in SHAPES, word
    return {"$ref": f"#/components/schemas/{word}"}
