"""One loop file read into the definition that it gives: front matter, and below it the prompt.

`name`, `schedule`, `enabled`, `model`, `agent` and `timezone` are what other readers of such files know too; the rules
of Duly are further keys. What neither knows is kept in the file, and told.
"""

import hashlib
import json
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from duly.core.loop_keys import faults_of
from duly.core.loops import Fault, Loop, Spoilt
from duly.core.reading import nearest, shown
from duly.core.rule_fields import RULES
from duly.errors import Invalid
from duly.sources.front_matter import FrontMatter, Unreadable, read

if TYPE_CHECKING:
    from duly.definitions import Understood

USUAL_AGENT = "opencode"
"""Who is prompted where the config of this host leaves it open: loop files come from that agent's users."""
RULE_NAMES = frozenset(rule.name for rule in RULES)
OTHER_WORDS: Mapping[str, str] = {"cron": "schedule", "zone": "timezone", "tz": "timezone", "jitter": "spread"}
"""Keys of other tools that mean the same."""
OWN = ("name", "schedule", "enabled", "model", "agent", "timezone", "description", "labels", "cwd")
PASSED = ("profile", "variant", "session", "goal")
"""What an agent's action may have beyond the model, by the same names."""
LINES_AT_LEAST = 1


@dataclass(slots=True, kw_only=True)
class _Reading:
    """A file on its way to a definition."""

    matter: FrontMatter
    keys: Mapping[str, str]
    """The key of the file for each key as we call it."""
    faults: list[Fault] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def get(self, key: str) -> Any:
        """The value of a key, by our name for it."""
        return self.matter.values.get(self.keys.get(key, key))

    def line(self, key: str) -> int | None:
        """The line of a key, by our name for it."""
        return self.matter.lines.get(self.keys.get(key, key))

    def wrong(self, key: str, message: str, hint: str | None = None) -> None:
        """Note a fault of a key."""
        self.faults.append(Fault(field=key, message=message, line=self.line(key), hint=hint))


def read_loop(data: bytes, path: str, *, agents: Collection[str] = (), home: str | None = None) -> Loop | Spoilt:
    """Read a file's bytes; `agents`: those that the config of this host names. Whether it can ever run is not asked."""
    try:
        matter = read(data)
    except Unreadable as bad:
        return Spoilt(path=path, faults=(bad.fault,))
    reading = _Reading(matter=matter, keys=_keys(matter))
    given = _given(reading, path, agents, home)
    if reading.faults:
        return Spoilt(path=path, faults=tuple(sorted(reading.faults, key=lambda one: one.line or LINES_AT_LEAST)))
    line = reading.line("name") or LINES_AT_LEAST
    digest = hashlib.sha256(json.dumps([given, path, line], sort_keys=True, ensure_ascii=False).encode()).hexdigest()
    return Loop(
        path=path,
        line=line,
        name=str(given["name"]),
        given=given,
        lines=_lines(reading),
        digest=digest[:32],
        warnings=tuple(reading.warnings),
    )


def understand(
    loop: Loop, *, now: datetime, default_zone: str | None, project: str = "default"
) -> "tuple[Understood | None, tuple[Fault, ...]]":
    """Read the definition that a file gives, strictly; what is wrong with it is told with the lines of the file."""
    from duly.definitions import read_definition

    try:
        return read_definition({**loop.given, "project": project}, now=now, default_zone=default_zone), ()
    except Invalid as bad:
        return None, faults_of(bad, loop.lines)


def agent_of(word: str | None, agents: Collection[str]) -> tuple[str, str | None]:
    """Say which agent of a host's config is meant, and which profile of it, by the one word that a file has for both.

    A name of the config is that agent; another is a profile of the one that the config names, else of OpenCode.
    """
    if word is not None and word in agents:
        return word, None
    known = sorted(agents)
    usual = known[0] if len(known) == 1 else USUAL_AGENT
    return usual, word


def _keys(matter: FrontMatter) -> dict[str, str]:
    """Name each key as we do: rules with `_`, and the words that other tools have for the same."""
    keys: dict[str, str] = {}
    for key in matter.values:
        ours = key.replace("-", "_")
        ours = ours if ours in RULE_NAMES else key
        other = OTHER_WORDS.get(ours)
        keys.setdefault(other if other is not None and other not in matter.values else ours, key)
    return keys


