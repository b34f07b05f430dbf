"""Signatures over what is sent from one program to another: made, and judged in a time that tells nothing of them.

`standard` is the scheme of Standard Webhooks, which signs an id and a moment together with the body; `github` signs the
body alone.
"""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Iterable, Mapping
from datetime import datetime

PREFIX = "whsec_"
"""What is behind it in a secret is Base64."""
ID, TIMESTAMP, SIGNATURE = "webhook-id", "webhook-timestamp", "webhook-signature"
GITHUB = "sha256="
SIGNATURES_MOST = 20


def signed(secret: str, *, id_: str, at: datetime, body: bytes) -> Mapping[str, str]:
    """Give the headers by which a receiver with the same secret knows who sent this body, and when."""
    stamp = str(int(at.timestamp()))
    return {ID: id_, TIMESTAMP: stamp, SIGNATURE: f"v1,{_standard(secret, id_, stamp, body)}"}


def is_standard(secret: str, *, id_: str, stamp: str, body: bytes, given: str) -> bool:
    """Whether one of the signatures in a header is that of this id, moment and body."""
    wanted = _standard(secret, id_, stamp, body)
    found = (one.removeprefix("v1,") for one in given.split()[:SIGNATURES_MOST] if one.startswith("v1,"))
    return _any(wanted, found)


def is_github(secret: str, *, body: bytes, given: str) -> bool:
    """Whether a header is the signature of this body as GitHub makes it."""
    wanted = hmac.new(_bytes(secret), body, hashlib.sha256).hexdigest()
    return given.startswith(GITHUB) and _any(wanted, [given.removeprefix(GITHUB)])


def is_same(secret: str, given: str) -> bool:
    """Whether two secrets are the same."""
    return hmac.compare_digest(_bytes(secret), given.encode("utf-8", "surrogateescape"))


def is_empty(secret: str) -> bool:
    """Whether a secret is none: whoever knows nothing could sign with it."""
    return not _key(secret)


def is_readable(secret: str) -> bool:
    """Whether a secret is what its beginning says: what follows `whsec_` is Base64."""
    return not secret.startswith(PREFIX) or _decoded(secret) is not None


def _any(wanted: str, found: Iterable[str]) -> bool:
    matched = False
    for one in found:
        # Each is compared, whether or not one before it was right.
        matched |= hmac.compare_digest(wanted.encode(), one.encode("utf-8", "surrogateescape"))
    return matched


def _standard(secret: str, id_: str, stamp: str, body: bytes) -> str:
    told = b".".join((id_.encode("utf-8", "surrogateescape"), stamp.encode("utf-8", "surrogateescape"), body))
    return base64.b64encode(hmac.new(_key(secret), told, hashlib.sha256).digest()).decode()


def _key(secret: str) -> bytes:
    decoded = _decoded(secret) if secret.startswith(PREFIX) else None
    return _bytes(secret) if decoded is None else decoded


def _decoded(secret: str) -> bytes | None:
    try:
        return base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except binascii.Error:
        return None


def _bytes(secret: str) -> bytes:
    """A secret's own bytes: one of the environment may be no text at all."""
    return secret.encode("utf-8", "surrogateescape")
