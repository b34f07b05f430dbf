"""Agents as the config of a host names them: `[agents.NAME]`, read strictly into values."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from duly.core.reading import nearest, read_name, read_text, shown
from duly.errors import Invalid

FIELDS = ("kind", "command", "env", "models")
KINDS = ("acp",)
SECRET = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """An agent that this host can start: by which protocol it is spoken to, by which command, with which variables."""

    name: str
    kind: Literal["acp"] = "acp"
    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables beside those of the holder; a value `${NAME}` is the secret of that name."""
    models: tuple[str, ...] = ()
    """Models that tasks may name; empty: whatever the agent takes."""


def read_agents(table: Mapping[str, object], where: str) -> tuple[dict[str, Agent], dict[str, Invalid]]:
    """Read the section; gives the agents by name, and for those that cannot be used what is wrong with each."""
    agents: dict[str, Agent] = {}
    faults: dict[str, Invalid] = {}
    for name, given in table.items():
        try:
            agents[name] = _agent(name, given, f"{where}: agents.{name}")
        except Invalid as bad:
            faults[name] = bad
    return agents, faults


def _agent(name: str, given: object, where: str) -> Agent:
    read_name(name, where)
    if not isinstance(given, Mapping):
        raise Invalid(f"{shown(given)} is no section", field=where, hint=f"[agents.{name}]")
    for key in given:
        if key not in FIELDS:
            near = nearest(key, FIELDS)
            raise Invalid("there is no such key", field=f"{where}.{key}", hint=near, details={"allowed": list(FIELDS)})
    kind = given.get("kind")
    if kind not in KINDS:
        said = "it is missing" if kind is None else f"{shown(kind)} is not one of {', '.join(KINDS)}"
        raise Invalid(said, field=f"{where}.kind", hint='kind = "acp"', details={"allowed": list(KINDS)})
    command = _texts(given.get("command"), f"{where}.command", hint='command = ["program", "argument"]')
    if not command or not command[0]:
        raise Invalid("the program is missing", field=f"{where}.command", hint='command = ["program", "argument"]')
    return Agent(
        name=name,
        command=command,
        env=_env(given.get("env", {}), f"{where}.env"),
        models=_texts(given.get("models", []), f"{where}.models", hint='models = ["one", "two"]'),
    )


def _texts(given: object, where: str, *, hint: str) -> tuple[str, ...]:
    if not isinstance(given, list | tuple):
        said = "it is missing" if given is None else f"{shown(given)} is not a list of texts"
        raise Invalid(said, field=where, hint=hint)
    return tuple(read_text(word, f"{where}[{at}]") for at, word in enumerate(given))


def _env(given: object, where: str) -> Mapping[str, str]:
    if not isinstance(given, Mapping):
        raise Invalid(f"{shown(given)} is not a table of texts", field=where, hint='env = { NAME = "value" }')
    for name in given:
        if not name or "=" in name or "\0" in name:
            raise Invalid(f"{shown(name)} is not a variable's name", field=where)
    return {name: read_text(value, f"{where}.{name}") for name, value in given.items()}
