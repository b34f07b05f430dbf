"""From what a program says of a task to the JSON of its definition, and from that to the store."""

import logging
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, cast

from duly import clock, zones
from duly.app.naming import name_of
from duly.app.values import Moment, Span
from duly.core import spans, when
from duly.core.action_fields import ACTION as ACTION_FIELDS
from duly.core.action_fields import FIELDS_OF
from duly.core.definition_json import definition_from_json
from duly.core.names import key_of
from duly.core.reading import refuse_unknown, shown
from duly.core.rule_fields import RULES
from duly.core.settings import BY_KEY, SLOTS_MOST
from duly.core.task import Task
from duly.errors import Invalid, Refused
from duly.importing import is_importing

if TYPE_CHECKING:
    from duly.holder.wish import OnStop, Wish
    from duly.store.store import Store

LOG = logging.getLogger("duly")
RULE_NAMES = frozenset(field.name for field in RULES)
PLAIN = ("project", "zone", "description", "labels", "enabled")
WORKS = ("call", "command", "shell", "agent", "url")
OF_AGENT = ("prompt", "prompt_file", "model", "worktree")
OF_HTTP = ("method", "headers", "body", "sign")
OF_ACTION = {
    "args": "args",
    "place": "in",
    "cwd": "cwd",
    "env": "env",
    **{name: name for name in (*OF_AGENT, *OF_HTTP)},
}
GOES_WITH = {**dict.fromkeys(OF_AGENT, "agent="), **dict.fromkeys(OF_HTTP, "url="), "env": "command= and shell="}
KNOWN = (*WORKS, *PLAIN, *OF_ACTION, *sorted(RULE_NAMES))
SOURCE = "library"
ON_STOP = BY_KEY["serve.on_stop"].words
TRIES = 3
"""Others may add or remove a task of the same name between two looks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A task as a program defines it: its definition as JSON, and the function it calls, if it calls one."""

    given: Mapping[str, Any]
    function: str | None
    is_here: bool
    """The function itself was given, and not only its name, which may mean what only others can import."""


def wanted(name: str, times: Sequence[str], work: Mapping[str, Any]) -> Wanted:
    """Put together what was said; Invalid where that means nothing by itself."""
    refuse_unknown(work, KNOWN, "")
    action, function = _action(work)
    if action is None:
        raise Invalid(
            "what shall be done is missing", field="action", hint="one of call=, command=, shell=, agent= and url="
        )
    rules = {key: _plain(value) for key, value in work.items() if key in RULE_NAMES}
    given = {key: work[key] for key in PLAIN if key in work}
    return Wanted(
        given={**given, "name": name, "triggers": list(times) or ["manual"], "action": action, "rules": rules},
        function=function,
        is_here=callable(work.get("call")),
    )


