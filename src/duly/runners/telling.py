"""What an attempt's log says of an agent's turn: its text as it comes, and a line for all else that happens.

Secrets are masked in all of it, also where one comes in two pieces. Nothing here ever waits: what a log does not take
is kept for a while and then counted as lost.
"""

import asyncio
import os
from collections.abc import Callable

KEPT_MOST = 4 * 1024 * 1024
"""Bytes that wait for the log at most."""
LINE_SHOWN = 500


class Log:
    """Our end of an attempt's log; made inside the loop. `mask` replaces secrets, `longest` is the longest of them."""

    def __init__(self, descriptor: int, mask: Callable[[str], str], longest: Callable[[], int]) -> None:
        # Another open file of the same pipe: not to wait is ours alone, and not the agent's too.
        self._pipe = os.open(f"/proc/self/fd/{descriptor}", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        os.close(descriptor)
        self._mask = mask
        self._longest = longest
        self._loop = asyncio.get_running_loop()
        self._waiting = bytearray()
        self._watched = False
        self._lost = 0
        self._stream: str | None = None
        self._held = ""
        self._at_line_start = True

    def stream(self, kind: str, text: str) -> None:
        """Write on what comes in pieces: the agent's words (`text`), its thoughts, its standard error."""
        if kind != self._stream:
            self.flush()
            self._stream = kind
            if kind != "text" and text:
                self._put("" if self._at_line_start else "\n")
                self._put(f"[{kind}] ")
        text = self._mask(self._held + text)
        # A secret may have come in part: so much of the end waits for what follows.
        ready = max(0, len(text) - max(0, self._longest() - 1))
        self._held = text[ready:]
        self._put(text[:ready])

    def line(self, text: str) -> None:
        """Write a line by itself."""
        self.flush()
        text = " ".join(self._mask(text).split())
        shown = text if len(text) <= LINE_SHOWN else text[: LINE_SHOWN - 1] + "…"
        self._put(f"{'' if self._at_line_start else chr(10)}{shown}\n")

    def flush(self) -> None:
        """Write what was held back of a stream, and end it."""
        held, self._held, self._stream = self._held, "", None
        self._put(held)

    def close(self) -> None:
        """Write what is left as far as the log takes it now, and let go of it."""
        self.flush()
        if self._lost:
            self._waiting += f"\n[log] {self._lost:,} bytes more were not taken\n".encode()
        self._write()
        if self._watched:
            self._loop.remove_writer(self._pipe)
        os.close(self._pipe)

    def _put(self, text: str) -> None:
        if not text:
            return
        self._at_line_start = text.endswith("\n")
        data = text.encode("utf-8", "replace")
        if len(self._waiting) + len(data) > KEPT_MOST:
            self._lost += len(data)
            return
        self._waiting += data
        if not self._watched:
            self._write()

    def _write(self) -> None:
        try:
            while self._waiting:
                count = os.write(self._pipe, self._waiting)
                del self._waiting[:count]
        except BlockingIOError:
            if not self._watched:
                self._watched = True
                self._loop.add_writer(self._pipe, self._write)
            return
        except OSError:
            self._waiting.clear()  # who writes the log is gone
        if self._watched:
            self._watched = False
            self._loop.remove_writer(self._pipe)
