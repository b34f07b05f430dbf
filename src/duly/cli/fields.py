"""The table of fields as options: made from the one table, read back into the JSON that the strict model reads."""

import json
from collections.abc import Mapping, Sequence
from typing import cast

import click

from duly.core.field import Field
from duly.core.fields import BY_PATH, FIELDS
from duly.core.reading import nearest, shown
from duly.core.rule_fields import OF_ONE_TASK, RULES
from duly.errors import Invalid

# Where the words of the command line are not the field's own name.
SPELLED: Mapping[str, str] = {
    "name": "NAME",
    "triggers": "--when",
    "when": "WHEN",
    "labels": "--label",
    "enabled": "--disabled",
    "rules.limits": "--limit",
    "action": "COMMAND",
    "action.argv": "COMMAND",
    "action.function": "--call",
    "rules.permissions": "--permission",
    "action.headers": "--header",
    "instant": "INSTANT",
    # What is no field of a definition, in the words of the commands that take it.
    "key": "--key",
    "input": "--input",
    "args": "-- ARG",
    "until": "--until",
    "dir": "--dir",
    "target": "TASK",
    "source": "SOURCE",
    "data": "--data",
}
CLEARED: Mapping[str, Field] = {
    **{field.name: field for field in RULES},
    **{name: BY_PATH[path] for name, path in (("description", "description"), ("env", "action.env"))},
    **{name: BY_PATH[path] for name, path in (("cwd", "action.cwd"), ("label", "labels"), ("labels", "labels"))},
    **{name: BY_PATH[f"action.{name}"] for name in ("args", "in", "model", "session", "goal", "worktree")},
    **{name: BY_PATH[f"action.{name}"] for name in ("method", "headers", "body", "sign")},
    "header": BY_PATH["action.headers"],
    "permission": BY_PATH["rules.permissions"],
    "limit": BY_PATH["rules.limits"],
}
"""What can be set back to its default, by the words for it."""
AMOUNTS = frozenset({"budget", "estimate"})
"""Kinds of fields that are written as amounts, each with its name."""
SWITCHED_OFF: Mapping[str, str] = {"enabled": "add it switched off"}
"""Switches that stand on by default, whose option switches them off."""


def spelled(path: str) -> str:
    """Give a field's name in the words of the command line: `rules.max_age` is `--max-age`."""
    bare = path.partition("[")[0]
    for known in (bare, bare.rpartition(".")[0]):
        if known in SPELLED:
            return SPELLED[known]
        if known in BY_PATH:
            return "--" + BY_PATH[known].name.replace("_", "-")
    return path


def options(*, editing: bool = False) -> list[click.Parameter]:
    """Make the options of `add` or `edit` from the table: every field but the name and the words of the command."""
    return [_option(field, editing) for field in FIELDS if field.kind != "argv" and field.name != "name"]


def rule_options(*names: str) -> list[click.Parameter]:
    """Make the options of these rules alone."""
    return [_option(BY_PATH[f"rules.{name}"], False) for name in names]


def _option(field: Field, editing: bool) -> click.Option:
    name = spelled(field.path)
    if field.kind == "switch":
        off = SWITCHED_OFF.get(field.name)
        text = field.help if off is None else "switch it off" if editing else off
        return click.Option([name, field.name], is_flag=True, help=text)
    return click.Option(
        [name, field.name],
        multiple=field.kind
        in {"pairs", "env", "triggers", "weights", "words", "permissions", "success", "channels", "headers"},
        metavar=_metavar(field),
        # What is not given to an edit stays as it is; only rules can go back to a default.
        help=field.help if editing and field.place[0] != "rules" else _help(field),
    )


def _metavar(field: Field) -> str:
    if field.metavar is not None:
        return field.metavar
    if field.allowed:
        return "|".join(field.allowed)
    return {"span": "SPAN", "count": "N"}.get(field.kind, "TEXT")


