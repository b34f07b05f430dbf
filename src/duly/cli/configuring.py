"""`config show`: the settings of this host, each with its value and where that comes from."""

import os
from typing import TYPE_CHECKING

from duly.cli import out
from duly.cli.frame import Verbs, command, settings
from duly.cli.joining import config as read_config
from duly.cli.table import Cell, Column, plain, render
from duly.errors import DulyError, Invalid

if TYPE_CHECKING:
    from duly.config import Config
    from duly.core.settings import Setting

FAILED = 2


@command(
    name="show",
    help="Show every setting, its value, and where that comes from.",
)
def show() -> int:
    """Show the settings in force."""
    from duly.core.settings import SETTINGS

    found = read_config()
    items = [_item(found, setting) for setting in SETTINGS]
    code = FAILED if found.agent_faults or any(item["problem"] for item in items) else 0
    if settings().as_json:
        out.document(
            {
                "file": str(found.path),
                "exists": found.exists,
                "items": items,
                "next": None,
                "warnings": list(found.warnings),
                "agents": _agents(found),
                "secrets": sorted(found.secrets),
            }
        )
        return code
    out.line(f"file {plain(str(found.path))}" + ("" if found.exists else " (none there)"))
    out.line()
    out.lines(render(_columns(), [_row(item) for item in items]))
    for agent in _agents(found):
        said = agent["problem"] or f"{agent['kind']}: {agent['command'] or agent['url']}"
        out.line(f"agent {plain(str(agent['name']))}  {plain(str(said))}")
    if found.secrets:
        out.line(f"secrets {plain(', '.join(sorted(found.secrets)))} (their values are shown nowhere)")
    return code


def _agents(found: "Config") -> list[dict[str, object]]:
    """Show the agents of this host; of their variables the names alone."""
    import shlex

    shown: list[dict[str, object]] = [
        {
            "name": one.name,
            "kind": one.kind,
            "command": shlex.join(one.command) or None,
            "url": one.url,
            "env": sorted(one.env),
            "models": list(one.models),
            "problem": None,
        }
        for one in found.agents.values()
    ]
    blank: dict[str, object] = {"kind": None, "command": None, "url": None, "env": [], "models": []}
    shown += [
        {"name": name, **blank, "problem": f"{bad.field}: {bad.message}"} for name, bad in found.agent_faults.items()
    ]
    return shown


def _item(found: "Config", setting: "Setting") -> dict[str, object]:
    from duly.config import in_force, slots_default, written

    flag = settings().store if setting.key == "store" else None
    shown: dict[str, object] = {
        "key": setting.key,
        "value": None,
        "origin": None,
        "place": None,
        "default": written(setting.default),
        "variable": setting.variable,
        "flag": setting.flag,
        "help": setting.help,
        "problem": None,
    }
    try:
        one = in_force(setting.key, found, os.environ, flag)
        value = _address(one.value) if setting.key == "store" else written(one.value)
    except DulyError as bad:
        where = f"{bad.field}: " if isinstance(bad, Invalid) else ""
        return shown | {"problem": where + bad.message}
    if value is None and setting.key == "serve.slots":
        value = slots_default()
    return shown | {"value": value, "origin": one.origin, "place": one.place}


def _address(value: object) -> str:
    """Give the store's address as it is used: absolute, or the default's place."""
    from duly.store.address import resolve

    return str(resolve(None if value is None else str(value), {**os.environ, "DULY_STORE": ""}))


def _columns() -> list[Column]:
    return [
        Column(head="KEY"),
        Column(head="VALUE", cut=True),
        Column(head="FROM", words=True),
    ]


def _row(item: dict[str, object]) -> list[Cell | str]:
    if item["problem"]:
        problem = Cell(text=plain(str(item["problem"])), styles=("red",))
        return [str(item["key"]), "", problem]
    origin = str(item["origin"])
    place = "" if item["place"] is None else f" ({item['place']})"
    value = item["value"]
    text = str(value).lower() if isinstance(value, bool) else "" if value is None else str(value)
    return [str(item["key"]), plain(text), plain(f"{origin}{place}" if origin in {"environment", "flag"} else origin)]


config = Verbs(
    "config",
    show,
    help="Show the settings of this host. The order is: flags, the environment, the config file, defaults.",
    epilog="duly config show",
)
