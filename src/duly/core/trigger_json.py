"""Triggers as JSON, in the shapes scripts rely on, and back."""

import json
from collections.abc import Mapping
from datetime import datetime, time

from duly.core.cron import read_line
from duly.core.event_text import check_value, read_path, read_source
from duly.core.meant import read_time
from duly.core.spans import exact_instant, local_reading, read_span, write_instant, write_local, write_span
from duly.core.triggers import Cron, Daily, Every, On, Once, Throttle, Trigger, Weekly
from duly.errors import Invalid

DAY_NAMES = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
FIELDS: Mapping[str, tuple[str, ...]] = {
    "cron": ("expression",),
    "daily": ("times",),
    "weekly": ("weekdays", "times"),
    "once": ("at", "local"),
    "every": ("span", "anchor"),
    "event": ("source", "match", "throttle"),
}
MAX_LIST = 100


def to_json(trigger: Trigger) -> dict[str, object]:
    """Give the trigger as plain values, ready for JSON."""
    match trigger:
        case Cron():
            return {"kind": "cron", "expression": trigger.expression}
        case Daily():
            return {"kind": "daily", "times": [_time(at) for at in trigger.times]}
        case Weekly():
            days = [DAY_NAMES[day] for day in trigger.weekdays]
            return {"kind": "weekly", "weekdays": days, "times": [_time(at) for at in trigger.times]}
        case Once(at=datetime() as at):
            return {"kind": "once", "at": write_instant(at)}
        case Once(local=local):
            assert local is not None, "a once has an instant or a local time"
            return {"kind": "once", "local": write_local(local)}
        case Every():
            return {"kind": "every", "span": write_span(trigger.span), "anchor": write_instant(trigger.anchor)}
        case On():
            match = dict(trigger.match)
            return {"kind": "event", "source": trigger.source, "match": match, "throttle": _throttle(trigger.throttle)}


def from_json(obj: object) -> Trigger:
    """Read a trigger from its JSON object; Invalid (field `when`) for any other shape. A once may be past."""
    if not isinstance(obj, Mapping):
        raise Invalid("a trigger in JSON is an object", field="when", hint='{"kind": "daily", "times": ["09:00"]}')
    kind = obj.get("kind")
    if not isinstance(kind, str) or kind not in FIELDS:
        raise Invalid(f"`{str(kind)[:40]}` is not a kind of trigger", field="when", hint=", ".join(FIELDS))
    unknown = sorted(str(key) for key in obj if key != "kind" and key not in FIELDS[kind])
    if unknown:
        message = f"a {kind} trigger has no field `{unknown[0][:40]}`"
        raise Invalid(message, field="when", hint=", ".join(FIELDS[kind]))
    try:
        return _read(kind, obj)
    except Invalid as error:
        raise Invalid(error.message, field="when", text=error.text, at=error.at, hint=error.hint) from None


def _read(kind: str, obj: Mapping[object, object]) -> Trigger:
    if kind == "cron":
        expression = _text(obj, "expression")
        try:
            return Cron(expression=read_line(expression).expression)
        except Invalid as error:
            raise Invalid(error.message, text=expression, at=error.at, hint=error.hint) from None
    if kind == "daily":
        return Daily(times=_times(obj))
    if kind == "weekly":
        return Weekly(weekdays=_weekdays(obj), times=_times(obj))
    if kind == "every":
        return Every(span=read_span(_text(obj, "span")), anchor=_instant(obj, "anchor"))
    if kind == "event":
        throttle = _read_throttle(obj.get("throttle"))
        return On(source=read_source(_text(obj, "source")), match=_match(obj.get("match")), throttle=throttle)
    given = [name for name in ("at", "local") if obj.get(name) is not None]
    if len(given) != 1:
        raise Invalid("a once has either `at` or `local`", hint='"at": "2026-12-01T08:00:00Z"')
    if given == ["at"]:
        return Once(at=_instant(obj, "at"))
    text = _text(obj, "local")
    local = local_reading(text)
    if local is None:
        raise Invalid(f"`{text[:40]}` is not a local time", text=text, at=0, hint="2026-12-01 09:00")
    return Once(local=local)


