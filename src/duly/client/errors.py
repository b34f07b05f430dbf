"""Errors as a server answers them, made into the exceptions of the house."""

import json
from collections.abc import Mapping
from typing import Any

from duly.errors import DulyError, Invalid, Refused, StoreAway

STORE = frozenset({"store_away", "store_newer"})


class Unreached(DulyError):
    """No answer came: whether what was asked for was done is not known."""

    reason = "store_away"


def of_problem(status: int, body: bytes) -> DulyError:
    """Make an error of an answer: Invalid, Refused or StoreAway with its reason, as the same ask would raise here."""
    told = _read(body)
    details: dict[str, object] = dict(told.get("details") or {})
    hint = details.pop("hint", None)
    message = str(told.get("detail") or f"the server answered {status}")
    reason = str(told.get("reason") or "invalid")
    given: dict[str, Any] = {"details": details | {"status": status}, "hint": None if hint is None else str(hint)}
    if reason in STORE:
        return StoreAway(message, **given)
    if reason == "invalid":
        errors = told.get("errors") or []
        first = errors[0] if isinstance(errors, list) and errors and isinstance(errors[0], dict) else {}
        field = str(first.get("pointer") or "").removeprefix("/").replace("/", ".") or None
        return Invalid(message, field=field, details=given["details"] | {"errors": errors}, hint=given["hint"])
    return Refused(reason, message, **given)


def _read(body: bytes) -> Mapping[str, Any]:
    try:
        told = json.loads(body)
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}
