"""The text of a prompt: what the author wrote, with the run's own values in the places that name them.

`{{due_at}}`, `{{due_at:FORMAT}}` (on the task's wall, by strftime), `{{run}}`, `{{attempt}}`, `{{event.a.b}}` and
`{{input}}` are replaced, once: nothing that was put in is looked at again. What names nothing stays as it is.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, tzinfo

PLACE = re.compile(r"\{\{\s*([a-z_]+)((?:\.[^.{}\s]+)*)(?::([^{}]+))?\s*\}\}")
EVENT_MOST = 8_000
"""Characters of one value of an event that are put into a prompt; the whole lies in a file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What places of a prompt can name."""

    run: str
    attempt: int
    due_at: datetime | None
    zone: tzinfo
    input: str | None = None
    event: str | None = None
    """The event's body, as JSON text."""


def make(text: str, facts: Facts) -> str:
    """Put the values in; an input that no place asked for follows the prompt under a blank line."""
    asked = False

    def put(found: re.Match[str]) -> str:
        nonlocal asked
        value = _value(found[1], found[2], found[3], facts)
        asked = asked or (value is not None and found[1] == "input")
        return found[0] if value is None else value

    made = PLACE.sub(put, text)
    if facts.input and not asked:
        made = f"{made.rstrip()}\n\n{facts.input}"
    return made


def _value(name: str, path: str, form: str | None, facts: Facts) -> str | None:
    """Give what a place stands for, None where it names nothing that there is."""
    if name == "event":
        return None if form is not None or not path or facts.event is None else _of_event(facts.event, path)
    if path:
        return None
    if name == "due_at":
        return None if facts.due_at is None else _instant(facts.due_at, form, facts.zone)
    if form is not None:
        return None
    if name == "input":
        return facts.input or ""
    return {"run": facts.run, "attempt": str(facts.attempt)}.get(name)


def _instant(at: datetime, form: str | None, zone: tzinfo) -> str | None:
    if form is None:
        return at.isoformat().replace("+00:00", "Z")
    try:
        return at.astimezone(zone).strftime(form)
    except ValueError:
        return None


def _of_event(body: str, path: str) -> str | None:
    try:
        found = json.loads(body)
    except ValueError:
        return None
    for key in path.removeprefix(".").split("."):
        if not isinstance(found, Mapping) or key not in found:
            return None
        found = found[key]
    text = found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)
    return text if len(text) <= EVENT_MOST else text[: EVENT_MOST - 1] + "…"
