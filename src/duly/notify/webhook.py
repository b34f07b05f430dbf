"""The plain webhook: a message by POST, signed where the channel has a secret, in the form of Standard Webhooks."""

import ipaddress
from collections.abc import Mapping
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from duly import __version__
from duly.core import signing
from duly.notify.messages import Message
from duly.notify.outcome import NotSent

CONNECT_WITHIN_S = 5.0
ANSWER_WITHIN_S = 15.0
RETRY_AFTER_MOST = 86_400


def send(url: str, message: Message, *, secret: str | None, now: datetime) -> None:
    """Send a message; NotSent where anything but a 2xx is answered, or nothing. Redirections are not followed."""
    import httpx2

    headers = {"Content-Type": "application/json; charset=utf-8", "User-Agent": f"duly/{__version__}"}
    headers |= {"Idempotency-Key": message.id, **signed(message, secret, now)}
    timeout = httpx2.Timeout(ANSWER_WITHIN_S, connect=CONNECT_WITHIN_S)
    try:
        with (
            httpx2.Client(timeout=timeout, follow_redirects=False, trust_env=not _is_here(url)) as client,
            # Of the answer only its head is read: whatever a receiver says in its body is nothing to us.
            client.stream("POST", url, content=message.body, headers=headers) as answer,
        ):
            status, wait = answer.status_code, answer.headers.get("retry-after", "")
    except (httpx2.InvalidURL, UnicodeError, ValueError):
        # What it says shows a part of the address, and that may be of a secret.
        raise NotSent("it is no address to send to") from None
    except httpx2.HTTPError as error:
        raise NotSent(f"it could not be reached: {_told(error)}") from None
    if not 200 <= status < 300:
        raise NotSent(f"it answered {status}", wait=_wait(wait))


def signed(message: Message, secret: str | None, now: datetime) -> Mapping[str, str]:
    """Give the headers by which a receiver knows a message again, and, by the secret, whose it is."""
    if secret is None:
        return {signing.ID: message.id, signing.TIMESTAMP: str(int(now.timestamp()))}
    if not signing.is_readable(secret):
        raise NotSent(f"its secret begins with {signing.PREFIX}, and what follows is not base64")
    return signing.signed(secret, id_=message.id, at=now, body=message.body)


def _is_here(url: str) -> bool:
    """Tell whether an address is of this machine, which no proxy is asked for."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _wait(asked: str) -> timedelta | None:
    return timedelta(seconds=min(int(asked), RETRY_AFTER_MOST)) if asked.isascii() and asked.isdigit() else None


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
