"""Guard rails for what agents schedule: how often, how many, what runs on this host, and secrets in what they wrote.

A rail, not a wall: who may write to the store by other roads is not held by it.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice, pairwise
from typing import Literal

from duly import zones
from duly.core.names import key_of
from duly.core.schedule import dues
from duly.core.spans import write_span
from duly.core.task import Definition, Task
from duly.errors import Invalid, Refused
from duly.store import Session

SOURCE = "mcp"
LOOKED_AT = 200
"""So many instants to come are looked at for two that are too close."""
PAGE = 1_000
SECRETS: Mapping[str, re.Pattern[str]] = {
    "a private key": re.compile(r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----"),
    "an access key of AWS": re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
    "a token of GitHub": re.compile(r"\b(?:gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{60,255})"),
    "a token of GitLab": re.compile(r"\bglpat-[A-Za-z0-9_-]{20,100}"),
    "a token of Slack": re.compile(r"\bxox[abposr]-[A-Za-z0-9-]{10,250}"),
    "an API key": re.compile(r"\bsk-(?:ant-|proj-|or-v1-)?[A-Za-z0-9_-]{32,250}"),
    "a key of Google": re.compile(r"\bAIza[A-Za-z0-9_-]{35}"),
    "a signed token": re.compile(r"\beyJ[A-Za-z0-9_-]{10,2000}\.eyJ[A-Za-z0-9_-]{10,4000}\.[A-Za-z0-9_-]{10,1000}"),
    "a password in an address": re.compile(r"\b[a-z][a-z0-9+.-]{1,30}://[^\s/:@$]{1,100}:[^\s/@${]{3,200}@"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rails:
    """What agents may schedule: `commands` says whether what acts on this host waits for a person's yes."""

    commands: Literal["ask", "allow"] = "ask"
    shortest: timedelta = timedelta(minutes=1)
    tasks_most: int = 100


def check(definition: Definition, task: Task, rails: Rails) -> None:
    """Refuse a definition whose texts hold a secret, or that comes more often than agents may have it."""
    check_texts(definition_texts(definition))
    _check_pace(task, rails.shortest)


def check_count(session: Session, rails: Rails) -> None:
    """Refuse one more task where agents have made as many as they may."""
    count, after = 0, ("", "")
    while page := session.tasks.page(after=after, most=PAGE):
        count += sum(task.source.get("kind") == SOURCE for task in page)
        if len(page) < PAGE:
            break
        last = page[-1].definition
        after = (key_of(last.project), key_of(last.name))
    if count >= rails.tasks_most:
        raise Refused(
            "not_allowed",
            f"agents have made {count} tasks here, and {rails.tasks_most} are allowed",
            details={"tasks": count, "most": rails.tasks_most},
            hint="remove one that is no longer wanted; a person may raise mcp.tasks_most",
        )


def held_for(definition: Definition, rails: Rails) -> str | None:
    """Say why a definition of an agent waits for a person; None where it may start by itself."""
    if rails.commands == "allow":
        return None
    rules, kind = definition.rules, definition.action.get("kind")
    if kind != "agent":
        return f"an agent scheduled work of the kind {kind}"
    if rules.gate is not None:
        return "an agent scheduled a gate, which is a command"
    if rules.unattended == "allow" or any(one.action == "allow" for one in rules.permissions):
        return "an agent scheduled work that is allowed what others are asked for"
    if rules.store_access != "none":
        return "an agent scheduled work that may reach the store"
    return None


def check_texts(texts: Iterator[tuple[str, str]]) -> None:
    """Refuse a text that holds what looks like a secret; it is not repeated."""
    for field, text in texts:
        for what, pattern in SECRETS.items():
            if pattern.search(text):
                raise Invalid(
                    f"it seems to hold {what}, and whatever stands in a task is kept and shown",
                    field=field,
                    hint='a command names a secret of the config instead: "env": {"KEY": "${NAME}"}',
                )


def definition_texts(definition: Definition) -> Iterator[tuple[str, str]]:
    """Give all texts of a definition in which a secret may stand, with their fields."""
    yield "description", definition.description
    yield from _texts("action", dict(definition.action))


def _texts(field: str, value: object) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield field, value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _texts(f"{field}.{key}", inner)
    elif isinstance(value, list | tuple):
        for at, inner in enumerate(value):
            yield from _texts(f"{field}[{at}]", inner)


def _check_pace(task: Task, shortest: timedelta) -> None:
    definition = task.definition
    instants = islice(dues(definition, zones.zone(definition.zone), task.planned_until), LOOKED_AT)
    for one, following in pairwise(instants):
        if following - one < shortest:
            apart = write_span(following - one)
            raise Refused(
                "not_allowed",
                f"it would start {apart} after another start, and agents' tasks keep {write_span(shortest)} apart",
                details={"apart_s": (following - one).total_seconds(), "shortest": write_span(shortest)},
                hint=f"every {write_span(shortest)} or rarer; a person may lower mcp.shortest",
            )
