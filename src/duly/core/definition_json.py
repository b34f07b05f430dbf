"""A definition as JSON has it, and back: what the store keeps and the fronts show.

Reading is as strict as for what people write, and loads nothing heavy; what a newer version or another hand left
that no longer reads comes back as Invalid with the field, for the store to keep as broken.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import cast

from duly.core import agent_reading, http_reading, spans, trigger_json
from duly.core.action_fields import ACTION, FIELDS_OF
from duly.core.amounts import Allowance, Amounts, allowance_to_json, estimate_to_json
from duly.core.field import Field
from duly.core.fields import BY_PATH, FIELDS, TRIGGERS_MOST
from duly.core.permissions import Permission, permission_to_json
from duly.core.reading import read_field, refuse_unknown, shown
from duly.core.rule_fields import RULES
from duly.core.successes import Success, success_to_json
from duly.core.task import Definition, Gate, Rules
from duly.core.triggers import Trigger
from duly.errors import Invalid

TOP: tuple[str, ...] = tuple(dict.fromkeys(field.place[0] for field in FIELDS))
RULE_NAMES: tuple[str, ...] = tuple(field.name for field in RULES)
ACTION_NAMES: tuple[str, ...] = ("kind", *(field.name for field in ACTION))
ACTION_KINDS: tuple[str, ...] = tuple(FIELDS_OF)
PLAIN: tuple[Field, ...] = tuple(
    field for field in FIELDS if len(field.place) == 1 and field.kind != "triggers" and field.name != "name"
)
_UNSET_RULES = Rules()


def definition_to_json(definition: Definition) -> dict[str, object]:
    """Write a definition as the plain dict that `definition_from_json` reads back; of the rules only the own ones."""
    return {
        "name": definition.name,
        "project": definition.project,
        "description": definition.description,
        "labels": dict(definition.labels),
        "enabled": definition.enabled,
        "triggers": [trigger_json.to_json(trigger) for trigger in definition.triggers],
        "zone": definition.zone,
        "action": own_action_to_json(definition),
        "rules": own_rules_to_json(definition),
    }


def own_rules_to_json(definition: Definition) -> dict[str, object]:
    """Write the rules that the author wrote, in the order of the table."""
    out: dict[str, object] = {}
    for field in RULES:
        if field.name in definition.inherited:
            continue
        value = getattr(definition.rules, field.name)
        if field.name in definition.own_rules or value != getattr(_UNSET_RULES, field.name):
            out[field.name] = rule_to_json(value)
    return out


def own_action_to_json(definition: Definition) -> dict[str, object]:
    """Write the action as the author wrote it, without the folder that the project gives."""
    action = action_to_json(definition.action)
    if "cwd" in definition.inherited:
        del action["cwd"]
    return action


def rule_to_json(value: object) -> object:
    """Write one rule's value as JSON has it: spans and instants are texts, all else stands for itself."""
    match value:
        case timedelta():
            return spans.write_span(value)
        case datetime():
            return spans.write_instant(value)
        case tuple():
            return [permission_to_json(one) if isinstance(one, Permission) else one for one in value]
        case Allowance():
            return allowance_to_json(value)
        case Amounts():
            return estimate_to_json(value)
        case Success():
            return success_to_json(value)
        case Gate():
            timeout = spans.write_span(value.timeout)
            return {"argv": list(value.argv), "timeout": timeout, "on_error": value.on_error}
        case Mapping():
            return dict(value)
        case _:
            return value


def action_to_json(action: Mapping[str, object]) -> dict[str, object]:
    """Write an action with lists for tuples and dicts for mappings."""
    out: dict[str, object] = {}
    for key, value in action.items():
        if isinstance(value, tuple):
            out[key] = list(value)
        elif isinstance(value, Mapping):
            out[key] = dict(value)
        else:
            out[key] = value
    return out


