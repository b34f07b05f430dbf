"""What people write, read strictly: one model for every road, made from the one table of fields.

The model refuses what it does not know, tells all faults at once, and yields the JSON Schema. The values of the
house are made by the same readers that read a stored definition back.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache, partial
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    ValidationError,
    WithJsonSchema,
    create_model,
)

from duly import zones
from duly.core import spans, trigger_json, when
from duly.core.action_fields import ACTION, GOAL_LEAST, GOAL_MOST, SESSION_MOST
from duly.core.amounts import BOUND_MOST
from duly.core.definition_json import ACTION_KINDS, ACTION_NAMES, RULE_NAMES, TOP, definition_from_json
from duly.core.field import Field as Row
from duly.core.fields import FIELDS, LABEL_KEY_MOST, LABEL_VALUE_MOST, NAME_MOST, TRIGGERS_MOST
from duly.core.http_reading import METHODS
from duly.core.matching import EXPRESSION_MOST
from duly.core.reading import read_field, refuse_unknown, shown
from duly.core.rule_fields import PATTERN_MOST, RULES, WEIGHT_MOST, WORD_MOST
from duly.core.success_reading import EXIT_MOST, EXITS_MOST
from duly.core.task import Definition
from duly.core.triggers import Every, Trigger, Triggers
from duly.errors import Invalid

create: Any = create_model  # its overloads know only fields that are written out
FUNCTION_PATTERN = r"^\w+(\.\w+)*:\w+(\.\w+)*$"
SPAN_PATTERN = r"^([0-9]+[wdhms])+$"
PART_OF_PERMISSION = {"type": "string", "minLength": 1, "maxLength": PATTERN_MOST}
PERMISSION = {
    "type": "object",
    "required": ["tool", "action"],
    "additionalProperties": False,
    "properties": {"tool": PART_OF_PERMISSION, "pattern": PART_OF_PERMISSION, "action": {"enum": ["allow", "deny"]}},
}
EXIT = {"type": "integer", "minimum": 0, "maximum": EXIT_MOST}
SUCCESS = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "exit": {"anyOf": [EXIT, {"type": "array", "minItems": 1, "maxItems": EXITS_MOST, "items": EXIT}]},
        "matches": {"type": "string", "minLength": 1, "maxLength": EXPRESSION_MOST},
        "file": {"type": "string", "minLength": 1},
    },
}


SESSION = {
    "anyOf": [
        {"type": "string", "minLength": 1, "maxLength": SESSION_MOST},
        {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "use": {"type": "string", "minLength": 1, "maxLength": SESSION_MOST},
                "busy": {"enum": ["skip", "wait"]},
            },
        },
    ]
}

GATE = {
    "anyOf": [
        {"type": "string"},
        {
            "type": "object",
            "required": ["argv"],
            "additionalProperties": False,
            "properties": {
                "argv": {"type": "array", "minItems": 1, "items": {"type": "string"}},
                "timeout": {"type": "string", "pattern": SPAN_PATTERN},
                "on_error": {"enum": ["closed", "go"]},
            },
        },
    ]
}
GOAL = {
    "type": "object",
    "required": ["tokens"],
    "additionalProperties": False,
    "properties": {"tokens": {"type": "integer", "minimum": GOAL_LEAST, "maximum": GOAL_MOST}},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Understood:
    """A definition as read, and what its author should know about it."""

    definition: Definition
    warnings: tuple[str, ...]


def read_definition(
    given: object, *, now: datetime, default_zone: str | None, kept: Triggers = (), verbatim: bool = False
) -> Understood:
    """Read what an author wrote at the moment `now`; Invalid names the first fault, its details hold all of them.

    `kept`: the triggers of the definition that is written anew. One that is the same is taken even if it is over, and
    an `every` without `from` keeps its anchor; `verbatim` takes all of them as they are, and no text is read.
    """
    if not isinstance(given, Mapping):
        raise Invalid(f"{shown(given)} is not an object", field="definition")
    _check(given)
    zone, zone_warning = _zone(given.get("zone"), default_zone)
    given = _with_instants(given, zone, now)
    # Triggers are read with the zone and the moment, which the stored form no longer needs.
    read = definition_from_json({**given, "zone": zone, "triggers": []})
    triggers, warnings = (kept, ()) if verbatim else _triggers(given.get("triggers", ()), zone, now, kept)
    noted = [zone_warning] if zone_warning is not None else []
    return Understood(definition=replace(read, triggers=triggers), warnings=(*noted, *warnings))


def json_schema() -> dict[str, Any]:
    """Give the JSON Schema of a definition as people may write it."""
    return model().model_json_schema()


@lru_cache(maxsize=1)
def model() -> type[BaseModel]:
    """Make the strict model from the table of fields."""
    strict = ConfigDict(extra="forbid", strict=True, frozen=True)
    rules: Any = create("Rules", __config__=strict, **{field.name: (_kind(field), None) for field in RULES})
    action: Any = create(
        "Action",
        __config__=strict,
        kind=(Literal[ACTION_KINDS], ...),
        **{field.name: (_kind(field, null=True), None) for field in ACTION},
    )
    top: dict[str, Any] = {
        field.name: (_kind(field), ... if field.name == "name" else field.default)
        for field in FIELDS
        if len(field.place) == 1
    }
    made: type[BaseModel] = create(
        "Definition",
        __config__=strict,
        **top,
        action=(action, Field(description="what to do")),
        rules=(rules, Field(default={}, description="how the task is judged when things are not normal")),
    )
    return made


def _check(given: Mapping[str, object]) -> None:
    try:
        model().model_validate(dict(given))
    except ValidationError as bad:
        faults = [_fault(error) for error in bad.errors()]
        first = faults[0]
        errors = [
            {"pointer": _pointer(fault.field), "message": fault.message, "allowed": fault.details.get("allowed")}
            for fault in faults
        ]
        raise Invalid(
            first.message,
            field=first.field,
            text=first.text,
            at=first.at,
            hint=first.hint,
            details={**first.details, "errors": errors},
        ) from bad


def _fault(error: Any) -> Invalid:
    """Turn what the model says into the words of the house."""
    place = [str(step) for step in error["loc"]]
    path = ".".join(place)
    found = error.get("ctx", {}).get("error")
    if isinstance(found, Invalid):
        return found
    if error["type"] == "extra_forbidden":
        where = ".".join(place[:-1])
        known = {"": TOP, "rules": RULE_NAMES, "action": ACTION_NAMES}[where]
        try:
            refuse_unknown({place[-1]: None}, known, where)
        except Invalid as unknown:
            return unknown
    if error["type"] == "missing":
        return Invalid("it is missing", field=path)
    if error["type"] == "literal_error":
        allowed = list(ACTION_KINDS)
        return Invalid(
            f"{shown(error['input'])} is not one of {', '.join(allowed)}", field=path, details={"allowed": allowed}
        )
    if error["type"] == "model_type":
        return Invalid(f"{shown(error['input'])} is not an object", field=path)
    return Invalid(str(error["msg"]), field=path)


def _pointer(field: str | None) -> str:
    return "/" + re.sub(r"[.\[]", "/", field or "").replace("]", "")


def _kind(field: Row, *, null: bool = False) -> Any:
    schema = _schema(field)
    if null:
        schema = {"anyOf": [schema, {"type": "null"}]}
    described = {**schema, "description": field.help}
    if field.kind == "triggers":
        return Annotated[Any, BeforeValidator(partial(_shape_of_triggers, field)), WithJsonSchema(described)]
    if field.kind == "instant":
        return Annotated[Any, BeforeValidator(partial(_text_of_instant, field)), WithJsonSchema(described)]
    return Annotated[Any, PlainValidator(partial(_read, field, null)), WithJsonSchema(described)]


def _text_of_instant(field: Row, value: object) -> object:
    if not isinstance(value, str):
        raise Invalid(f"{shown(value)} is not an instant", field=field.path, hint=spans.HOW_TO_INSTANT)
    return value


def _read(field: Row, null: bool, value: object) -> object:
    return None if null and value is None else read_field(field, value)


def _schema(field: Row) -> dict[str, Any]:
    default = {} if field.default is None else {"default": field.default}
    texts = {"type": "string"}
    kinds: Mapping[str, dict[str, Any]] = {
        "name": {**texts, "minLength": 1, "maxLength": field.most},
        "text": {**texts, "maxLength": field.most},
        "pairs": {
            "type": "object",
            "maxProperties": field.most,
            "propertyNames": {"minLength": 1, "maxLength": LABEL_KEY_MOST},
            "additionalProperties": {**texts, "maxLength": LABEL_VALUE_MOST},
        },
        "switch": {"type": "boolean"},
        "triggers": {
            "type": "array",
            "maxItems": TRIGGERS_MOST,
            "items": {"anyOf": [{**texts, "maxLength": when.MAX_TEXT}, {"type": "object", "required": ["kind"]}]},
        },
        "zone": texts,
        "choice": {"enum": list(field.allowed)},
        "span": {**texts, "pattern": SPAN_PATTERN},
        "count": {"type": "integer", "minimum": field.least, "maximum": field.most},
        "argv": {"type": "array", "minItems": 1, "items": texts},
        "shell": {**texts, "minLength": 1},
        "function": {**texts, "pattern": FUNCTION_PATTERN, "maxLength": field.most},
        "arguments": {"anyOf": [{"type": "array"}, {"type": "object"}]},
        "path": {**texts, "pattern": "^/"},
        "env": {"type": "object", "maxProperties": field.most, "additionalProperties": texts},
        "weights": {
            "type": "object",
            "maxProperties": field.most,
            "additionalProperties": {"type": "integer", "minimum": 1, "maximum": WEIGHT_MOST},
        },
        "words": {"type": "array", "maxItems": field.most, "items": {**texts, "maxLength": WORD_MOST}},
        "channels": {"anyOf": [texts, {"type": "array", "maxItems": field.most, "items": texts}]},
        "instant": {**texts, "format": "date-time"},
        "agent": {**texts, "minLength": 1, "maxLength": NAME_MOST},
        "prompt": {**texts, "minLength": 1, "maxLength": field.most},
        "file": {**texts, "minLength": 1},
        "permissions": {"type": "array", "maxItems": field.most, "items": PERMISSION},
        "success": SUCCESS,
        "session": SESSION,
        "goal": GOAL,
        "url": {**texts, "minLength": 1, "maxLength": field.most},
        "method": {"enum": list(METHODS)},
        "headers": {"type": "object", "maxProperties": field.most, "additionalProperties": texts},
        "body": texts,
        "secret": {**texts, "minLength": 1},
        "budget": _amounts("runs", "tokens", per=True),
        "estimate": _amounts("tokens"),
        "gate": GATE,
    }
    return kinds[field.kind] | default


def _shape_of_triggers(field: Row, value: object) -> object:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise Invalid(f"{shown(value)} is not a list of triggers", field=field.path, hint='["daily 09:00"]')
    if len(value) > field.most:
        raise Invalid(f"there are {len(value)}, and {field.most} are allowed", field=field.path)
    for at, item in enumerate(value):
        if not isinstance(item, str | Mapping):
            raise Invalid(f"{shown(item)} is neither a text nor an object", field=f"{field.path}[{at}]")
    return value


def _with_instants(given: Mapping[str, object], zone: str, now: datetime) -> Mapping[str, object]:
    """Turn instants among the rules, which people may write on the task's wall or as a distance, into exact ones."""
    rules = dict(given.get("rules", {}))  # type: ignore[call-overload]
    for row in RULES:
        value = rules.get(row.name)
        if row.kind == "instant" and isinstance(value, str):
            at = spans.read_instant(value, now=now, zone=zones.zone(zone), bare="ahead", field=row.path)
            rules[row.name] = spans.write_instant(at)
    return {**given, "rules": rules} if rules else given