def patch(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Give changes as the JSON merge patch of a definition, in which null goes back to the default."""
    refuse_unknown(changes, ("name", "when", *KNOWN), "")
    made: dict[str, Any] = {key: changes[key] for key in ("name", *PLAIN) if key in changes}
    if "when" in changes:
        made["triggers"] = [changes["when"]] if isinstance(changes["when"], str) else list(changes["when"])
    rules = {key: _plain(value) for key, value in changes.items() if key in RULE_NAMES}
    if rules:
        made["rules"] = rules
    action, _ = _action(changes)
    if action is not None:
        # Another work takes the place of the old one, of which nothing is meant any more.
        made["action"] = {field.name: None for field in ACTION_FIELDS if field.name != "cwd"} | action
    elif given := {field: changes[option] for option, field in OF_ACTION.items() if option in changes}:
        if ("prompt" in given) != ("prompt_file" in given):
            given["prompt" if "prompt_file" in given else "prompt_file"] = None
        made["action"] = given
    return made


def _action(work: Mapping[str, Any]) -> tuple[dict[str, Any] | None, str | None]:
    said = [one for one in WORKS if work.get(one) is not None]
    if len(said) > 1:
        raise Invalid(f"{' and '.join(said)} exclude each other", field="action")
    if not said:
        return None, None
    action: dict[str, Any]
    function = None
    if said == ["call"]:
        function = work["call"] if isinstance(work["call"], str) else name_of(work["call"])
        action = {"kind": "call", "function": function}
    elif said == ["command"]:
        action = {"kind": "command", "argv": _words(work["command"])}
    elif said == ["agent"]:
        action = {"kind": "agent", "agent": work["agent"]}
    elif said == ["url"]:
        action = {"kind": "http", "url": work["url"]}
    else:
        action = {"kind": "command", "shell": work["shell"]}
    for option, field in OF_ACTION.items():
        if option in work:
            if field not in FIELDS_OF[action["kind"]]:
                goes = GOES_WITH.get(option, "call=")
                what = {"agent": "an agent", "http": "a webhook"}.get(action["kind"], f"a {action['kind']}")
                raise Invalid(f"{what} takes none", field=f"action.{field}", hint=f"it goes with {goes}")
            action[field] = work[option]
    return action, function


def check(one: Wanted) -> None:
    """Raise Invalid for what can be seen to be wrong without a store and without loading anything heavy.

    What is defined anew at every start must mean the same at every start, as in a file.
    """
    place = zones.canonical(one.given.get("zone") or machine_zone())
    texts = [str(text) for text in one.given["triggers"]]
    when.read_all(texts, now=clock.now(), zone=zones.zone(place), in_file=True, past=True)
    rules = {key: value for key, value in one.given["rules"].items() if key not in {"start", "until"}}
    definition_from_json({**one.given, "zone": place, "triggers": [], "rules": rules})


def check_function(one: Wanted) -> None:
    """Raise Invalid where the function it calls is known not to be where it is said to be; of a mere name, warn."""
    if one.function is None or one.function.count(":") != 1:
        return
    from duly.runners import functions

    fault = functions.fault(one.function, [str(entry) for entry in sys.path], here=True)
    if fault is not None and one.is_here:
        raise Invalid(fault, field="action.function", text=one.function)
    if fault is not None:
        _tell(one, [f"{fault}; whoever serves must be able to import it"])


def span(given: Span, field: str, *, zero: bool = False) -> timedelta:
    """Read a length of time."""
    text = _plain(given)
    if not isinstance(text, str):
        raise Invalid(f"{shown(given)} is not a span", field=field, hint="a timedelta, or a text such as 15m")
    return spans.read_span(text, field=field, zero=zero)


def wish_of(how: Mapping[str, Any], *, until_idle: bool) -> "Wish":
    """Read how a holder shall run, in a program that goes on after it."""
    if is_importing():
        raise Invalid(
            "this module is being imported to call one of its functions, and it serves while it is imported",
            hint='serve() and start() stand under `if __name__ == "__main__":`, or in a function',
        )
    from duly.holder.wish import wish

    given = {name: span(how[name], name, zero=name == "drain") for name in ("beat", "lease", "drain") if name in how}
    slots = how.get("slots")
    if slots is not None and (not isinstance(slots, int) or isinstance(slots, bool) or not 1 <= slots <= SLOTS_MOST):
        raise Invalid(f"{shown(slots)} is not between 1 and {SLOTS_MOST:,}", field="slots")
    refuse_unknown(how, ("slots", "labels", "beat", "lease", "drain", "on_stop"), "")
    on_stop = how.get("on_stop", ON_STOP[0])
    if on_stop not in ON_STOP:
        raise Invalid(f"{shown(on_stop)} is not one of {', '.join(ON_STOP)}", field="on_stop")
    return wish(
        slots=slots,
        labels=how.get("labels", ()),
        until_idle=until_idle,
        on_stop=cast("OnStop", on_stop),
        outlasts=True,
        beat=given.get("beat"),
        lease=given.get("lease"),
        drain=given.get("drain"),
    )


def moment(given: Moment | timedelta | None, field: str) -> datetime | None:
    """Read an instant to come; a length of time counts from now."""
    if given is None:
        return None
    zone = zones.zone(zones.machine_zone() or "UTC")
    return spans.read_instant(str(_plain(given)), now=clock.now(), zone=zone, bare="ahead", field=field)


def scope(task: str | None, project: str | None, *, everything: bool) -> tuple[str, str]:
    """Give what a pause is of, as the store has it: its kind, and which one."""
    if sum((task is not None, project is not None, everything)) != 1:
        raise Invalid("one of a task, project= and everything=True says what is meant", field="target")
    if task is not None:
        return "task", task
    return ("project", project) if project is not None else ("store", "")


def machine_zone() -> str:
    """Give this machine's zone; Invalid where it has none by name."""
    zone = zones.machine_zone()
    if zone is None:
        raise Invalid("this machine's zone has no IANA name", field="zone", hint='zone="Europe/Berlin"')
    return zone


def _words(command: Sequence[str]) -> list[str]:
    if isinstance(command, str):
        raise Invalid(
            f"{shown(command)} is a text, and a command is a list of them",
            field="action.argv",
            hint="shell= for a line",
        )
    return [str(word) for word in command]


def _plain(value: object) -> object:
    """Give a rule as JSON has it: spans and instants as texts."""
    if isinstance(value, timedelta):
        if value % timedelta(seconds=1) or value < timedelta(0):
            raise Invalid(f"{value!r} is no span of whole seconds", field="rules")
        return spans.write_span(value)
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat(" ", "seconds") if value.tzinfo is None else value.isoformat()
    if isinstance(value, tuple | set | frozenset):
        return sorted(value) if not isinstance(value, tuple) else list(value)
    return dict(value) if isinstance(value, Mapping) else value


def add(store: "Store", one: Wanted, *, by: str) -> Task:
    """Add a task that is not there yet; Refused `already_exists` where it is."""
    from duly.definitions import read_definition
    from duly.operations import tasks

    read = read_definition(one.given, now=clock.now(), default_zone=zones.machine_zone())
    _tell(one, read.warnings)
    return tasks.add(store, read.definition, by=by, source={"kind": SOURCE, "key": one.function})


def define(store: "Store", one: Wanted, *, by: str) -> Task:
    """Make a task as the program defines it: added, changed with a new version, or nothing written where it is so.

    Its switch is a person's, and stays. Refused `already_exists` where the name is taken by what no program defined.
    """
    from duly.operations import edits

    for _ in range(TRIES):
        known = _known(store, one)
        try:
            if known is None:
                return add(store, one, by=by)
            edited = edits.rewrite(store, known.id, {**one.given, "enabled": known.definition.enabled}, by=by)
            _tell(one, edited.warnings)
            return edited.after
        except Refused as refused:
            if refused.reason not in {"already_exists", "unknown_task", "version_conflict"}:
                raise
    raise Refused("version_conflict", f"{one.given['name']} is changed by others again and again")


def _known(store: "Store", one: Wanted) -> Task | None:
    from duly.operations.lookup import told

    project, name = str(one.given.get("project", "default")), str(one.given["name"])
    with store.read() as session:
        task = session.tasks.by_name(key_of(project), key_of(name))
    if task is not None and task.source.get("kind") != SOURCE:
        raise Refused(
            "already_exists",
            f"there is a task {told(task)} already, which no program defined",
            details={"task": task.id, "source": dict(task.source)},
            hint=f"another name, or duly remove {told(task)}",
        )
    return task


def _tell(one: Wanted, warnings: Sequence[str]) -> None:
    for warning in warnings:
        LOG.warning("duly: %s: %s", one.given["name"], warning)
