"""Connections: for how long one may go without the headers of a request."""

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEADERS_WITHIN_S = 30.0
"""For so long the headers of a request are waited for."""


class Connection(H11Protocol):
    """One connection of uvicorn's, cut where the headers of a request do not come."""

    _patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Take what came; whoever sends half of the headers is waited for no longer than who sends none."""
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._wait_no_more()
        elif self._patience is None:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Let go of it."""
        self._wait_no_more()
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._patience = self.loop.call_later(HEADERS_WITHIN_S, self.transport.abort)

    def _wait_no_more(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None
