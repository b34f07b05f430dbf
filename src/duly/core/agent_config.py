"""Agents as the config of a host names them: `[agents.NAME]`, read strictly into values."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit

from duly.core.reading import nearest, read_name, read_text, shown
from duly.errors import Invalid

Kind = Literal["acp", "opencode"]
FIELDS = ("kind", "command", "env", "models", "url", "password")
KINDS: Mapping[str, Kind] = {"acp": "acp", "opencode": "opencode"}
COMMANDS: Mapping[Kind, str] = {"acp": '["program", "argument"]', "opencode": '["opencode", "serve"]'}
SECRET = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """An agent that this host can start or reach: how it is spoken to, by which command or where, with what."""

    name: str
    kind: Kind = "acp"
    command: tuple[str, ...] = ()
    """Empty only for a server elsewhere."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables beside those of the holder; a value `${NAME}` is the secret of that name."""
    models: tuple[str, ...] = ()
    """Models that tasks may name; empty: whatever the agent takes."""
    url: str | None = None
    """Where its server is, which somebody else starts and ends."""
    password: str | None = None
    """Of that server, as the name of a secret: `${NAME}`."""


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
    said = given.get("kind")
    kind = KINDS.get(said) if isinstance(said, str) else None
    if kind is None:
        text = "it is missing" if said is None else f"{shown(said)} is not one of {', '.join(KINDS)}"
        raise Invalid(text, field=f"{where}.kind", hint='kind = "acp"', details={"allowed": list(KINDS)})
    url, password = _place(kind, given, where)
    return Agent(
        name=name,
        kind=kind,
        command=() if url is not None else _command(kind, given, where),
        env=_env(given.get("env", {}), f"{where}.env"),
        models=_texts(given.get("models", []), f"{where}.models", hint='models = ["one", "two"]'),
        url=url,
        password=password,
    )


def _command(kind: Kind, given: Mapping[str, object], where: str) -> tuple[str, ...]:
    hint = f"command = {COMMANDS[kind]}"
    command = _texts(given.get("command"), f"{where}.command", hint=hint)
    if not command or not command[0]:
        raise Invalid("the program is missing", field=f"{where}.command", hint=hint)
    return command


def _place(kind: Kind, given: Mapping[str, object], where: str) -> tuple[str | None, str | None]:
    """Read where a server is that others start, and its password."""
    if "url" not in given and "password" not in given:
        return None, None
    field = f"{where}.{'url' if 'url' in given else 'password'}"
    if kind == "acp":
        raise Invalid("an agent of this kind is started here, and has no server", field=field, hint='kind = "opencode"')
    if "url" not in given:
        raise Invalid("a server that is started here has a password of its own", field=field, hint="url")
    for other in ("command", "env"):
        if other in given:
            said = f"url and {other} exclude each other: the server at url is started by somebody else"
            raise Invalid(said, field=f"{where}.{other}")
    url = read_text(given["url"], field)
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc or parts.query:
        raise Invalid(f"{shown(url)} is no address of a server", field=field, hint="http://127.0.0.1:4096")
    password = given.get("password")
    if password is None:
        return url, None
    text = read_text(password, f"{where}.password")
    if SECRET.fullmatch(text) is None:
        hint = 'password = "${NAME}", with NAME in [secrets]'
        raise Invalid("a password is only named here, and not told", field=f"{where}.password", hint=hint)
    return url, text


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
