"""The body of a webhook: what its author wrote, with the run's own values in the places that name them.

The places are those of a prompt. In a body of JSON a value is written as JSON: within the quotes of a text as a part of
it, elsewhere whole. In any other body a text stands as it is.
"""

import json
from collections.abc import Mapping

from duly.prompts.making import PLACE, Facts, plain

NOTHING = object()


def fill(text: str, facts: Facts, *, as_json: bool) -> str:
    """Put the values in, once; what names nothing stays as it is."""
    made: list[str] = []
    end = 0
    quoted = False
    for place in PLACE.finditer(text):
        before = text[end : place.start()]
        quoted = _is_quoted(before, quoted) if as_json else False
        made.append(before)
        value = _value(place[1], place[2], place[3], facts)
        made.append(place[0] if value is NOTHING else _written(value, as_json=as_json, quoted=quoted))
        end = place.end()
    return "".join(made) + text[end:]


def _value(name: str, path: str, form: str | None, facts: Facts) -> object:
    if name != "event":
        text = plain(name, path, form, facts)
        return NOTHING if text is None else text
    if form is not None or facts.event is None:
        return NOTHING
    found = json.loads(facts.event)
    for key in path.split(".")[1:]:
        if not isinstance(found, Mapping) or key not in found:
            return NOTHING
        found = found[key]
    return found


def _written(value: object, *, as_json: bool, quoted: bool) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if not as_json:
        return text
    return json.dumps(text, ensure_ascii=False)[1:-1] if quoted else json.dumps(value, ensure_ascii=False)


def _is_quoted(text: str, quoted: bool) -> bool:
    """Whether one stands within the quotes of a JSON text after reading on."""
    escaped = False
    for char in text:
        if escaped:
            escaped = False
        elif char == "\\":
            escaped = quoted
        elif char == '"':
            quoted = not quoted
    return quoted
