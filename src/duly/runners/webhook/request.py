"""What one attempt of a webhook sends: its address, headers and body, with the secrets that they name filled in."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version
from urllib.parse import quote

from duly import zones
from duly.core import signing
from duly.core.agent_config import SECRET
from duly.core.http_reading import WITHOUT_BODY, fault_of_address, fault_of_header
from duly.core.spans import write_instant
from duly.ports import Assignment
from duly.prompts import bodies
from duly.prompts.making import Facts
from duly.secrets import Missing, Secrets

JSON = "application/json"
TEXT = "text/plain; charset=utf-8"
HEADER_CHARACTERS = " !\"#$&'()*+,/:;<=>?@[\\]^`{|}"
"""What stands in a header as it is beside letters and digits: all that is printable ASCII, but the percent sign."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request as it is sent; `shown`: its address as people are told, with secrets by their names."""

    method: str
    url: str
    shown: str
    headers: Mapping[str, str]
    body: bytes


class Unsendable(Exception):
    """Nothing can be sent, in words without any secret."""


def made(assignment: Assignment, secrets: Secrets, now: datetime) -> Request:
    """Make what this attempt sends; Unsendable where a secret is missing, or makes an address or a header of none."""
    action = assignment.action
    method = str(action.get("method") or "POST")
    shown = str(action["url"])
    url = _filled(shown, secrets, "its address")
    if (fault := fault_of_address(url)) is not None:
        raise Unsendable(f"{shown} is no address to send to: {fault}")
    given = action.get("headers") or {}
    assert isinstance(given, Mapping)
    headers = {name: _header(name, str(text), secrets) for name, text in given.items()}
    kind = next((text for name, text in headers.items() if name.lower() == "content-type"), None)
    body, found_kind = _body(assignment, method, kind)
    if kind is None and body:
        headers["Content-Type"] = found_kind
    if not any(name.lower() == "user-agent" for name in headers):
        headers["User-Agent"] = f"duly/{version('duly')}"
    headers |= told(assignment)
    sign = action.get("sign")
    if sign is not None:
        headers |= signing.signed(_secret(str(sign), secrets), id_=assignment.run, at=now, body=body)
    return Request(method=method, url=url, shown=shown, headers=headers, body=body)


def told(assignment: Assignment) -> dict[str, str]:
    """Give what a receiver is told about the run, as a command is by its environment; names percent-encoded."""
    told = {
        "Idempotency-Key": assignment.run,
        "Duly-Task": assignment.task_name,
        "Duly-Project": assignment.project,
        "Duly-Run": assignment.run,
        "Duly-Attempt": str(assignment.attempt),
        "Duly-Fence": str(assignment.fence),
        "Duly-Occurrence": assignment.occurrence,
        "Duly-Opened-By": assignment.opened_by,
    }
    if assignment.due_at is not None:
        told["Duly-Due-At"] = write_instant(assignment.due_at)
    if assignment.event is not None:
        told["Duly-Event-Source"] = assignment.event.source
        told["Duly-Event-Key"] = assignment.event.key or ""
    return {name: quote(text, safe=HEADER_CHARACTERS) for name, text in told.items()}


def _body(assignment: Assignment, method: str, kind: str | None) -> tuple[bytes, str]:
    """Give what is sent, and what it is where the author did not say so."""
    text = assignment.action.get("body")
    if text is None:
        return (b"", TEXT) if method in WITHOUT_BODY or method == "DELETE" else (_of_run(assignment), JSON)
    text = str(text)
    as_json = "json" in kind.lower() if kind is not None else text.lstrip()[:1] in ("{", "[")
    event = assignment.event
    facts = Facts(
        run=assignment.run,
        attempt=assignment.attempt,
        due_at=assignment.due_at,
        zone=zones.zone(assignment.zone),
        input=assignment.input,
        event=None if event is None else event.body,
    )
    return bodies.fill(text, facts, as_json=as_json).encode("utf-8", "replace"), JSON if as_json else TEXT


def _of_run(assignment: Assignment) -> bytes:
    event = assignment.event
    told = {
        "task": assignment.task_name,
        "project": assignment.project,
        "run": assignment.run,
        "attempt": assignment.attempt,
        "fence": assignment.fence,
        "occurrence": assignment.occurrence,
        "due_at": None if assignment.due_at is None else write_instant(assignment.due_at),
        "opened_by": assignment.opened_by,
        "input": assignment.input,
        "event": None if event is None else {"source": event.source, "key": event.key, "data": json.loads(event.body)},
    }
    return json.dumps(told, ensure_ascii=False).encode("utf-8", "replace")


def _header(name: str, text: str, secrets: Secrets) -> str:
    filled = _filled(text, secrets, f"the header {name}")
    if fault_of_header(filled):
        raise Unsendable(f"the header {name} cannot be sent: a secret in it has other than printable ASCII characters")
    return filled


def _filled(text: str, secrets: Secrets, where: str) -> str:
    try:
        return SECRET.sub(lambda found: secrets.value(found[1]), text)
    except Missing as missing:
        raise Unsendable(f"{where}: {missing}") from missing


def _secret(name: str, secrets: Secrets) -> str:
    try:
        value = secrets.value(name)
    except Missing as missing:
        raise Unsendable(f"its signature: {missing}") from missing
    if not value:
        raise Unsendable(f"its signature: the secret {name} is empty")
    return value
