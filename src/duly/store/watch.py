"""Being woken when the store's log is written, by whichever process: the kernel tells, and nobody has to ask.

Only a way to save looks: whether anything has changed is still asked of SQLite, and asked once a second in any case.
"""

import contextlib
import ctypes
import os

IN_MODIFY = 0x2
EVENTS_BYTES = 65_536


class Watch:
    """Watches one file; `descriptor` can be polled, and is None where the kernel or the file does not allow it."""

    def __init__(self, path: str) -> None:
        self.descriptor: int | None = None
        try:
            libc = ctypes.CDLL(None, use_errno=True)
            descriptor = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        except (OSError, AttributeError):
            return
        if descriptor < 0:
            return
        if libc.inotify_add_watch(descriptor, os.fsencode(path), IN_MODIFY) < 0:
            os.close(descriptor)
            return
        self.descriptor = descriptor

    def drain(self) -> None:
        """Forget what was told so far."""
        if self.descriptor is not None:
            with contextlib.suppress(BlockingIOError):
                os.read(self.descriptor, EVENTS_BYTES)

    def close(self) -> None:
        """Watch no longer."""
        if self.descriptor is not None:
            os.close(self.descriptor)
            self.descriptor = None
