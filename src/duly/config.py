"""The settings of this host: flags, then the environment, then the config file, then defaults, each with its origin.

What decides about tasks lives in the store; here stands only what is of one host. The file is TOML; a key it does not
know is warned of, a value it cannot use is refused where it is asked for.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Literal

from duly.core.agent_config import Agent, read_agents
from duly.core.reading import nearest, shown
from duly.core.settings import BY_KEY, SECTIONS, Setting, Value
from duly.core.spans import read_span, write_span
from duly.errors import Invalid
from duly.secrets import Secrets

VARIABLE = "DULY_CONFIG"
FILE_MOST = 1024 * 1024
"""Bytes of a config file that are read."""
TABLES = ("agents", "secrets")
"""Sections with names that their author chose."""
SLOTS_LEAST = 4

Origin = Literal["flag", "environment", "file", "default"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """What the file says: its values by key as they were written, what is not known in it, its agents and secrets."""

    path: Path
    exists: bool
    values: Mapping[str, object]
    warnings: tuple[str, ...] = ()
    agents: Mapping[str, Agent] = field(default_factory=dict)
    agent_faults: Mapping[str, Invalid] = field(default_factory=dict)
    """Agents that cannot be used as they are written, and why."""
    secrets: Mapping[str, object] = field(default_factory=dict)
    """Secrets as they are named: where each is, or itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InForce:
    """A setting as it is in force: its value, where that comes from, and the name of that place."""

    setting: Setting
    value: Value
    origin: Origin
    place: str | None


def load(environ: Mapping[str, str]) -> Config:
    """Read the config file; one that nobody named may be missing. Invalid where it is there and cannot be read."""
    named = environ.get(VARIABLE) or None
    path = place(environ)
    try:
        with path.open("rb") as file:
            data = file.read(FILE_MOST + 1)
    except FileNotFoundError as error:
        if named is not None:
            raise Invalid(f"there is no file {path}", field=VARIABLE) from error
        return Config(path=path, exists=False, values={})
    except OSError as error:
        raise Invalid(f"the config file cannot be read: {error.strerror}", field=str(path)) from error
    table = _parsed(path, data)
    values, unknown = _flat(table)
    sections = {name: given for name in TABLES if isinstance(given := table.get(name), Mapping)}
    agents, faults = read_agents(sections.get("agents", {}), str(path))
    return Config(
        path=path,
        exists=True,
        values=values,
        warnings=tuple(_unknown(path, key) for key in unknown),
        agents=agents,
        agent_faults=faults,
        secrets=_secrets(sections.get("secrets", {}), path),
    )


def secrets_of(found: Config, environ: Mapping[str, str]) -> Secrets:
    """Give what resolves the secrets that the config names."""
    return Secrets(found.secrets, environ)


def place(environ: Mapping[str, str]) -> Path:
    """Say where the config file is looked for: DULY_CONFIG, else `duly/config.toml` in the config folder."""
    named = environ.get(VARIABLE)
    if named:
        return Path(named).expanduser().absolute()
    given = environ.get("XDG_CONFIG_HOME")
    home = Path(environ.get("HOME") or Path.home())
    folder = Path(given) if given and Path(given).is_absolute() else home / ".config"
    return folder / "duly" / "config.toml"


def in_force(key: str, config: Config, environ: Mapping[str, str], flag: Value = None) -> InForce:
    """Give a setting as it is in force; `flag` is what the command line said, None where it said nothing.

    Invalid names the flag, the variable or the place in the file whose value cannot be used.
    """
    setting = BY_KEY[key]
    if flag is not None:
        value = _of_text(setting, flag, setting.flag) if isinstance(flag, str) else flag
        return InForce(setting=setting, value=value, origin="flag", place=setting.flag)
    said = environ.get(setting.variable)
    if said:
        value = _of_text(setting, said, setting.variable)
        return InForce(setting=setting, value=value, origin="environment", place=setting.variable)
    if key in config.values:
        value = _of_file(setting, config.values[key], config.path)
        return InForce(setting=setting, value=value, origin="file", place=str(config.path))
    return InForce(setting=setting, value=setting.default, origin="default", place=None)


def slots_default() -> int:
    """How many runs at once where nobody said: four, or as many as there are CPUs where those are more."""
    return max(SLOTS_LEAST, os.cpu_count() or 1)


def written(value: Value) -> object:
    """Write a value as JSON and TOML have it: a span is a text."""
    return write_span(value) if isinstance(value, timedelta) else value


