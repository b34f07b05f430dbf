"""What stands before every route: hosts, origins, sizes and times of requests, and the headers of every answer."""

import asyncio
import re
from collections.abc import MutableMapping
from typing import Any
from urllib.parse import quote, unquote_to_bytes

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from duly import clock
from duly.errors import DulyError
from duly.web import problems
from duly.web.bodies import BODY_MOST
from duly.web.fields import SLASH
from duly.web.frame import House
from duly.web.problems import Unreadable

BODY_WITHIN_S = 30.0
"""For so long the next piece of a body is waited for."""
BODY_WHOLE_WITHIN_S = 300.0
"""For so long all of it."""
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
# What an answer may set by itself: the pages need another policy, and streams another caching.
UNLESS_SET = {"Cache-Control": "no-store", "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'"}
ENCODED_SLASH = re.compile(rb"%2F", re.IGNORECASE)
TOLD = "duly.told"
"""In a request's scope: its fault of ours has been answered."""
FOR_A_YEAR = "max-age=31536000"


class Guards:
    """The outermost layer: refuses before anything is read, and lets no fault of ours out untold."""

    def __init__(self, app: ASGIApp, house: House) -> None:
        self._app = app
        self._house = house

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # nothing here speaks by websockets
        answering = _Answering(send, self._house.reach.keeps_to_tls(Headers(scope=scope).get("host", "")))
        try:
            _check_address(scope)
            self._check(Headers(scope=scope))
            _keep_names_whole(scope)
            await self._app(scope, _Limited(receive), answering)
        except DulyError as fault:
            await answering.instead(problems.problem(fault), scope, receive)
        except (ClientDisconnect, asyncio.CancelledError):
            raise
        except Exception as fault:  # noqa: BLE001 - told, and answered as what it is
            if scope.get(TOLD):
                return  # the framework raises again what it has answered
            await answering.instead(problems.of_ours(report(fault, scope, self._house)), scope, receive)

    def _check(self, headers: Headers) -> None:
        reach = self._house.reach
        host = reach.check_host(headers.getlist("host"))
        reach.check_origin(headers.getlist("origin"), host)
        length = headers.get("content-length")
        if length is not None:
            if not (length.isascii() and length.isdigit()):
                raise Unreadable(400, "the header Content-Length is no number", field="Content-Length")
            if len(length) > 15 or int(length) > BODY_MOST:
                raise _too_large()


def fault_of_ours(request: Request, fault: Exception) -> Response:
    """Answer a fault of ours inside the framework, before it answers by itself."""
    told = report(fault, request.scope, request.app.state.house)
    request.scope[TOLD] = True
    return problems.of_ours(told)


def report(fault: Exception, scope: Scope, house: House) -> str | None:
    """Keep what happened in a report, without what was sent; gives its name."""
    from duly.operations import reports

    name = type(fault).__name__
    try:
        path = reports.write(fault, f"{scope['method']} {_route(scope)}", house.environ)
    except OSError as bad:
        house.tell("fault", {"kind": name, "unreported": bad.strerror})
        return None
    house.tell("fault", {"kind": name, "report": str(path)})
    return path.name


class _Limited:
    """A body that ends in a refusal where it grows too large or stops coming."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._bytes = 0
        self._whole = False
        self._until_s: float | None = None

    async def __call__(self) -> Message:
        if self._whole:
            return await self._receive()  # what comes now is only that they have left
        now_s = clock.monotonic_s()
        if self._until_s is None:
            self._until_s = now_s + BODY_WHOLE_WITHIN_S
        try:
            message = await asyncio.wait_for(self._receive(), min(BODY_WITHIN_S, self._until_s - now_s))
        except TimeoutError as error:
            late = f"within {BODY_WITHIN_S:.0f} s, or not all of it within {BODY_WHOLE_WITHIN_S:.0f} s"
            raise Unreadable(408, f"no more of the body came {late}") from error
        if message["type"] == "http.request":
            self._bytes += len(message.get("body", b""))
            self._whole = not message.get("more_body", False)
            if self._bytes > BODY_MOST:
                raise _too_large()
        return message


class _Answering:
    """What goes out, with the headers that every answer has."""

    def __init__(self, send: Send, to_tls: bool) -> None:
        self._send = send
        self._to_tls = to_tls
        self._begun = False

    async def __call__(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self._begun = True
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers[name] = value
            for name, value in UNLESS_SET.items():
                headers.setdefault(name, value)
            if self._to_tls:
                headers.setdefault("Strict-Transport-Security", FOR_A_YEAR)
        await self._send(message)

    async def instead(self, response: ASGIApp, scope: Scope, receive: Receive) -> None:
        """Answer with an error, unless the answer had begun: then it is cut off, which the other side sees."""
        if self._begun:
            raise ConnectionAbortedError("the answer was cut off")
        await response(scope, receive, self)


def _check_address(scope: Scope) -> None:
    """Refuse NUL in an address: no name, id or word of ours has it, and not every database can be asked for it."""
    if "\0" in scope["path"] or b"%00" in scope["query_string"]:
        raise Unreadable(400, "an address cannot hold a NUL character")


def _keep_names_whole(scope: Scope) -> None:
    """Keep a slash that is written as `%2F` from parting the word it stands in: a task is `project/name`."""
    raw = scope.get("raw_path") or b""
    if b"%2F" in raw.upper():
        kept = unquote_to_bytes(ENCODED_SLASH.sub(quote(SLASH).encode(), raw))
        scope["path"] = kept.decode("utf-8", "replace")


def _route(scope: Scope) -> str:
    """The pattern of the route that answered, without the words that stood in it."""
    return str(getattr(scope.get("route"), "path", "an unknown address"))


def _too_large() -> Unreadable:
    return Unreadable(413, f"the body is larger than {BODY_MOST:,} bytes")
