"""What the tests of notices share: a receiver of webhooks on this machine, and who delivers, step by step."""

import json
import threading
from collections.abc import Mapping
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from store_scene import Scene

from duly.clock import monotonic_s, pause
from duly.notify.delivering import Delivering
from duly.notify.gathering import Gathering
from duly.notify.sending import Sender, sender_of
from duly.operations import channels, runs
from duly.ports import Outcome

WITHIN_S = 60.0
FAILED = Outcome(word="failed", reason="exit_status", exit_code=3, error="no such bucket")
SUCCEEDED = Outcome(word="succeeded", exit_code=0)


class Post:
    """Takes messages on a port of this machine, and answers as it is told to."""

    def __init__(self) -> None:
        self.got: list[tuple[Mapping[str, str], bytes]] = []
        self.status = 204
        self.headers: dict[str, str] = {}
        self.may_answer = threading.Event()
        self.may_answer.set()
        post = self

        class Taking(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                post.got.append((dict(self.headers), body))
                post.may_answer.wait(WITHIN_S)
                self.send_response(post.status)
                for name, value in post.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *args: Any) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Taking)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/hook"

    @property
    def bodies(self) -> list[Any]:
        """The messages that came, as JSON."""
        return [json.loads(body) for _, body in self.got]

    @property
    def kinds(self) -> list[list[str]]:
        """The kinds of the notices of each message."""
        return [[one["kind"] for one in body["notices"]] for body in self.bodies]

    def close(self) -> None:
        self.may_answer.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(WITHIN_S)


class Told:
    """A store whose channel is the receiver, and what makes and delivers its notices, as one process."""

    def __init__(self, s: Scene, post: Post, who: str = "hld_a") -> None:
        self.s = s
        self.post = post
        self.log: list[tuple[str, Mapping[str, object]]] = []
        self.rang = threading.Event()
        self.gathering = Gathering()
        self.delivering = Delivering(self._sender, who, lambda event, f: self.log.append((event, f)), self.rang)

    def channel(self, name: str = "ops", url: str | None = None, every: str = "0s", **more: Any) -> None:
        span = timedelta(0) if every == "0s" else timedelta(minutes=1)
        channels.set_channel(self.s.store, channels.read(name, url or self.post.url, every=span, **more), by="ann")

    def run(self, name: str, outcome: Outcome = FAILED, **rules: Any) -> None:
        """Let a task have one more run, which ends so."""
        with self.s.store.read() as session:
            known = session.tasks.by_name("default", name)
        task = known or self.s.add(name, **rules)
        runs.run_now(self.s.store, task.id, by="ann")
        [won] = self.s.claim()
        self.s.settle(won, outcome)

    def gather(self) -> int:
        return self.gathering.step(self.s.store)

    def deliver(self, after: timedelta = timedelta(seconds=5)) -> None:
        """Let a little time pass, and send what is due then, until all of it has arrived or failed."""
        self.gather()
        self.s.at(self.s.clock.moment + after)
        self.send()

    def send(self) -> None:
        self.delivering.step(self.s.store)
        self.settle()

    def settle(self) -> None:
        """Wait until what is on its way has come to its end, and let that be written down."""
        until = monotonic_s() + WITHIN_S
        while self.delivering.busy:
            assert monotonic_s() < until
            self.rang.wait(1)
            self.rang.clear()
            self.delivering.step(self.s.store)

    def states(self) -> list[tuple[str, str]]:
        """What was put into the outbox: its kind, and what became of it."""
        with self.s.store.read() as session:
            return [(one.notice.kind, one.state) for one in session.notices.listed()[::-1]]

    def close(self) -> None:
        self.post.may_answer.set()
        until = monotonic_s() + WITHIN_S
        while any(one.way.lives() for one in self.delivering._sending.values()):
            assert monotonic_s() < until
            pause(0.01)

    def _sender(self) -> Sender:
        return sender_of(self.s.environ, store="sto")