def _help(field: Field) -> str:
    default = field.default_text
    if default is None and field.default is not False and field.default not in (None, "", {}, []):
        default = str(field.default)
    return f"{field.help}  [{default}]" if default else field.help


def gathered(values: Mapping[str, object]) -> dict[str, object]:
    """Gather options into the JSON of a definition: only what was given, each at its place."""
    top: dict[str, object] = {}
    for field in FIELDS:
        value = values.get(field.name)
        if value is None or value == () or (field.kind == "switch" and value is False):
            continue
        place = top
        for step in field.place[:-1]:
            place = cast(dict[str, object], place.setdefault(step, {}))
        place[field.place[-1]] = _json_of(field, value)
    return top


def _json_of(field: Field, value: object) -> object:
    if field.kind == "switch":
        return field.name not in SWITCHED_OFF
    if field.kind in {"pairs", "env"}:
        return _pairs(field, cast(Sequence[str], value))
    if field.kind == "headers":
        return _headers(field, cast(Sequence[str], value))
    if field.kind == "permissions":
        return [_permission(field, word) for word in cast(Sequence[str], value)]
    if field.kind == "success":
        return _success(field, cast(Sequence[str], value))
    if field.kind in AMOUNTS and not str(value).lstrip().startswith("{"):
        return _amounts(field, str(value))
    if field.kind == "weights":
        return _weights(field, cast(Sequence[str], value))
    if field.kind == "count":
        return whole_number(cast(str, value), field.path)
    if field.kind in {"session", "goal"}:
        return _of_agent(field, str(value))
    if field.kind == "arguments" or (field.kind in {"gate", *AMOUNTS} and str(value).lstrip().startswith("{")):
        return _json(field, str(value))
    return list(value) if isinstance(value, tuple) else value


def rule_given(word: str, known: Mapping[str, object]) -> tuple[str, object]:
    """Read `RULE=VALUE` into the rule's name and its value as JSON has it; Invalid when `known` has it already."""
    name, mark, text = word.partition("=")
    rule = name.strip().replace("-", "_").lower()
    field = BY_PATH.get(f"rules.{rule}")
    if field is None:
        allowed = [one.name for one in RULES if one.name not in OF_ONE_TASK]
        raise Invalid(
            f"there is no rule {shown(name)}", field="RULE", hint=nearest(rule, allowed), details={"allowed": allowed}
        )
    if not mark:
        raise Invalid(f"{shown(word)} has no =", field="RULE", text=word, at=len(word), hint=f"{word}=VALUE")
    if rule in known:
        raise Invalid(f"{rule} is given twice", field="RULE", text=word, at=0)
    if field.kind == "count":
        return rule, whole_number(text, field.path)
    return rule, text


def cleared(names: Sequence[str]) -> dict[str, object]:
    """Read what goes back to its default into a merge patch: `max-age`, `env`, `env.PATH`."""
    patch: dict[str, object] = {}
    for name in names:
        word, dot, entry = name.strip().removeprefix("--").partition(".")
        field = CLEARED.get(word.replace("-", "_").lower())
        if field is None or (dot and field.kind not in {"pairs", "env", "weights", "headers"}):
            raise Invalid(
                f"there is nothing to clear by the name {shown(name)}",
                field="--clear",
                hint=nearest(word.replace("-", "_").lower(), CLEARED),
                details={"allowed": list(CLEARED)},
            )
        place = patch
        for step in field.place[:-1]:
            place = cast(dict[str, object], place.setdefault(step, {}))
        last = field.place[-1]
        if not dot:
            place[last] = None
        elif place.get(last, {}) is not None:
            cast(dict[str, object], place.setdefault(last, {}))[entry] = None
    return patch


def whole_number(text: str, field: str) -> int:
    """Read a whole number in the ten digits that everybody's keyboard has."""
    if not (text.isascii() and text.removeprefix("-").isdigit()) or len(text) > 18:
        raise Invalid(f"{shown(text)} is not a whole number", field=field, text=text, at=0)
    return int(text)