def _match(given: object) -> tuple[tuple[str, str], ...]:
    if not isinstance(given, Mapping | None):
        raise Invalid("`match` is an object of paths and values", hint='"match": {"branch": "main"}')
    pairs: dict[str, str] = {}
    for path, value in (given or {}).items():
        if not isinstance(path, str):
            raise Invalid("a path is a text", hint='"match": {"branch": "main"}')
        if not isinstance(value, str | int | float | None):
            raise Invalid("a value in `match` is a text, a number, true, false or null", hint=f'"{path[:40]}": "main"')
        canonical = read_path(path)
        if canonical in pairs:
            raise Invalid(f"`{canonical[:40]}` stands twice", hint="a second trigger: either of them suffices")
        pairs[canonical] = check_value(value if isinstance(value, str) else json.dumps(value))
    return tuple(sorted(pairs.items()))


def _read_throttle(given: object) -> Throttle | None:
    if given is None:
        return None
    if not isinstance(given, Mapping):
        raise Invalid("`throttle` is an object or null", hint='"throttle": {"within": "10m", "by": []}')
    unknown = sorted(str(key) for key in given if key not in ("within", "by"))
    if unknown:
        raise Invalid(f"a throttle has no field `{unknown[0][:40]}`", hint="within, by")
    by = given.get("by") or ()
    if not isinstance(by, list | tuple) or len(by) > MAX_LIST or not all(isinstance(path, str) for path in by):
        raise Invalid(f"`by` is a list of at most {MAX_LIST} paths", hint='"by": ["branch"]')
    return Throttle(within=read_span(_text(given, "within")), by=tuple(sorted({read_path(path) for path in by})))


def _throttle(throttle: Throttle | None) -> dict[str, object] | None:
    return None if throttle is None else {"within": write_span(throttle.within), "by": list(throttle.by)}


def _text(obj: Mapping[object, object], name: str) -> str:
    value = obj.get(name)
    if not isinstance(value, str):
        raise Invalid(f"`{name}` is a text", hint=f'"{name}": "…"')
    return value


def _list(obj: Mapping[object, object], name: str) -> list[str]:
    value = obj.get(name)
    if not isinstance(value, list | tuple) or not 1 <= len(value) <= MAX_LIST:
        raise Invalid(f"`{name}` is a list of 1 to {MAX_LIST} texts", hint=f'"{name}": ["…"]')
    if not all(isinstance(member, str) for member in value):
        raise Invalid(f"`{name}` is a list of texts", hint=f'"{name}": ["…"]')
    return list(value)


def _times(obj: Mapping[object, object]) -> tuple[time, ...]:
    found: set[time] = set()
    for text in _list(obj, "times"):
        at = read_time(text)
        if at is None:
            raise Invalid(f"`{text[:40]}` is not a time", text=text, at=0, hint="HH:MM or HH:MM:SS")
        found.add(at)
    return tuple(sorted(found))


def _weekdays(obj: Mapping[object, object]) -> tuple[int, ...]:
    found: set[int] = set()
    for text in _list(obj, "weekdays"):
        if text.lower() not in DAY_NAMES:
            raise Invalid(f"`{text[:40]}` is not a weekday", text=text, at=0, hint=", ".join(DAY_NAMES))
        found.add(DAY_NAMES.index(text.lower()))
    return tuple(sorted(found))


def _instant(obj: Mapping[object, object], name: str) -> datetime:
    text = _text(obj, name)
    found = exact_instant(text)
    if found is None:
        raise Invalid(f"`{text[:40]}` is not an instant", text=text, at=0, hint="2026-12-01T08:00:00Z")
    return found


def _time(at: time) -> str:
    return at.isoformat("seconds" if at.second else "minutes")
