"""A road to a server on this machine that can be cut: what stands between a host and its database."""

import contextlib
import socket
import threading
from typing import Literal


class Proxy:
    """Passes bytes both ways between a port of its own and a server's socket, until it is cut."""

    def __init__(self, target: str) -> None:
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._lock = threading.Lock()
        self._ends: list[socket.socket] = []
        self._whole = True
        self.ears: Literal["open", "deaf", "refused"] = "open"
        """What becomes of a connection that asks to listen: it hears, it hears nothing more, it is ended."""
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """End every connection, and refuse each new one."""
        with self._lock:
            self._whole = False
            ends, self._ends = self._ends, []
        for end in ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def mend(self) -> None:
        """Let new connections through again."""
        with self._lock:
            self._whole = True

    def close(self) -> None:
        self.cut()
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                here, _ = self._listener.accept()
            except OSError:
                return
            there = socket.socket(socket.AF_UNIX)
            with self._lock:
                try:
                    if not self._whole:
                        raise ConnectionRefusedError
                    there.connect(self._target)
                except OSError:
                    here.close()
                    there.close()
                    continue
                self._ends += [here, there]
            deaf = threading.Event()
            for one, other in ((here, there), (there, here)):
                threading.Thread(target=self._pass, args=(one, other, deaf), daemon=True).start()

    def _pass(self, one: socket.socket, other: socket.socket, deaf: threading.Event) -> None:
        with contextlib.suppress(OSError):
            while data := one.recv(65536):
                if b"LISTEN" in data and self.ears == "refused":
                    break
                if one.family == socket.AF_UNIX and deaf.is_set():
                    continue  # swallowed, and nobody is told
                other.sendall(data)
                if b"LISTEN" in data and one.family == socket.AF_UNIX and self.ears == "deaf":
                    deaf.set()  # its answer has passed; what is told later does not
        for end in (one, other):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        one.close()  # what the other passes on ends it in its turn
