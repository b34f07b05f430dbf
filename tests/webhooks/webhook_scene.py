"""What the tests of webhooks share: a server of this machine that keeps what it was sent, and attempts sent to it."""

import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from duly.ports import Assignment, Outcome
from duly.runners import logs
from duly.runners.streams import Streams
from duly.runners.webhook.reach import Reach
from duly.runners.webhook.runner import Webhook
from duly.secrets import Secrets

PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """One request as the server got it."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(slots=True)
class Receiver:
    """A server, what it was sent, and what it answers: status, headers and body by path."""

    port: int = 0
    sent: list[Sent] = field(default_factory=list)
    answers: dict[str, tuple[int, Mapping[str, str], bytes]] = field(default_factory=dict)
    waits: dict[str, threading.Event] = field(default_factory=dict)
    came: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    def url(self, path: str = "/hook") -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def answer(self, path: str, status: int, body: bytes = b"", **headers: str) -> str:
        self.answers[path] = (status, {name.replace("_", "-"): text for name, text in headers.items()}, body)
        return self.url(path)

    def hang(self, path: str) -> str:
        """Answer nothing under this path, until it is let go."""
        self.waits[path] = threading.Event()
        return self.url(path)


@contextmanager
def receiving() -> Iterator[Receiver]:
    """Give a server that keeps what it was sent; under a path of `waits` it answers when it is let go."""
    receiver = Receiver()

    class Asked(BaseHTTPRequestHandler):
        def answer(self) -> None:
            size = int(self.headers.get("Content-Length") or 0)
            headers = {name.lower(): ", ".join(self.headers.get_all(name, ())) for name in self.headers}
            body = self.rfile.read(size)
            receiver.sent.append(Sent(method=self.command, path=self.path, headers=headers, body=body))
            receiver.came.release()
            if self.path in receiver.waits:
                receiver.waits[self.path].wait(PATIENCE_S)
                return
            if self.path == "/broken":
                self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
                return
            status, more, text = receiver.answers.get(self.path, (200, {}, b"thanks\n"))
            self.send_response(status)
            for name, value in more.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(text)

        do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = answer  # noqa: N815 - so the library calls them

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            """A client that hangs up is what some tests are about."""

    server = Server(("127.0.0.1", 0), Asked)
    receiver.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        for wait in receiver.waits.values():
            wait.set()
        server.shutdown()
        server.server_close()
        thread.join(PATIENCE_S)


@dataclass(slots=True)
class Sender:
    """Performs attempts of webhooks, each in a folder of its own."""

    streams: Streams
    folder: Path
    secrets: dict[str, str] = field(default_factory=dict)
    inside: bool = False
    count: int = 0

    def runner(self) -> Webhook:
        return Webhook(Secrets(environ=self.secrets), self.streams, Reach(inside=self.inside))

    def assignment(self, url: str, *, action: Mapping[str, object] | None = None, **changes: Any) -> Assignment:
        self.count += 1
        told: dict[str, Any] = {
            "run": f"run_{self.count:026}",
            "attempt": 2,
            "fence": 7,
            "holder": "hld_one",
            "task": "tsk_one",
            "task_name": "tell them",
            "project": "house",
            "occurrence": "at:2026-12-01T08:00:00Z",
            "due_at": datetime(2026, 12, 1, 8, tzinfo=UTC),
            "opened_by": "schedule",
            "action": {"kind": "http", "url": url, **(action or {})},
            "input": None,
            "timeout": timedelta(seconds=PATIENCE_S),
        }
        told |= changes
        return Assignment(**({"folder": self.folder / "attempts" / f"{told['run']}.{told['fence']}"} | told))

    def send(self, url: str, *, action: Mapping[str, object] | None = None, **changes: Any) -> Outcome:
        return self.runner().perform(self.assignment(url, action=action, **changes), None)

    def log(self) -> str:
        """What the last attempt left in its log."""
        folder = self.folder / "attempts" / f"run_{self.count:026}.7"
        return logs.read(folder, most=2 * 1024 * 1024).data.decode("utf-8", "replace")


def nobody_listens() -> str:
    """Give an address at which nobody listens."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{one.getsockname()[1]}/"


def in_a_thread(work: Callable[[], Outcome]) -> Callable[[], Outcome]:
    """Do it in a thread; gives what waits for its outcome."""
    made: list[Outcome] = []
    thread = threading.Thread(target=lambda: made.append(work()), daemon=True)
    thread.start()

    def wait() -> Outcome:
        thread.join(PATIENCE_S)
        [outcome] = made
        return outcome

    return wait
