"""The JSON Schemas of a task's definition, of a patch of one and of its rules, from the one table of fields."""

from collections.abc import Mapping
from typing import Any

from duly import definitions

REFERENCE = "#/$defs/"


def _inlined(schema: Any, parts: Mapping[str, Any]) -> Any:
    """Put in place what a schema keeps apart: on the page of OpenAPI its own references lead nowhere."""
    if isinstance(schema, list):
        return [_inlined(one, parts) for one in schema]
    if not isinstance(schema, dict):
        return schema
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith(REFERENCE):
        more = {key: value for key, value in schema.items() if key != "$ref"}
        return _inlined(parts[reference.removeprefix(REFERENCE)] | more, parts)
    return {
        key: _inlined(value, parts)
        for key, value in schema.items()
        if key not in {"$defs", "title"} and (key, value) != ("default", None)
    }


def _patched(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Let every field be left out, or be null, which goes back to the default."""
    properties = {
        name: {
            "anyOf": [_patched(one) if one.get("type") == "object" and "properties" in one else one, {"type": "null"}]
        }
        for name, one in schema["properties"].items()
    }
    left = {key: value for key, value in schema.items() if key not in {"required", "default"}}
    return left | {"properties": properties}


_whole = definitions.json_schema()
DEFINITION: Mapping[str, Any] = _inlined(_whole, _whole.get("$defs", {}))
PATCH: Mapping[str, Any] = _patched(DEFINITION)
RULES: Mapping[str, Any] = {key: value for key, value in DEFINITION["properties"]["rules"].items() if key != "default"}
DEFINITION_EXAMPLE: Mapping[str, object] = {
    "name": "report",
    "project": "shop",
    "triggers": ["weekly mon-fri 08:00"],
    "zone": "Europe/Berlin",
    "action": {"kind": "command", "argv": ["./report", "--all"], "cwd": "/srv/shop"},
    "rules": {"on_missed": "run", "retries": 2},
}
PATCH_EXAMPLE: Mapping[str, object] = {"triggers": ["daily 07:30"], "rules": {"retries": None}}
