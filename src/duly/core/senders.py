"""Senders of events that have no token of ours: what a source wants to see from them, and whether that was seen.

Nothing but a proof counts: what is missing, given twice, too old or cannot be compared is refused, with the reason.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from duly.core import signing
from duly.core.spans import write_span

By = Literal["hmac", "token"]
Preset = Literal["generic", "github"]
PRESETS: tuple[Preset, ...] = ("generic", "github")
DEFAULT_WITHIN = timedelta(minutes=5)
DEFAULT_QUEUE = 1_000
TOKEN_HEADER = "Duly-Token"
STAMP_DIGITS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Sender:
    """What a source wants of who sends to it; the secret is only named."""

    name: str
    by: By | None
    """None: who sends needs a token of ours."""
    secret: str | None
    preset: Preset
    header: str
    """Where the token stands, in small letters."""
    within: timedelta
    """How far the moment of a signature may be from now."""
    queue: int
    """How many runs of the tasks that listen may wait before no more is taken."""
    set_at: datetime
    set_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Proven:
    """Who sent it has the secret: the key of what was sent, and its data as JSON."""

    key: str | None
    data: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unproven:
    """Nothing shows that who sent it has the secret."""

    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfit:
    """Who sent it has the secret, and what was sent is no event of this preset."""

    why: str


def judge(
    sender: Sender, secret: str, headers: Mapping[str, tuple[str, ...]], body: bytes, now: datetime
) -> Proven | Unproven | Unfit:
    """Judge a request by its headers, whose names are in small letters, and by its body byte for byte."""
    if signing.is_empty(secret):
        return Unproven(why="there is no secret to compare with")
    fault = _unproven(sender, secret, headers, body, now)
    if fault is not None:
        return Unproven(why=fault)
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return Unfit(why="the body is not UTF-8")
    if sender.preset == "github":
        return _of_github(headers, text)
    if sender.by == "token" and len(headers.get("idempotency-key", ())) > 1:
        return Unfit(why="the header Idempotency-Key is wanted once at most")
    key = _one(headers, signing.ID) if sender.by == "hmac" else _one(headers, "idempotency-key")
    return Proven(key=key, data=text or "null")


def _unproven(
    sender: Sender, secret: str, headers: Mapping[str, tuple[str, ...]], body: bytes, now: datetime
) -> str | None:
    if sender.by == "token":
        given = _one(headers, sender.header)
        if given is None:
            return f"the header {sender.header} is wanted, once"
        return None if signing.is_same(secret, given) else "the token is wrong"
    if sender.by != "hmac":
        return "a token is wanted: Authorization: Bearer TOKEN"
    if sender.preset == "github":
        given = _one(headers, "x-hub-signature-256")
        if given is None:
            return "the header X-Hub-Signature-256 is wanted, once"
        return None if signing.is_github(secret, body=body, given=given) else "the signature is wrong"
    id_, stamp, given = (_one(headers, name) for name in (signing.ID, signing.TIMESTAMP, signing.SIGNATURE))
    if not id_ or stamp is None or given is None:
        return f"the headers {signing.ID}, {signing.TIMESTAMP} and {signing.SIGNATURE} are wanted, once each"
    if not signing.is_standard(secret, id_=id_, stamp=stamp, body=body, given=given):
        return "the signature is wrong"
    if not (stamp.isascii() and stamp.isdigit()) or len(stamp) > STAMP_DIGITS:
        return f"{signing.TIMESTAMP} is no number of seconds"
    if abs(int(stamp) - now.timestamp()) > sender.within.total_seconds():
        return f"it was signed more than {write_span(sender.within)} from now"
    return None


def _of_github(headers: Mapping[str, tuple[str, ...]], text: str) -> Proven | Unfit:
    """GitHub says in headers what happened: that is put into the data, under `github`."""
    delivery, event = _one(headers, "x-github-delivery"), _one(headers, "x-github-event")
    if not delivery or not event:
        return Unfit(why="the headers X-GitHub-Delivery and X-GitHub-Event are wanted, once each")
    try:
        sent = json.loads(text)
    except (ValueError, RecursionError):
        return Unfit(why="the body is not JSON: at GitHub the content type of the webhook is application/json")
    if not isinstance(sent, dict):
        return Unfit(why="the body is no object")
    told = {**sent, "github": {"event": event, "delivery": delivery}}
    return Proven(key=delivery, data=json.dumps(told, ensure_ascii=False))


def _one(headers: Mapping[str, tuple[str, ...]], name: str) -> str | None:
    """Give a header that is there once: of several nobody knows which one the other side meant."""
    given = headers.get(name, ())
    return given[0] if len(given) == 1 else None