def _weights(field: Field, words: Sequence[str]) -> dict[str, int]:
    weights: dict[str, int] = {}
    for word in words:
        key, mark, number = word.partition("=")
        if key in weights:
            raise Invalid(f"{shown(key)} is given twice", field=field.path, text=word, at=0)
        weights[key] = whole_number(number, field.path) if mark else 1
    return weights


def _headers(field: Field, words: Sequence[str]) -> dict[str, str]:
    """Read NAME: VALUE, as it stands in a request."""
    headers: dict[str, str] = {}
    for word in words:
        name, mark, text = word.partition(":")
        name = name.strip()
        if not mark:
            hint = "NAME: VALUE"
            raise Invalid(f"{shown(word)} has no colon", field=field.path, text=word, at=len(word), hint=hint)
        if name in headers:
            raise Invalid(f"{shown(name)} is given twice", field=field.path, text=word, at=0)
        headers[name] = text.strip()
    return headers


def _permission(field: Field, word: str) -> dict[str, str]:
    """Read TOOL[:PATTERN]=ACTION; of several equals signs the last one counts, as patterns may hold some."""
    about, mark, action = word.rpartition("=")
    if not mark:
        hint = f"{word}=allow"
        raise Invalid(f"{shown(word)} has no =", field=field.path, text=word, at=len(word), hint=hint)
    tool, colon, pattern = about.partition(":")
    return {"tool": tool, "action": action} | ({"pattern": pattern} if colon else {})


def _success(field: Field, words: Sequence[str]) -> object:
    """Read PART=VALUE, several of them together, into the object that the rule is in JSON."""
    if len(words) == 1 and words[0].lstrip().startswith("{"):
        return _json(field, words[0])
    given: dict[str, object] = {}
    for word in words:
        part, mark, text = word.partition("=")
        if not mark or part in given:
            fault = f"{shown(part)} is given twice" if mark else f"{shown(word)} has no ="
            raise Invalid(fault, field=field.path, text=word, at=0, hint="exit=0, matches=REGEX or file=PATH")
        given[part] = [whole_number(one, f"{field.path}.exit") for one in text.split(",")] if part == "exit" else text
    return given


def _of_agent(field: Field, text: str) -> object:
    """Read `ID,busy=wait`, or a number of tokens, into the object that a session or a goal is in JSON."""
    if text.lstrip().startswith("{"):
        return _json(field, text)
    if field.kind == "goal":
        return {"tokens": whole_number(text.strip().removeprefix("tokens="), field.path)}
    use, mark, busy = text.partition(",busy=")
    return {"use": use.removeprefix("use=")} | ({"busy": busy} if mark else {})


def _amounts(field: Field, text: str) -> dict[str, object]:
    """Read `runs=10,usd=2.50,per=day` into the object that it is in JSON."""
    given: dict[str, object] = {}
    at = 0
    for part in text.split(","):
        name, mark, amount = (word.strip() for word in part.partition("="))
        if not mark or name in given:
            fault = f"{shown(name)} is there twice" if mark else f"{shown(part.strip())} has no ="
            raise Invalid(fault, field=field.path, text=text, at=at, hint=field.metavar)
        given[name] = int(amount) if amount.isascii() and amount.isdigit() and name != "usd" else amount
        at += len(part) + 1
    return given


def _json(field: Field, text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as bad:
        at = bad.pos if isinstance(bad, json.JSONDecodeError) else 0
        hint = """'["one", 2]', or '{"name": "value"}'""" if field.kind == "arguments" else None
        raise Invalid("it is not JSON", field=field.path, text=text, at=at, hint=hint) from bad


def _pairs(field: Field, words: Sequence[str]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for word in words:
        key, mark, value = word.partition("=")
        if not mark:
            raise Invalid(f"{shown(word)} has no =", field=field.path, text=word, at=len(word), hint=f"{word}=VALUE")
        if key in pairs:
            raise Invalid(f"{shown(key)} is given twice", field=field.path, text=word, at=0)
        pairs[key] = value
    return pairs
