"""Messages over the streams of an agent's process: a line each, and nothing that an agent says can break us."""

import asyncio
import json
import os
from collections.abc import Callable
from typing import Any

LINE_MOST = 16 * 1024 * 1024
"""Bytes of one message; an agent that sends a longer one has failed."""
JUNK_SHOWN = 500


class Wire:
    """A transport for `acp.connection.Connection`; made inside the loop, from our ends of the agent's streams."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, on_junk: Callable[[str], None]):
        self._reader = reader
        self._writer = writer
        self._on_junk = on_junk
        self.fault: str | None = None
        """Why no more can be read, where that is not simply the end."""

    async def send(self, message: dict[str, Any]) -> None:
        """Send one message; ConnectionError for a call where the agent does not listen any more."""
        try:
            self._writer.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")
            await self._writer.drain()
        except (OSError, RuntimeError) as error:
            if "method" in message:  # to an answer that nobody hears there is nothing to say
                raise ConnectionError(f"the agent does not listen: {error}") from error

    async def receive(self) -> dict[str, Any] | None:
        """Give the next message; None at the end. Lines that are no message are told to `on_junk` and passed over."""
        while True:
            try:
                line = await self._reader.readuntil(b"\n")
            except asyncio.IncompleteReadError as rest:
                if rest.partial.strip():
                    self._on_junk(_shown(rest.partial))
                return None
            except asyncio.LimitOverrunError:
                self.fault = f"the agent sent one line of more than {LINE_MOST:,} bytes"
                return None
            except OSError:
                return None
            if not line.strip():
                continue
            message = _message(line)
            if message is not None:
                return message
            self._on_junk(_shown(line))

    async def close(self) -> None:
        """Close our end of what the agent reads."""
        self._writer.close()


async def reader(descriptor: int, limit: int = LINE_MOST) -> tuple[asyncio.StreamReader, asyncio.BaseTransport]:
    """Read from this descriptor, which belongs to the transport from now on."""
    stream = asyncio.StreamReader(limit=limit)
    pipe = os.fdopen(descriptor, "rb", buffering=0)
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(stream), pipe)
    return stream, transport


async def writer(descriptor: int) -> asyncio.StreamWriter:
    """Write to this descriptor, which is the writer's from now on."""
    loop = asyncio.get_running_loop()
    pipe = os.fdopen(descriptor, "wb", buffering=0)
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, pipe)
    return asyncio.StreamWriter(transport, protocol, None, loop)


def _message(line: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or not isinstance(found.get("id", 0), int | str):
        return None
    if "method" in found:
        return found if isinstance(found["method"], str) else None
    answers = "id" in found and ("result" in found or isinstance(found.get("error"), dict))
    return found if answers else None


def _shown(line: bytes) -> str:
    text = line.decode("utf-8", "replace").strip()
    return text if len(text) <= JUNK_SHOWN else text[: JUNK_SHOWN - 1] + "…"