def _given(reading: _Reading, path: str, agents: Collection[str], home: str | None) -> dict[str, Any]:
    given: dict[str, Any] = {
        "enabled": _enabled(reading),
        "triggers": _triggers(reading),
        "action": _action(reading, path, agents, home),
        "rules": _rules(reading),
    }
    for key, name in (("name", "name"), ("description", "description"), ("labels", "labels"), ("timezone", "zone")):
        value = reading.get(key)
        if value is not None:
            given[name] = value
    if not isinstance(given.get("name"), str):
        reading.wrong("name", "it is missing" if "name" not in given else f"{shown(given['name'])} is not a text")
    _tell_unknown(reading)
    return given


def _enabled(reading: _Reading) -> bool:
    """Whether the author has switched it on: nothing is unless it says so."""
    for key, off in (("enabled", False), ("disabled", True)):
        value = reading.get(key)
        if value is None:
            continue
        if not isinstance(value, bool):
            reading.wrong(key, f"{shown(value)} is not one of true, false, without quotes", hint=f"{key}: true")
            return False
        return value is not off
    return False


def _triggers(reading: _Reading) -> list[str]:
    given = reading.get("schedule")
    if given is None:
        reading.wrong("schedule", "it is missing", hint='schedule: "0 9 * * *", or schedule: manual')
        return []
    texts = given if isinstance(given, list) else [given]
    for text in texts:
        if not isinstance(text, str):
            reading.wrong("schedule", f"{shown(text)} is not a text", hint='schedule: "0 9 * * *"')
            return []
        if text.lower().split()[:2] == ["once", "in"]:
            hint = "once 2026-12-01 09:00"
            reading.wrong("schedule", "a distance from now means another instant at every reading", hint=hint)
    return texts


def _action(reading: _Reading, path: str, agents: Collection[str], home: str | None) -> dict[str, Any]:
    word, model = reading.get("agent"), reading.get("model")
    if word is not None and (not isinstance(word, str) or not word.strip()):
        reading.wrong("agent", f"{shown(word)} is not an agent's name")
        word = None
    if model is not None and (not isinstance(model, str) or not all(model.partition("/"))):
        reading.wrong("model", f"{shown(model)} is not provider/model", hint="model: anthropic/claude-sonnet-4-5")
    if not reading.matter.text:
        line = reading.matter.text_line
        reading.faults.append(Fault(field="prompt", message="there is no text below the front matter", line=line))
    agent, profile = agent_of(word, agents)
    action: dict[str, Any] = {"kind": "agent", "agent": agent, "prompt": reading.matter.text}
    if profile is not None:
        action["profile"] = profile
    if model is not None:
        action["model"] = model
    for key in PASSED:
        if reading.get(key) is not None:
            action[key] = reading.get(key)
    if reading.get("cwd") is not None:
        action["cwd"] = _folder(reading, path, home)
    return action


def _folder(reading: _Reading, path: str, home: str | None) -> str:
    """Give the folder to work in: one that is not absolute is taken from where `.agents` lies."""
    given = reading.get("cwd")
    if not isinstance(given, str) or not given.strip():
        reading.wrong("cwd", f"{shown(given)} is not a folder")
        return "/"
    if given == "~" or given.startswith("~/"):
        return str(PurePosixPath(home or str(Path.home())) / given.removeprefix("~").lstrip("/"))
    return os.path.normpath(PurePosixPath(root_of(path)) / given)


def root_of(path: str) -> str:
    """Give the folder whose `.agents/loops` a file lies in; of a file elsewhere its own folder."""
    folder = PurePosixPath(path).parent
    return str(folder.parent.parent if (folder.parent.name, folder.name) == (".agents", "loops") else folder)


def _rules(reading: _Reading) -> dict[str, Any]:
    rules = {name: reading.get(name) for name in sorted(RULE_NAMES) if reading.get(name) is not None}
    if rules.get("remove_when_done"):
        reading.wrong("remove_when_done", "what a file defines is there as long as its file is")
    missed = reading.get("catch_up")
    if isinstance(missed, bool) and "on_missed" not in rules:
        rules["on_missed"] = "run" if missed else "skip"
    return rules


def _tell_unknown(reading: _Reading) -> None:
    known = {*OWN, *RULE_NAMES, *PASSED, "disabled", "catch_up"}
    for key, written in reading.keys.items():
        if key in known:
            continue
        line = reading.line(key)
        near = None if written == "env" else nearest(key, sorted(known))
        text = f"line {line}: {written} is none of our keys, and is left alone"
        if written == "env":
            text = f"line {line}: env is left alone, ${{…}} in it not filled in: an agent has its config's"
        reading.warnings.append(text + (f" (did you mean {near}?)" if near else ""))


def _lines(reading: _Reading) -> dict[str, int]:
    lines = {key: line for key in reading.keys if (line := reading.line(key)) is not None}
    return {**lines, "prompt": reading.matter.text_line}
