"""What is heard of an agent before it is prompted: its name, its models, whether it can go on with a session.

What it cannot do is told by exceptions: nothing was asked of it yet.
"""

import asyncio
from collections.abc import Coroutine, Mapping
from typing import TYPE_CHECKING, Any

from duly import __version__
from duly.runners.prompting import NotResumed, Unfit

if TYPE_CHECKING:
    from acp.connection import Connection

PROTOCOL = 1
GREETED_WITHIN_S = 60.0
"""An agent that does not answer the first call in so long never will."""
LAST_LINE_MOST = 500


class Nonsense(Exception):
    """The agent answered what the protocol has not."""


async def greet(connection: "Connection") -> Mapping[str, Any]:
    """Say hello, which costs nothing, and hear which protocol the agent speaks; Unfit where that is not ours."""
    client = {"name": "duly", "title": "Duly", "version": __version__}
    offers = {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}
    asked = {"protocolVersion": PROTOCOL, "clientCapabilities": offers, "clientInfo": client}
    call: Coroutine[Any, Any, Any] = connection.send_request("initialize", asked)
    try:
        greeting = await asyncio.wait_for(call, GREETED_WITHIN_S)
    except TimeoutError as error:
        raise Unfit("agent_error", f"the agent did not answer within {GREETED_WITHIN_S:g} s of its start") from error
    version = greeting.get("protocolVersion") if isinstance(greeting, Mapping) else None
    if version != PROTOCOL:
        raise Unfit("agent_error", f"the agent speaks version {version!r} of the protocol, and we speak {PROTOCOL}")
    found: Mapping[str, Any] = greeting
    return found


def loading_of(greeting: Mapping[str, Any]) -> str:
    """Say by which call this agent goes on with a session; NotResumed where it cannot."""
    able = greeting.get("agentCapabilities")
    able = able if isinstance(able, Mapping) else {}
    if able.get("loadSession") is True:
        return "session/load"
    more = able.get("sessionCapabilities")
    if isinstance(more, Mapping) and isinstance(more.get("resume"), Mapping):
        return "session/resume"
    raise NotResumed("this agent cannot go on with a session")


async def choose(connection: "Connection", session: str, opened: Mapping[str, Any], model: str) -> None:
    """Set the session's model, by whichever way this agent offers; Unfit where it does not know it."""
    from acp.exceptions import RequestError

    option, known = model_option(opened)
    if known and model not in known:
        raise Unfit("preflight", f"the agent knows no model {model!r}; it knows {', '.join(sorted(known))}")
    try:
        if option is not None:
            params = {"sessionId": session, "configId": option, "value": model}
            answer: Any = await connection.send_request("session/set_config_option", params)
        else:
            answer = await connection.send_request("session/set_model", {"sessionId": session, "modelId": model})
    except RequestError as error:
        raise Unfit("preflight", f"the agent does not take the model {model!r}: {error_told(error)}") from error
    if not isinstance(answer, Mapping):
        raise Nonsense("the agent answered the choice of its model with no object")


def model_option(opened: Mapping[str, Any]) -> tuple[str | None, frozenset[str]]:
    """Find by which option of a session its model is chosen, and which there are; nothing where it does not say."""
    options = opened.get("configOptions")
    for one in options if isinstance(options, list) else ():
        if isinstance(one, Mapping) and one.get("category") == "model" and isinstance(one.get("id"), str):
            return str(one["id"]), frozenset(_values(one.get("options")))
    models = opened.get("models")
    known = models.get("availableModels") if isinstance(models, Mapping) else None
    ids = [one.get("modelId") for one in known if isinstance(one, Mapping)] if isinstance(known, list) else []
    return None, frozenset(one for one in ids if isinstance(one, str))


def _values(options: object) -> list[str]:
    """The values of a choice, those in groups too."""
    found: list[str] = []
    for one in options if isinstance(options, list) else ():
        if isinstance(one, Mapping):
            found += [one["value"]] if isinstance(one.get("value"), str) else _values(one.get("options"))
    return found


def named(greeting: Mapping[str, Any]) -> str:
    """Give the agent's own name for itself, with its version."""
    info = greeting.get("agentInfo")
    if not isinstance(info, Mapping):
        return "an agent without a name"
    return " ".join(str(info[name]) for name in ("name", "version") if info.get(name)) or "an agent without a name"


def error_told(error: Any) -> str:
    """Tell an error of the protocol with what it says beside its message."""
    words, data = str(error), error.data
    if isinstance(data, Mapping):
        more = next((data[name] for name in ("message", "details", "detail", "error") if data.get(name)), None)
        words += f": {more}" if more is not None and str(more) not in words else ""
    elif isinstance(data, str) and data not in words:
        words += f": {data}"
    return " ".join(words.split())[:LAST_LINE_MOST]
