"""Streams of a real `duly serve`: over its end and its next life, with readers that never read, and its log as JSON."""

import json
import socket
import threading
from collections.abc import Callable
from typing import Any

import httpx2
from process_scene import Place

from duly.client import Client

READERS = 20
WITHIN_S = 60.0


def url_of(place: Place) -> str:
    url, _, _ = place.json("open", "--print")["url"].partition("/login#")
    return str(url)


def test_a_stream_goes_on_over_the_end_of_its_server_and_readers_that_never_read_hold_nobody_up(place: Place) -> None:
    place.env["DULY_SERVE_WEB"] = "yes"
    secret = place.json("token", "create", "ci", "--rights", "read,run,write")["secret"]
    place.duly("add", "hello", "--when", "manual", "--", "echo", "hello")
    first = place.serve("--port", "0", "--log-format", "json")
    url = url_of(place)
    port = int(url.rpartition(":")[2])
    got: list[Any] = []
    changed = threading.Condition()

    def listen() -> None:
        with Client(url, secret) as client:
            for entry in client.stream(after=0):
                with changed:
                    got.append(entry)
                    changed.notify_all()
                if entry.get("kind") == "disabled":
                    return

    def heard(holds: Callable[[], bool]) -> None:
        with changed:
            assert changed.wait_for(holds, WITHIN_S), got

    listener = threading.Thread(target=listen)
    listener.start()
    deaf = [_never_reading(port, secret) for _ in range(READERS)]
    try:
        with Client(url, secret) as client:
            run = client.wait(client.run("hello")["id"], within_s=WITHIN_S)
            assert (run["outcome"], client.log(run["id"])) == ("succeeded", b"hello\n")
            heard(lambda: any(one["kind"] == "ended" and one["run"] == run["id"] for one in got))
            assert httpx2.get(f"{url}/readyz").json()["status"] == "ok"
            measured = httpx2.get(f"{url}/metrics", headers={"Authorization": f"Bearer {secret}"}).text
            assert f"duly_stream_readers {READERS + 1}.0" in measured
            first.terminate()
            assert first.wait(WITHIN_S) == 0, "who serves does not wait for its readers"
            place.serve("--port", str(port))
            client.disable("hello")
        listener.join(WITHIN_S)
        assert not listener.is_alive()
    finally:
        for one in deaf:
            one.close()
    seqs = [one["seq"] for one in got]
    assert seqs == list(range(1, len(seqs) + 1)), "each once, none left out"
    lines = [json.loads(line) for line in (place.home / "serve-0.err").read_text().splitlines()]
    [ended] = [one for one in lines if one["event"] == "run ended"]
    assert (ended["run"], ended["outcome"]) == (run["id"], "succeeded")
    assert ended["at"].endswith("Z")


def _never_reading(port: int, secret: str) -> socket.socket:
    """Ask for the stream from its begin, and take nothing of it but the first line."""
    made = socket.create_connection(("127.0.0.1", port), timeout=WITHIN_S)
    lines = (
        "GET /api/v1/stream?after=0 HTTP/1.1",
        f"Host: 127.0.0.1:{port}",
        f"Authorization: Bearer {secret}",
        "",
        "",
    )
    made.sendall("\r\n".join(lines).encode())
    assert made.recv(12) == b"HTTP/1.1 200"
    return made
