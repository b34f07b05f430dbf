"""A pooler on this machine that gives a client a connection for one transaction: nothing of a session outlives it.

It speaks as much of PostgreSQL's protocol as that takes, and goes round its connections, so that no client keeps one by
luck. What the server tells between transactions, such as notifications, reaches nobody.
"""

import contextlib
import queue
import socket
import struct
import threading
from dataclasses import dataclass, field

NO_THANKS = {80877103, 80877104}  # asks for TLS and for GSS encryption
CANCEL = 80877102
OTHER_PID = 7
"""What clients are told of their connection; no process of the server's has it."""


class Pooler:
    """Serves any number of clients over a few connections of the server's."""

    def __init__(self, target: str, connections: int) -> None:
        self._target = target
        self._idle: queue.SimpleQueue[_Connection] = queue.SimpleQueue()
        self._sockets: list[socket.socket] = []
        self._lock = threading.Lock()
        self._closed = False
        self.clients = 0
        self.handed_out = 0
        """How often a connection was given to a client, for a transaction."""
        for _ in range(connections):
            self._idle.put(self._open())
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """End every connection on both sides."""
        with self._lock:
            self._closed = True
            ours = list(self._sockets)
        self._listener.close()
        for one in ours:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _keep(self, one: socket.socket) -> None:
        """Take a socket among those that are closed in the end; one that comes after the end is closed at once."""
        with self._lock:
            if not self._closed:
                self._sockets.append(one)
                return
        one.close()
        raise ConnectionAbortedError("the pooler is closed")

    def _open(self) -> "_Connection":
        raw = socket.socket(socket.AF_UNIX)
        self._keep(raw)
        raw.connect(self._target)
        given = b"user\0postgres\0database\0postgres\0client_encoding\0utf8\0\0"
        raw.sendall(struct.pack("!II", len(given) + 8, 196608) + given)
        made = _Connection(raw=raw)
        while (message := _read(raw)) is not None and message[0:1] != b"Z":
            if message[0:1] == b"S":
                made.greeting.append(message)
        return made

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
                self._keep(client)
            except OSError:
                return
            self.clients += 1
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError), client:
            if not self._greet(client):
                return
            while (message := _read(client)) is not None and message[0:1] != b"X":
                connection = self._idle.get()
                self.handed_out += 1
                if self._transaction(client, connection, message):
                    self._idle.put(connection)
                else:
                    # Its transaction was left open: the server undoes it, and the place is taken by a new one.
                    connection.raw.close()
                    self._idle.put(self._open())
                    return

    def _greet(self, client: socket.socket) -> bool:
        while True:
            head = _exactly(client, 8)
            if head is None:
                return False
            length, code = struct.unpack("!II", head)
            if code in NO_THANKS:
                client.sendall(b"N")
                continue
            if code == CANCEL or _exactly(client, length - 8) is None:
                return False
            break
        sample = self._idle.get()
        self._idle.put(sample)
        key = b"K" + struct.pack("!III", 12, OTHER_PID, 1)
        client.sendall(b"R" + struct.pack("!II", 8, 0) + b"".join(sample.greeting) + key + b"Z\0\0\0\x05I")
        return True

    def _transaction(self, client: socket.socket, connection: "_Connection", message: bytes | None) -> bool:
        """Pass all of one transaction; False when the client has gone in the midst of it."""
        while message is not None and message[0:1] != b"X":
            connection.raw.sendall(message)
            if message[0:1] in (b"Q", b"S"):
                state = self._answer(client, connection)
                if state == b"I":
                    return True
            message = _read(client)
        return False

    def _answer(self, client: socket.socket, connection: "_Connection") -> bytes:
        while (answer := _read(connection.raw)) is not None:
            if answer[0:1] != b"A":
                client.sendall(answer)
            if answer[0:1] == b"Z":
                return answer[5:6]
        raise OSError("the server has ended the connection")


@dataclass(slots=True, kw_only=True)
class _Connection:
    raw: socket.socket
    greeting: list[bytes] = field(default_factory=list)
    """What the server says of its settings."""


def _read(of: socket.socket) -> bytes | None:
    """One message: its kind, its length, its text; None at the end."""
    head = _exactly(of, 5)
    if head is None:
        return None
    body = _exactly(of, struct.unpack("!I", head[1:5])[0] - 4)
    return None if body is None else head + body


def _exactly(of: socket.socket, count: int) -> bytes | None:
    found = b""
    while len(found) < count:
        more = of.recv(count - len(found))
        if not more:
            return None
        found += more
    return found
