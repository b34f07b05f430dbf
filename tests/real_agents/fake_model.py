"""A model's provider for tests, on loopback: it answers what a script says, and counts what it was asked.

It speaks the chat completions that OpenCode asks for. Which script holds is told by the prompt: `[[NAME]]` in the last
message of a user that has one. Each call takes the next step of its script, and the last step stays.
"""

import itertools
import json
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

NAMED = re.compile(r"\[\[([\w -]+)\]\]")
NUMBER = itertools.count(1)
HELD_MOST_S = 120.0
TITLE = "title generator"
CODES = {429: "rate_limit_exceeded", 401: "invalid_api_key", 400: "context_length_exceeded"}
PIECE = 12

Step = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call: of which script, how many messages it had, and which tools it offered."""

    name: str
    text: str
    messages: int
    tools: tuple[str, ...]
    history: str


@dataclass(slots=True)
class Script:
    steps: list[Step]
    taken: int = 0
    free: threading.Event = field(default_factory=threading.Event)


class FakeModel:
    """Serves until it is closed; safe from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._scripts: dict[str, Script] = {}
        self._calls: list[Call] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _answering(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def writes(self, name: str, *steps: Step) -> str:
        """Write a script; gives what a prompt says to have it."""
        with self._lock:
            self._scripts[name] = Script(list(steps))
        return f"[[{name}]]"

    def frees(self, name: str) -> None:
        """Let go on what holds in this script."""
        self._scripts[name].free.set()

    def calls(self, name: str) -> list[Call]:
        """Give the calls that had this script so far."""
        with self._lock:
            return [call for call in self._calls if call.name == name]

    def take(self, call: Call) -> tuple[Step, threading.Event]:
        with self._lock:
            self._calls.append(call)
            script = self._scripts.get(call.name)
            if script is None:
                return say("I was told nothing."), threading.Event()
            step = script.steps[min(script.taken, len(script.steps) - 1)]
            script.taken += 1
            return step, script.free

    def close(self) -> None:
        for script in self._scripts.values():
            script.free.set()
        self._server.shutdown()
        self._server.server_close()


def say(text: str, **more: Any) -> Step:
    """The model says this, and has ended."""
    return {"do": "say", "text": text, **more}


def tool(name: str, **given: Any) -> Step:
    """The model wants a tool used."""
    return {"do": "tool", "tool": name, "given": given}


def shell(command: str) -> Step:
    """The model wants a line run by the shell."""
    return tool("bash", command=command, description="a line")


def status(code: int, **more: Any) -> Step:
    """The provider answers an error of HTTP."""
    return {"do": "status", "code": code, **more}


HOLD: Step = {"do": "hold"}
"""The model begins, and goes on when it is freed."""
DROP: Step = {"do": "drop"}
"""The provider closes the connection in the middle."""
CUT: Step = {"do": "say", "text": "half of", "finish": "length"}
"""The model's tokens are used up."""


def _answering(model: FakeModel) -> type[BaseHTTPRequestHandler]:
    class Answering(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            pass

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            try:
                self._answer(json.loads(body))
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True

        def _answer(self, asked: Mapping[str, Any]) -> None:
            call = _call(asked)
            step, free = (say("A title"), threading.Event()) if call.name == TITLE else model.take(call)
            if step["do"] == "status":
                self._error(step)
                return
            self._begin("text/event-stream")
            for delta, finish in self._pieces(step, free):
                self._send({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
            if step["do"] == "drop":
                self.connection.close()
                return
            given, made = step.get("usage", (100, 20))
            usage = {"prompt_tokens": given, "completion_tokens": made, "total_tokens": given + made}
            self._send({"choices": [], "usage": usage})
            self.wfile.write(b"data: [DONE]\n\n")

        def _pieces(self, step: Step, free: threading.Event) -> Iterator[tuple[Mapping[str, Any], str | None]]:
            yield {"role": "assistant", "content": ""}, None
            if step["do"] == "tool":
                named = {"name": step["tool"], "arguments": json.dumps(step["given"])}
                call = {"index": 0, "id": f"call_{next(NUMBER)}", "type": "function", "function": named}
                yield {"tool_calls": [call]}, None
                yield {}, "tool_calls"
                return
            begun = {"hold": "I begin. Then I wait for a while. ", "drop": "partial"}
            text = str(begun.get(step["do"]) or step.get("text", ""))
            for at in range(0, len(text), PIECE):
                yield {"content": text[at : at + PIECE]}, None
            if step["do"] == "hold":
                free.wait(HELD_MOST_S)
                yield {"content": step.get("text", "I have ended.")}, None
            if step["do"] != "drop":
                yield {}, step.get("finish", "stop")

        def _send(self, chunk: Mapping[str, Any]) -> None:
            whole = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "fake-1", **chunk}
            self.wfile.write(f"data: {json.dumps(whole)}\n\n".encode())
            self.wfile.flush()

        def _begin(self, kind: str) -> None:
            self.send_response(200)
            self.send_header("content-type", kind)
            self.send_header("connection", "close")
            self.close_connection = True
            self.end_headers()

        def _error(self, step: Step) -> None:
            code = step["code"]
            told = {"message": f"fake error {code}", "type": "fake", "code": CODES.get(code, "server_error")}
            body = json.dumps({"error": told}).encode()
            self.send_response(code)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            if "retry_after" in step:
                self.send_header("retry-after", str(step["retry_after"]))
            self.end_headers()
            self.wfile.write(body)

    return Answering


def _call(asked: Mapping[str, Any]) -> Call:
    messages: Sequence[Mapping[str, Any]] = asked.get("messages", [])
    texts = [(str(one.get("role")), _text(one.get("content"))) for one in messages]
    users = [text for role, text in texts if role == "user"]
    system = " ".join(text for role, text in texts if role in ("system", "developer"))
    name = next((found[-1] for text in reversed(users) if (found := NAMED.findall(text))), "")
    return Call(
        name=TITLE if TITLE in system.lower() else name,
        text=users[-1] if users else "",
        messages=len(messages),
        tools=tuple(str(one.get("function", {}).get("name")) for one in asked.get("tools") or ()),
        history="\n".join(f"{role}: {text}" for role, text in texts if role not in ("system", "developer")),
    )


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(str(one.get("text", "")) for one in content or () if isinstance(one, Mapping))  # type: ignore[attr-defined]