def _zone(given: object, default: str | None) -> tuple[str, str | None]:
    if isinstance(given, str):
        name = zones.canonical(given)
        return name, zones.warning(name)
    if default is None:
        raise Invalid(
            "this machine's zone has no IANA name, so a task must be given one",
            field="zone",
            hint="--zone Europe/Berlin",
        )
    return zones.canonical(default), zones.warning(default)


def _triggers(given: object, zone: str, now: datetime, kept: Triggers) -> tuple[Triggers, tuple[str, ...]]:
    assert isinstance(given, Sequence)
    place = zones.zone(zone)
    texts = [item if isinstance(item, str) else _text_of(item, at) for at, item in enumerate(given)]
    if not texts or (len(texts) == 1 and texts[0].strip().lower() == "manual"):
        # `"triggers": []` is a manual task.
        return (), ()
    readings = [_trigger(text, at, place, now, kept) for at, text in enumerate(texts)]
    notes = [note for reading in readings for note in reading.warnings]
    return tuple(dict.fromkeys(reading.trigger for reading in readings)), tuple(dict.fromkeys(notes))


def _trigger(text: str, at: int, zone: ZoneInfo, now: datetime, kept: Triggers) -> when.Reading:
    try:
        reading = when.read(text, now=now, zone=zone, past=True)
        same = _same(text, reading.trigger, kept)
        return when.read(text, now=now, zone=zone) if same is None else replace(reading, trigger=same)
    except Invalid as bad:
        raise Invalid(
            bad.message, field=f"triggers[{at}]", text=bad.text, at=bad.at, hint=bad.hint, details=bad.details
        ) from bad


def _same(text: str, trigger: Trigger, kept: Triggers) -> Trigger | None:
    """Find the trigger that a text writes again: the very same, or the interval whose anchor it leaves open."""
    if trigger in kept:
        return trigger
    if isinstance(trigger, Every) and "from" not in text.lower().split():
        return next((one for one in kept if isinstance(one, Every) and one.span == trigger.span), None)
    return None


def _text_of(item: Any, at: int) -> str:
    """Write a trigger that came as an object as text, so that it is judged like one that was typed."""
    try:
        return when.write(trigger_json.from_json(item))
    except Invalid as bad:
        raise Invalid(
            bad.message, field=f"triggers[{at}]", text=bad.text, at=bad.at, hint=bad.hint, details=bad.details
        ) from bad


def _amounts(*counted: str, per: bool = False) -> dict[str, object]:
    whole = {"type": "integer", "minimum": 0, "maximum": BOUND_MOST}
    properties: dict[str, object] = {**dict.fromkeys(counted, whole), "usd": {"type": ["number", "string"]}}
    if per:
        properties["per"] = {"enum": ["day", "month"]}
    return {
        "type": "object",
        "required": ["per"] if per else [],
        "additionalProperties": False,
        "properties": properties,
    }