def _parsed(path: Path, data: bytes) -> dict[str, object]:
    import tomllib

    if len(data) > FILE_MOST:
        raise Invalid(f"the config file is larger than {FILE_MOST:,} bytes", field=str(path))
    try:
        return tomllib.loads(data.decode())
    except UnicodeDecodeError as error:
        raise Invalid(f"the config file is not UTF-8 (byte {error.start})", field=str(path)) from error
    except tomllib.TOMLDecodeError as error:
        text = str(error)
        raise Invalid(f"the config file is not TOML: {text[:1].lower()}{text[1:]}", field=str(path)) from error
    except RecursionError as error:
        raise Invalid("the config file is nested too deeply", field=str(path)) from error


def _flat(table: Mapping[str, object]) -> tuple[dict[str, object], list[str]]:
    """Give the known keys with their values, and the unknown ones."""
    values: dict[str, object] = {}
    unknown: list[str] = []
    for name, value in table.items():
        if name in TABLES and isinstance(value, Mapping):
            continue
        if name in SECTIONS and isinstance(value, Mapping):
            for inner, setting in value.items():
                key = f"{name}.{inner}"
                values[key] = setting
        else:
            values[name] = value
    for key in [key for key in values if key not in BY_KEY]:
        unknown.append(key)
        del values[key]
    return values, unknown


def _secrets(table: Mapping[str, object], path: Path) -> dict[str, object]:
    """Read where the secrets are; a file is meant from the config's folder."""
    return {
        name: {"file": _beside(given["file"], path)}
        if isinstance(given, Mapping) and isinstance(given.get("file"), str) and len(given) == 1
        else given
        for name, given in table.items()
    }


def _unknown(path: Path, key: str) -> str:
    last = key.rpartition(".")[2]
    near = nearest(key, tuple(BY_KEY)) or nearest(last, tuple(known.rpartition(".")[2] for known in BY_KEY))
    meant = next((known for known in BY_KEY if near is not None and near in {known, known.rpartition(".")[2]}), None)
    return f"{path}: {shown(key)} is not known" + (f"; perhaps {meant} is meant" if meant else "")


def _of_text(setting: Setting, text: str, where: str) -> Value:
    if setting.kind == "span":
        return read_span(text, field=where, zero=setting.zero)
    if setting.kind == "count":
        if not (text.isascii() and text.removeprefix("-").isdigit()) or len(text) > 18:
            raise Invalid(f"{shown(text)} is not a whole number", field=where, text=text, at=0)
        return _bounded(setting, int(text), where)
    if setting.kind == "switch":
        word = text.strip().lower()
        if word not in {"1", "true", "yes", "on", "0", "false", "no", "off"}:
            raise Invalid(f"{shown(text)} is neither true nor false", field=where, text=text, at=0)
        return word in {"1", "true", "yes", "on"}
    return _one_of(setting, text, where) if setting.kind == "word" else text


def _of_file(setting: Setting, value: object, path: Path) -> Value:
    where = f"{path}: {setting.key}"
    wanted = {"count": "a whole number", "switch": "true or false"}.get(setting.kind, "a text")
    kinds: Mapping[str, type] = {"count": int, "switch": bool, "span": str, "path": str, "word": str, "text": str}
    if type(value) is not kinds[setting.kind]:
        raise Invalid(f"{shown(value)} is not {wanted}", field=where)
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return _bounded(setting, value, where)
    assert isinstance(value, str)
    if setting.kind == "span":
        return read_span(value, field=where, zero=setting.zero)
    if setting.kind == "text":
        return value
    return _one_of(setting, value, where) if setting.kind == "word" else _beside(value, path)


def _one_of(setting: Setting, text: str, where: str) -> str:
    word = text.strip().lower().replace("_", "-")
    if word not in setting.words:
        near = nearest(word, setting.words) or setting.words[0]
        raise Invalid(
            f"{shown(text)} is not one of {', '.join(setting.words)}", field=where, text=text, at=0, hint=near
        )
    return word


def _bounded(setting: Setting, value: int, where: str) -> int:
    if not setting.least <= value <= setting.most:
        raise Invalid(f"{value} is not between {setting.least} and {setting.most:,}", field=where)
    return value


def _beside(value: str, path: Path) -> str:
    """A path in the file is meant from the file's folder, never from where somebody happens to stand."""
    if "://" in value or not value.strip():
        return value
    return str(path.parent / Path(value).expanduser())