def definition_from_json(stored: Mapping[str, object]) -> Definition:
    """Read a definition back; raises Invalid, naming the first field that does not hold."""
    if not isinstance(stored, Mapping):
        raise Invalid(f"{shown(stored)} is not an object", field="definition")
    refuse_unknown(stored, TOP, "")
    if "name" not in stored:
        raise Invalid("it is missing", field="name")
    rules, own = rules_from_json(stored.get("rules", {}))
    given = {field.name: read_field(field, stored[field.name]) for field in PLAIN if field.name in stored}
    return Definition(
        name=cast(str, read_field(BY_PATH["name"], stored["name"])),
        triggers=triggers_from_json(stored.get("triggers", [])),
        action=action_from_json(stored.get("action")),
        rules=rules,
        own_rules=own,
        **given,  # type: ignore[arg-type]
    )


def rules_from_json(stored: object) -> tuple[Rules, frozenset[str]]:
    """Read the rules and the names of those that were written."""
    if not isinstance(stored, Mapping):
        raise Invalid(f"{shown(stored)} is not an object", field="rules")
    refuse_unknown(stored, RULE_NAMES, "rules")
    given = {field.name: read_field(field, stored[field.name]) for field in RULES if field.name in stored}
    return Rules(**given), frozenset(given)  # type: ignore[arg-type]


def triggers_from_json(stored: object) -> tuple[Trigger, ...]:
    """Read the triggers in their stored form, which needs no moment."""
    if isinstance(stored, str) or not isinstance(stored, list | tuple):
        raise Invalid(f"{shown(stored)} is not a list", field="triggers")
    if len(stored) > TRIGGERS_MOST:
        raise Invalid(f"there are {len(stored)}, and {TRIGGERS_MOST} are allowed", field="triggers")
    triggers = []
    for at, item in enumerate(stored):
        path = f"triggers[{at}]"
        if not isinstance(item, Mapping):
            raise Invalid(f"{shown(item)} is not an object", field=path)
        try:
            triggers.append(trigger_json.from_json(item))
        except Invalid as bad:
            raise Invalid(
                f"{bad.message}", field=path, text=bad.text, at=bad.at, hint=bad.hint, details=bad.details
            ) from bad
    return tuple(triggers)


def action_from_json(stored: object) -> Mapping[str, object]:
    """Read an action: its kind, and of the fields those that this kind has."""
    if not isinstance(stored, Mapping):
        raise Invalid("what to do is missing", field="action", hint='{"kind": "command", "argv": ["echo", "hello"]}')
    kind = stored.get("kind")
    if kind not in ACTION_KINDS:
        raise Invalid(
            f"{shown(kind)} is not one of {', '.join(ACTION_KINDS)}",
            field="action.kind",
            details={"allowed": list(ACTION_KINDS)},
        )
    refuse_unknown(stored, ACTION_NAMES, "action")
    action: dict[str, object] = {"kind": kind}
    for field in ACTION:
        # A stored null is the same as nothing written: shapes show all fields, and what was shown reads back.
        if stored.get(field.name) is None:
            continue
        if field.name not in FIELDS_OF[kind]:
            allowed = [*FIELDS_OF[kind]]
            raise Invalid(f"a {kind} has no such field", field=field.path, details={"allowed": allowed})
        action[field.name] = read_field(field, stored[field.name])
    _check_action(action)
    return action


def _check_action(action: Mapping[str, object]) -> None:
    """Refuse fields that say nothing, or two things at once."""
    if action["kind"] == "command" and ("argv" in action) == ("shell" in action):
        both = "argv" in action
        raise Invalid(
            "argv and shell exclude each other" if both else "neither argv nor shell says what to run",
            field="action.shell" if both else "action.argv",
        )
    if action["kind"] == "agent":
        agent_reading.check(action)
    if action["kind"] == "http":
        http_reading.check(action)
    if action["kind"] == "call":
        if "function" not in action:
            raise Invalid(
                "which function is called is missing", field="action.function", hint="package.module:function"
            )
        for name in ("cwd", "env") if action.get("in") == "thread" else ():
            if action.get(name):
                raise Invalid(
                    "a function in a thread shares folder and variables with all of its process",
                    field=f"action.{name}",
                    hint="in child",
                )
