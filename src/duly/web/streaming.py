"""Answers that go on: what lies ready in a feed is sent as it comes, until its reader leaves or takes nothing more."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractContextManager, suppress
from typing import TYPE_CHECKING

from starlette.responses import Response

from duly.web.feeds import Feed, LedgerFeed, Wake
from duly.web.tail import Tail

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

BEAT_EVERY_S = 15.0
"""So often a comment keeps a stream of events open through what stands between."""
SENT_WITHIN_S = 60.0
"""A reader that takes nothing for so long is cut off; it comes again where it stopped."""
EVENTS = "text/event-stream"
UNBUFFERED = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}

Follow = Callable[[Wake], AbstractContextManager[Feed]]


class Streamed(Response):
    """Sends what a feed has ready, and is called by it when there is more; a slow reader holds nobody up."""

    def __init__(
        self, tail: Tail, follow: Follow, *, media_type: str, headers: Mapping[str, str] | None = None
    ) -> None:
        self._tail = tail
        self._follow = follow
        self.status_code = 200
        self.media_type = media_type
        self.background = None
        self.body = b""
        self.init_headers({**UNBUFFERED, **(headers or {})})
        del self.headers["content-length"]

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:  # noqa: ARG002 - an app's shape
        """Send until the feed is over, or its reader is gone."""
        woken, loop = asyncio.Event(), asyncio.get_running_loop()

        def wake() -> None:
            with suppress(RuntimeError):  # the loop has ended, and its reader with it
                loop.call_soon_threadsafe(woken.set)

        with self._follow(wake) as feed:
            leaving = asyncio.ensure_future(_left(receive))
            leaving.add_done_callback(lambda _: woken.set())
            try:
                start = {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
                await asyncio.wait_for(send(start), SENT_WITHIN_S)
                async for piece in self._pieces(feed, woken, leaving):
                    body = {"type": "http.response.body", "body": piece, "more_body": True}
                    await asyncio.wait_for(send(body), SENT_WITHIN_S)
                if not leaving.done():
                    await asyncio.wait_for(send({"type": "http.response.body", "body": b""}), SENT_WITHIN_S)
            except OSError:  # it takes nothing (TimeoutError), or its line is cut
                return
            finally:
                leaving.cancel()

    async def _pieces(self, feed: Feed, woken: asyncio.Event, leaving: "asyncio.Future[None]") -> AsyncIterator[bytes]:
        while not leaving.done():
            woken.clear()
            over, full = feed.over, not feed.has_room
            piece = feed.take()
            if full and not over:
                self._tail.ring()
            if piece:
                yield piece
            elif over:
                return
            else:
                with suppress(TimeoutError):
                    await asyncio.wait_for(woken.wait(), BEAT_EVERY_S)
                    continue
                if isinstance(feed, LedgerFeed):
                    yield feed.beat()


async def _left(receive: "Receive") -> None:
    """Wait until the reader has left."""
    while (await receive())["type"] != "http.disconnect":
        pass
