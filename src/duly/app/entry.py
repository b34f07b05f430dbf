"""Where connections come in: no more at one time than leave the process the files that its runs need."""

import resource
import socket
from typing import Any

MOST = 1_000
SHARE = 2
"""One part in so many of the files that this process may have open is for connections at most."""


class Entry(socket.socket):
    """A socket that is listened on, and lets in no more than `most` at one time."""

    def __init__(self, family: int, kind: int, proto: int, *, most: int) -> None:
        super().__init__(family, kind, proto)
        self._most = most
        self._inside: list[socket.socket] = []

    def accept(self) -> tuple[socket.socket, Any]:
        """Let the next one in; ConnectionAbortedError, and its line is cut, while there are too many."""
        came, address = super().accept()
        self._inside = [one for one in self._inside if one.fileno() != -1]
        if len(self._inside) >= self._most:
            came.close()
            raise ConnectionAbortedError("there are too many connections")
        self._inside.append(came)
        return came, address


def most_inside() -> int:
    """How many connections there may be, by how many files this process may have open."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST if soft == resource.RLIM_INFINITY else min(MOST, soft // SHARE)
