"""The parts of which a prompt is sent: standing knowledge first, then what is asked.

An agent that takes resources gets the knowledge as one, so that a prompt which calls a command of the agent still
begins with its slash; another gets it as a text.
"""

from collections.abc import Mapping
from typing import Any

from duly.prompts.commands import call_of
from duly.runners.prompting import Talk
from duly.runners.telling import Log

URI = "duly:knowledge"
BEFORE = "What follows is standing knowledge of this project; the prompt comes after it.\n\n{knowledge}\n\n"


def of(talk: Talk, greeting: Mapping[str, Any], log: Log) -> list[dict[str, object]]:
    """Give the parts, for an agent that greeted so; what cannot go along is told to the log, and left out."""
    asked: dict[str, object] = {"type": "text", "text": talk.prompt}
    if talk.knowledge is None:
        return [asked]
    if _takes_resources(greeting):
        text = {"uri": URI, "mimeType": "text/markdown", "text": talk.knowledge}
        return [{"type": "resource", "resource": text}, asked]
    if call_of(talk.prompt) is not None:
        log.line("[knowledge] it is left out: the prompt begins with a command, and the agent takes no resources")
        return [asked]
    return [{"type": "text", "text": BEFORE.format(knowledge=talk.knowledge)}, asked]


def _takes_resources(greeting: Mapping[str, Any]) -> bool:
    able = greeting.get("agentCapabilities")
    prompts = able.get("promptCapabilities") if isinstance(able, Mapping) else None
    return isinstance(prompts, Mapping) and prompts.get("embeddedContext") is True
