"""Errors as answers: `application/problem+json` with the reason, the figures, and what was wrong where."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from duly.errors import DulyError, Invalid, Refused, StoreAway
from duly.web.reach import Misdirected

MEDIA = "application/problem+json"
STATUS: Mapping[str, int] = {
    "unknown_task": 404,
    "unknown_run": 404,
    "unknown_id": 404,
    "invalid": 422,
    "not_allowed": 403,
    "version_conflict": 412,
    "rate_limited": 429,
    "store_away": 503,
    "store_newer": 503,
}
"""By reason; every other refusal is a conflict with how things stand (409)."""
TITLES: Mapping[int, str] = {
    400: "Not readable",
    401: "Who asks is not known",
    403: "Not allowed",
    404: "Not there",
    405: "Not a method of this address",
    408: "Too slow",
    409: "Refused",
    412: "Changed since it was read",
    413: "Too large",
    415: "Not a kind of body that is read here",
    416: "Not a part of it",
    421: "Not for this host",
    422: "Not valid",
    428: "A version is wanted",
    429: "Too fast",
    500: "A fault of ours",
    503: "The store is away",
}


class Unknown(Refused):
    """Nobody that is known asks: no token, a wrong one, or one that counts no longer."""

    def __init__(self, message: str) -> None:
        super().__init__("not_allowed", message, hint="duly token create NAME --rights read")


class Unreadable(Invalid):
    """What was sent is not even readable: answered with a status of its own."""

    def __init__(self, status: int, message: str, *, field: str | None = None, hint: str | None = None) -> None:
        super().__init__(message, field=field, hint=hint)
        self.status = status


def install(app: FastAPI) -> None:
    """Let errors of every kind be answered in one form."""
    handlers: list[tuple[Any, Callable[[Request, Any], Response]]] = [
        (DulyError, lambda _, fault: problem(fault)),
        (RequestValidationError, lambda _, fault: _parameters(fault)),
        (HTTPException, lambda _, fault: _plain(fault)),
    ]
    for kind, answered in handlers:
        app.add_exception_handler(kind, answered)


def problem(fault: DulyError) -> Response:
    """Make the answer of an error."""
    status = status_of(fault)
    headers: dict[str, str] = {}
    if status == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="duly"'
    if status in {429, 503}:
        seconds = fault.details.get("retry_after_s", 1)
        headers["Retry-After"] = str(max(1, round(seconds + 0.5) if isinstance(seconds, int | float) else 1))
    details = {key: value for key, value in fault.details.items() if key != "errors"}
    if isinstance(fault, StoreAway):
        details = {}  # where the store is, is nobody's business outside
    told: dict[str, object] = {
        "type": "about:blank",
        "title": TITLES.get(status, "Refused"),
        "status": status,
        "detail": "the store cannot be reached or used" if isinstance(fault, StoreAway) else fault.message,
        "reason": fault.reason,
        "details": details | ({} if fault.hint is None or isinstance(fault, StoreAway) else {"hint": fault.hint}),
        "errors": _errors(fault),
    }
    return told_as(told, status, headers)


def status_of(fault: DulyError) -> int:
    """Give the status of an error."""
    if isinstance(fault, Unreadable):
        return fault.status
    if isinstance(fault, Unknown):
        return 401
    if isinstance(fault, Misdirected):
        return 421
    if isinstance(fault, StoreAway):
        return 503
    return STATUS.get(fault.reason, 409)


def of_ours(report: str | None) -> Response:
    """Answer that something went wrong that should not have; the report stays on the host."""
    told = {
        "type": "about:blank",
        "title": TITLES[500],
        "status": 500,
        "detail": "a fault of ours; a report lies on the host that serves",
        "reason": "fault",
        "details": {} if report is None else {"report": report},
        "errors": [],
    }
    return told_as(told, 500, {})


def told_as(told: Mapping[str, object], status: int, headers: Mapping[str, str]) -> Response:
    """Write a problem."""
    from duly.web.frame import as_json

    return Response(as_json(dict(told)), status_code=status, headers=dict(headers), media_type=MEDIA)


def pointer(field: str | None) -> str:
    """Give the JSON pointer of a field of the house, such as `rules.limits.gpu`."""
    if not field or " " in field:
        return ""
    # What the command line has as an option or as an item of a list stands in a body under the same word.
    plain = re.sub(r"\[([0-9]+)\]", r".\1", field)
    plain = plain.removeprefix("--").replace("-", "_") if plain.startswith("--") else plain
    return "/" + "/".join(part.replace("~", "~0").replace("/", "~1") for part in plain.split("."))


def _errors(fault: DulyError) -> list[object]:
    given = fault.details.get("errors")
    if isinstance(given, list):
        return given
    if not isinstance(fault, Invalid):
        return []
    return [{"pointer": pointer(fault.field), "message": fault.message, "allowed": fault.details.get("allowed")}]


def _parameters(fault: RequestValidationError) -> Response:
    """What a path or a query says that cannot be read."""
    errors = [
        {"pointer": "/" + "/".join(str(step) for step in one["loc"]), "message": one["msg"], "allowed": None}
        for one in fault.errors()
    ]
    first = errors[0]
    invalid = Invalid(f"{first['pointer']}: {first['message']}", details={"errors": errors})
    return problem(invalid)


def _plain(fault: HTTPException) -> Response:
    """What the framework itself answers: no such path, no such method."""
    status = fault.status_code
    reason = {404: "unknown_id", 403: "not_allowed", 429: "rate_limited"}.get(status, "invalid")
    told = {
        "type": "about:blank",
        "title": TITLES.get(status, "Refused"),
        "status": status,
        "detail": {404: "there is nothing at this address", 405: "this address does not know the method"}.get(
            status, str(fault.detail)
        ),
        "reason": reason,
        "details": {},
        "errors": [],
    }
    return told_as(told, status, dict(fault.headers or {}))
