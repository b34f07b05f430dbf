"""One request and its answer: sent at most once, and told whether any of it can have reached the other side."""

import asyncio
import contextlib
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from duly import chance
from duly.runners.webhook.reach import Forbidden, Reach, Unreachable, addresses
from duly.runners.webhook.request import Request

if TYPE_CHECKING:
    import httpx2

KEPT_BYTES = 1024 * 1024
"""Of an answer so much is kept."""
HEARD_BYTES = 64 * 1024 * 1024
"""Of an answer so much is heard; a longer one is hung up on."""
CONNECTED_WITHIN_S = 20.0
QUICK_AFTER_S = (0.5, 2.0)
"""How long after a try of which nothing was sent the next one follows, within one attempt."""
QUICK_JITTER = 0.2
SENDING = "send_request_headers.started"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """The other side answered: `size` is how long its answer was, as far as it was heard."""

    status: int
    phrase: str
    headers: Sequence[tuple[str, str]]
    body: bytes
    size: int
    whole: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NotSent:
    """Nothing was sent: `for_good` says that another try would find the same."""

    why: str
    for_good: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Unanswered:
    """It was sent, as a whole or in part, and there is no answer to it."""

    why: str
    idle: bool = False


@dataclass(slots=True)
class Progress:
    """How far an exchange is; read from any thread."""

    sent: bool = False
    tries: list[str] = field(default_factory=list)


Heard = Answered | NotSent | Unanswered


async def exchange(request: Request, reach: Reach, progress: Progress, *, idle_s: float | None) -> Heard:
    """Send it and hear the answer; what provably sent nothing is tried again at once, twice."""
    for pause_s in (*QUICK_AFTER_S, None):
        heard = await _once(request, reach, progress, idle_s)
        if not isinstance(heard, NotSent) or heard.for_good or pause_s is None:
            return heard
        progress.tries.append(heard.why)
        await asyncio.sleep(pause_s * (1 + chance.between(0, QUICK_JITTER)))
    raise AssertionError("the last try has returned")


async def _once(request: Request, reach: Reach, progress: Progress, idle_s: float | None) -> Heard:
    parts = urlsplit(request.url)
    host = parts.hostname or ""
    port = parts.port or (443 if parts.scheme.lower() == "https" else 80)
    try:
        async with asyncio.timeout(CONNECTED_WITHIN_S):
            found = await addresses(host, port, reach)
    except Forbidden as forbidden:
        return NotSent(why=str(forbidden), for_good=True)
    except Unreachable as away:
        return NotSent(why=str(away))
    except TimeoutError:
        return NotSent(why=f"nobody says within {CONNECTED_WITHIN_S:g} s where {host} is")
    heard: Heard = NotSent(why=f"the name {host} leads nowhere")
    for address in found:
        heard = await _at(address, request, progress, idle_s)
        if not isinstance(heard, NotSent):
            return heard
    return heard


async def _at(address: str, request: Request, progress: Progress, idle_s: float | None) -> Heard:
    """Send it to an address that was looked at: the name is not asked for again, which might lead elsewhere by then."""
    import httpx2

    url = httpx2.URL(request.url)

    async def note(event: str, _facts: Mapping[str, Any]) -> None:
        progress.sent = progress.sent or event.endswith(SENDING)

    limits = httpx2.Timeout(CONNECTED_WITHIN_S, read=idle_s, write=idle_s)
    said = {name.lower() for name in request.headers}
    usual = {"Accept": "*/*", "Accept-Encoding": "identity", "Connection": "close"}
    headers = {**{name: text for name, text in usual.items() if name.lower() not in said}, **request.headers}
    given = request.body or None
    extensions = {"trace": note, "sni_hostname": url.host}
    try:
        async with (
            httpx2.AsyncClient(verify=_trusted(), trust_env=False, follow_redirects=False, timeout=limits) as client,
            client.stream(
                request.method,
                url.copy_with(host=address),
                headers={"Host": url.netloc.decode("ascii"), **headers},
                content=given,
                extensions=extensions,
            ) as answer,
        ):
            return await _heard(answer)
    except (httpx2.ReadTimeout, httpx2.WriteTimeout):
        return Unanswered(why=f"the server was silent for {idle_s:g} s", idle=True)
    except httpx2.HTTPError as error:
        told = str(error) or type(error).__name__
        if progress.sent:
            return Unanswered(why=f"the connection broke off before the answer was whole: {told}")
        return NotSent(why=f"the server cannot be reached: {told}")
    except (httpx2.InvalidURL, UnicodeError, ValueError):
        # What it says may show a part of a secret.
        return NotSent(why="it cannot be sent: its address or a header is no such thing", for_good=True)


async def _heard(answer: "httpx2.Response") -> Answered:
    kept = bytearray()
    size = 0
    whole = True
    async with contextlib.aclosing(answer.aiter_raw()) as pieces:
        async for piece in pieces:
            size += len(piece)
            kept += piece[: max(0, KEPT_BYTES - len(kept))]
            if size > HEARD_BYTES:
                whole = False
                break
    return Answered(
        status=answer.status_code,
        phrase=answer.reason_phrase,
        headers=answer.headers.multi_items(),
        body=bytes(kept),
        size=size,
        whole=whole,
    )


@lru_cache(maxsize=1)
def _trusted() -> ssl.SSLContext:
    """Give the certificates that this machine trusts; read once, as that takes long."""
    return ssl.create_default_context()
