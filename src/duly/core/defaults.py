"""Defaults of the store and of projects: the rules of a task that its author left open, and where its work is done.

A task's own rule goes before its project's default, that before the store's, and that before the built-in one.
"""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from duly.core.definition_json import RULE_NAMES
from duly.core.reading import read_field, refuse_unknown
from duly.core.rule_fields import OF_ONE_TASK, RULES
from duly.core.task import Definition, Rules
from duly.errors import Invalid

NO_RULES: Mapping[str, object] = MappingProxyType({})
KINDS_WITH_A_FOLDER = frozenset({"command", "agent", "call"})


def read_defaults(given: Mapping[str, object]) -> dict[str, object]:
    """Read default rules as JSON has them; Invalid for one that does not read, or that means one task alone."""
    refuse_unknown(given, RULE_NAMES, "rules")
    read = {}
    for field in RULES:
        if field.name not in given:
            continue
        if field.name in OF_ONE_TASK:
            allowed = [name for name in RULE_NAMES if name not in OF_ONE_TASK]
            raise Invalid(
                "it means one task's own schedule or work, and has no default for many",
                field=field.path,
                hint=f"duly edit TASK --{field.name.replace('_', '-')} …",
                details={"allowed": allowed},
            )
        read[field.name] = read_field(field, given[field.name])
    return read


def readable_defaults(given: Mapping[str, object]) -> dict[str, object]:
    """Read of stored defaults what reads; what another hand or a newer version left is no default."""
    read: dict[str, object] = {}
    for name, value in given.items():
        try:
            read |= read_defaults({name: value})
        except Invalid:
            continue
    return read


def with_defaults(
    definition: Definition,
    *,
    store: Mapping[str, object] = NO_RULES,
    project: Mapping[str, object] = NO_RULES,
    folder: str | None = None,
) -> Definition:
    """Give a definition with the rules its author left open filled in, and noted as inherited from where."""
    origins = dict.fromkeys(store, "store") | dict.fromkeys(project, "project")
    inherited = {name: origin for name, origin in origins.items() if name not in definition.own_rules}
    values = {**store, **project}
    action = definition.action
    rules = {name: values[name] for name in inherited}
    if folder is not None and action.get("cwd") is None and _has_folder(action):
        action = {**action, "cwd": folder}
        inherited["cwd"] = "project"
    if not inherited:
        return definition
    return replace(definition, action=action, rules=_replaced(definition.rules, rules), inherited=inherited)


def _has_folder(action: Mapping[str, object]) -> bool:
    return action.get("kind") in KINDS_WITH_A_FOLDER and action.get("in") != "thread"


def without_defaults(definition: Definition) -> Definition:
    """Give a definition as its author wrote it: what was inherited is open again."""
    if not definition.inherited:
        return definition
    unset = Rules()
    rules = {name: getattr(unset, name) for name in definition.inherited if name != "cwd"}
    action = {
        key: value for key, value in definition.action.items() if key != "cwd" or "cwd" not in definition.inherited
    }
    return replace(definition, action=action, rules=_replaced(definition.rules, rules), inherited={})


def _replaced(rules: Rules, values: Mapping[str, object]) -> Rules:
    return replace(rules, **values)  # type: ignore[arg-type]
