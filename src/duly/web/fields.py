"""Fields of bodies and queries, read one by one; Invalid names the field and says what would be right."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

from fastapi import Path, Query
from pydantic import AfterValidator

from duly import zones
from duly.core.names import key_of
from duly.core.notes import check_note
from duly.core.reading import shown
from duly.core.spans import HOW_TO_INSTANT, read_instant
from duly.errors import Invalid
from duly.store import Session
from duly.web.frame import Ask

WORD_MOST = 300
"""Characters of a word of a query that means something in the store."""
INSTANT_MOST = 100
NOTE: dict[str, Any] = {"type": ["string", "null"], "maxLength": 500, "description": "why, for others to read"}
INSTANT: dict[str, Any] = {"type": "string", "description": "RFC 3339, a local time, `now`, or a distance such as `2h`"}
TRUTH: dict[str, Any] = {"type": "boolean"}

SLASH = "\x1f"
"""Stands in a path for a slash of a name (`%2F`), which parts nothing; no name has a control character."""
WHOLE_WORD = AfterValidator(lambda word: word.replace(SLASH, "/"))
Named = Annotated[
    str,
    Path(alias="id", max_length=WORD_MOST, description="an id, a unique end of one, a name, or `project%2Fname`"),
    WHOLE_WORD,
]
Word = Annotated[str | None, Query(max_length=WORD_MOST)]
Moment = Annotated[str | None, Query(max_length=INSTANT_MOST, description=str(INSTANT["description"]))]


def choice(*words: str) -> Any:
    """Describe a word of a query that is one of a few; what it means is judged where it is used."""
    return Query(max_length=WORD_MOST, json_schema_extra={"enum": [*words]})


def one_of(value: str | None, field: str, words: Sequence[str]) -> str | None:
    """Give a word that is one of a few."""
    if value is not None and value not in words:
        raise Invalid(f"{shown(value)} is not one of {', '.join(words)}", field=field, details={"allowed": list(words)})
    return value


def object_of(described: Mapping[str, Any], *must: str) -> dict[str, Any]:
    """Describe a body: its fields, and those that must be there."""
    made = {"type": "object", "additionalProperties": False, "properties": dict(described)}
    return made | ({"required": [*must]} if must else {})


def text(body: Mapping[str, Any], name: str) -> str | None:
    """Read a text that may be missing or null."""
    value = body.get(name)
    if value is not None and not isinstance(value, str):
        raise Invalid(f"{shown(value)} is not a text", field=name)
    return value


def texts(body: Mapping[str, Any], name: str) -> list[str]:
    """Read a list of texts; empty where it is missing."""
    value = body.get(name, [])
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise Invalid(f"{shown(value)} is not a list of texts", field=name)
    return value


def truth(body: Mapping[str, Any], name: str) -> bool:
    """Read a yes or no; no where it is missing."""
    value = body.get(name, False)
    if not isinstance(value, bool):
        raise Invalid(f"{shown(value)} is not true or false", field=name)
    return value


def whole(body: Mapping[str, Any], name: str) -> int | None:
    """Read a whole number that may be missing or null."""
    value = body.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise Invalid(f"{shown(value)} is not a whole number", field=name)
    return value


def needed(body: Mapping[str, Any], name: str) -> Any:
    """Give a field that must be there."""
    if body.get(name) is None:
        raise Invalid("it is missing", field=name)
    return body[name]


def moment(
    body: Mapping[str, Any], name: str, now: datetime, *, bare: Literal["ago", "ahead"] = "ago"
) -> datetime | None:
    """Read an instant that may be missing or null; a span without sign lies `bare`."""
    value = text(body, name)
    return None if value is None else instant(value, name, now, bare=bare)


def instant(
    value: str, field: str, now: datetime, *, bare: Literal["ago", "ahead"] = "ago", zone: ZoneInfo | None = None
) -> datetime:
    """Read an instant; a local time is one of the zone of the machine that serves, where none is given."""
    if not value.strip():
        raise Invalid("it is empty", field=field, hint=HOW_TO_INSTANT)
    return read_instant(value[:INSTANT_MOST], now=now, zone=zone or here(), bare=bare, field=field)


def here() -> ZoneInfo:
    """Give the zone of the machine that serves."""
    return zones.zone(zones.machine_zone() or "UTC")


def note(body: Mapping[str, Any]) -> str | None:
    """Read why something was done."""
    given = text(body, "note")
    check_note(given)
    return given


def projects(ask: Ask, project: str | None) -> Collection[str] | None:
    """Give the keys of the projects that a list has: the one that is asked for, of those that who asks may see."""
    if project is None:
        return ask.asker.projects
    key = key_of(project)
    return {key} if ask.sees(key) else set()


def task_of_past(ask: Ask, session: Session, word: str | None) -> str | None:
    """Find the task that a list of what was is asked for; a removed one by its id."""
    if word is None:
        return None
    removed = session.tasks.by_id(word)
    if removed is None:
        return ask.task(session, word).id
    ask.check(removed.definition.project)
    return removed.id
