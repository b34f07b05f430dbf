"""The client: one method a route, with the errors of the house; only a stream is asked for again by itself."""

import json
import os
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, cast
from urllib.parse import quote

from duly import clock
from duly.client import events
from duly.client.errors import Unreached, of_problem
from duly.client.shapes import Entry, Missed, Question, Reset, Run, Task
from duly.errors import Invalid, Refused, StoreAway

if TYPE_CHECKING:
    import httpx2

URL = "http://127.0.0.1:7433"
TIMEOUT_S = 30.0
SILENT_S = 45.0
"""A stream on which not even a comment comes for so long is taken for cut off."""
AGAIN_S = (0.2, 5.0)
"""After a stream was cut off it is asked for again after so long, up to so long."""
LOOK_EVERY_S = 0.3
PASSING = frozenset({"store_away", "draining", "rate_limited"})
"""Reasons for which a stream that was reached before is asked for again."""
MERGE = "application/merge-patch+json"


class Client:
    """What a token may do at a server, from Python; used by one thread at a time, and closed at the end.

    `url` and `token` are DULY_URL and DULY_TOKEN where they are not given.
    """

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        timeout_s: float = TIMEOUT_S,
        http: "httpx2.Client | None" = None,
    ) -> None:
        import httpx2

        self._url = (url or os.environ.get("DULY_URL") or URL).rstrip("/")
        secret = token or os.environ.get("DULY_TOKEN") or ""
        if not secret:
            raise Invalid("a token is wanted", field="token", hint="DULY_TOKEN, made by `duly token create NAME`")
        self._headers = {"Authorization": f"Bearer {secret}"}
        self._http = http or httpx2.Client(timeout=timeout_s)
        self._errors = httpx2.TransportError

    def __enter__(self) -> Self:
        """Give itself, to be closed at the end."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close."""
        self.close()

    def close(self) -> None:
        """Give its connections back."""
        self._http.close()

    # Tasks

    def tasks(self, **asked: str) -> Iterator[Task]:
        """All tasks, or those that `project`, `name`, `label`, `q`, `state` ask for, page by page."""
        yield from cast(Iterator[Task], self._pages("/tasks", asked))

    def task(self, word: str) -> Task:
        """One task, by its id or a unique end of it, by its name, or as `project/name`."""
        return cast(Task, self._json("GET", f"/tasks/{_quoted(word)}"))

    def add(self, definition: Mapping[str, Any]) -> Task:
        """Add a task by its definition."""
        return cast(Task, self._json("POST", "/tasks", definition))

    def replace(self, word: str, definition: Mapping[str, Any], *, version: int) -> Task:
        """Give a task another definition, if it still has this version."""
        return cast(Task, self._json("PUT", f"/tasks/{_quoted(word)}", definition, headers=_match(version)))

    def change(self, word: str, changes: Mapping[str, Any], *, version: int | None = None) -> Task:
        """Change what is named, and nothing else; None clears."""
        headers = {"Content-Type": MERGE, **_match(version)}
        return cast(Task, self._json("PATCH", f"/tasks/{_quoted(word)}", changes, headers=headers))

    def remove(self, word: str, *, version: int | None = None) -> None:
        """Remove a task; its ledger stays."""
        self._json("DELETE", f"/tasks/{_quoted(word)}", headers=_match(version))

    def enable(self, word: str) -> Task:
        """Switch a task on."""
        return cast(Task, self._json("POST", f"/tasks/{_quoted(word)}/enable"))

    def disable(self, word: str) -> Task:
        """Switch a task off."""
        return cast(Task, self._json("POST", f"/tasks/{_quoted(word)}/disable"))

    def pause(self, word: str, *, until: str | None = None, note: str | None = None) -> Any:
        """Hold a task."""
        return self._json("POST", f"/tasks/{_quoted(word)}/pause", _given(until=until, note=note))

    def unpause(self, word: str) -> Any:
        """Lift a task's hold."""
        return self._json("POST", f"/tasks/{_quoted(word)}/unpause")

    def why(self, word: str) -> Any:
        """Why a task ran, did not, or will not."""
        return self._json("GET", f"/tasks/{_quoted(word)}/why")

    # Runs

    def run(
        self,
        word: str,
        *,
        input: str | None = None,  # noqa: A002 - the word of the interface
        key: str | None = None,
        queue: bool = False,
        anyway: bool = False,
    ) -> Run:
        """Run a task now; the same key again answers with the run that it opened first."""
        body = _given(input=input, key=key, queue=queue or None, anyway=anyway or None)
        return cast(Run, self._json("POST", f"/tasks/{_quoted(word)}/run", body))

    def runs(self, **asked: str) -> Iterator[Run]:
        """All runs, the newest first, or those that `task`, `state`, `outcome`, `since` ask for."""
        yield from cast(Iterator[Run], self._pages("/runs", asked))

    def get_run(self, word: str) -> Run:
        """One run, by its id or a unique end of it."""
        return cast(Run, self._json("GET", f"/runs/{_quoted(word)}"))

    def wait(self, word: str, *, within_s: float | None = None) -> Run:
        """Wait for the end of a run and give it; Refused `already_running` where it has not ended in time."""
        until = None if within_s is None else clock.monotonic_s() + within_s
        while (run := self.get_run(word))["state"] != "ended":
            if until is not None and clock.monotonic_s() >= until:
                raise Refused("already_running", f"{run['id']} has not ended within {within_s:g} s")
            clock.pause(LOOK_EVERY_S)
        return run

    def cancel(self, word: str) -> Run:
        """Have a run end."""
        return cast(Run, self._json("POST", f"/runs/{_quoted(word)}/cancel"))

    def retry(self, word: str) -> Run:
        """Run again what a run was, as a run by hand."""
        return cast(Run, self._json("POST", f"/runs/{_quoted(word)}/retry"))

    def log(self, word: str, *, attempt: int | None = None) -> bytes:
        """What a run has written so far."""
        path = f"/runs/{_quoted(word)}/log"
        return self._asked("GET", path, params=_given(attempt=attempt)).content

    def follow(self, word: str, *, after: int = 0) -> Iterator[bytes]:
        """What a run writes, as it comes, until the run ends."""
        query = f"/runs/{_quoted(word)}/log?follow=1&after={after}"
        # Work may be silent for as long as it likes, and its output has no comments that say so.
        with self._streamed(query, {}, None, silent_s=None) as pieces:
            yield from pieces

    # What wants a person, and events

    def missed(self, **asked: str) -> Iterator[Missed]:
        """What was missed, the newest first."""
        yield from cast(Iterator[Missed], self._pages("/missed", asked))

    def accept(self, word: str) -> Any:
        """Run what was missed."""
        return self._json("POST", f"/missed/{_quoted(word)}/accept")

    def decline(self, word: str, *, note: str | None = None) -> Any:
        """Leave what was missed."""
        return self._json("POST", f"/missed/{_quoted(word)}/decline", _given(note=note))

    def questions(self, **asked: str) -> Iterator[Question]:
        """What the work of runs has asked."""
        yield from cast(Iterator[Question], self._pages("/questions", asked))

    def answer(self, word: str, choice: str | None = None, *, text: str | None = None, note: str | None = None) -> Any:
        """Answer a question: `allow` or `deny`, or with a text."""
        body = _given(answer=choice, text=text, note=note)
        return self._json("POST", f"/questions/{_quoted(word)}/answer", body)

    def emit(self, source: str, data: object = None, *, key: str | None = None) -> Any:
        """Tell of an event; the same key again answers as the first time."""
        return self._json("POST", f"/events/{_quoted(source)}", _given(key=key, data=data))

    def status(self) -> dict[str, Any]:
        """How things stand."""
        return cast(dict[str, Any], self._json("GET", "/status"))

    # The ledger as it is written

    def stream(
        self, *, after: int | None = None, task: str | None = None, project: str | None = None
    ) -> Iterator[Entry | Reset]:
        """Entries of the ledger as they are written, for ever: cut off once it was reached, it goes on where it was.

        `after`: from what follows this number; else from now on. What has no `kind` is a Reset.
        """
        last = None if after is None else str(after)
        query, pause_s, reached = _given(task=task, project=project), AGAIN_S[0], False
        while True:
            try:
                with self._streamed("/stream", query, last) as pieces:
                    reached = True
                    for event in events.read(pieces):
                        last, pause_s = event.id or last, AGAIN_S[0]
                        if event.data is not None:
                            yield json.loads(event.data)
            except (Unreached, StoreAway, Refused) as error:
                if not reached or error.reason not in PASSING:
                    raise
            clock.pause(pause_s)
            pause_s = min(2 * pause_s, AGAIN_S[1])

    def _streamed(
        self, path: str, query: Mapping[str, Any], last: str | None, *, silent_s: float | None = SILENT_S
    ) -> "_Streamed":
        headers = self._headers | ({} if last is None else {"Last-Event-ID": last})
        return _Streamed(self._http, self._url + "/api/v1" + path, query, headers, silent_s)

    def _pages(self, path: str, asked: Mapping[str, str]) -> Iterator[Any]:
        cursor: str | None = None
        while True:
            page = self._json("GET", path, params={**asked, **_given(cursor=cursor)})
            yield from page["items"]
            cursor = page["next"]
            if cursor is None:
                return

    def _json(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        answered = self._asked(method, path, body, params=params, headers=headers)
        return json.loads(answered.content) if answered.content else None

    def _asked(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> "httpx2.Response":
        given = {**self._headers, **(headers or {})}
        content = None
        if body is not None:
            given.setdefault("Content-Type", "application/json")
            content = json.dumps(body).encode()
        try:
            answered = self._http.request(
                method, self._url + "/api/v1" + path, content=content, params=params or None, headers=given
            )
        except self._errors as error:
            raise _unreached(self._url, error) from error
        if answered.status_code >= 400:
            raise of_problem(answered.status_code, answered.content)
        return answered


class _Streamed:
    """One answer that goes on, from its begin to its end or to where it is cut off (Unreached)."""

    def __init__(
        self,
        http: "httpx2.Client",
        url: str,
        query: Mapping[str, Any],
        headers: Mapping[str, str],
        silent_s: float | None,
    ) -> None:
        import httpx2

        self._url = url
        within = httpx2.Timeout(TIMEOUT_S, read=silent_s)
        self._asking = http.stream("GET", url, params=query or None, headers=headers, timeout=within)

    def __enter__(self) -> Iterator[bytes]:
        """Ask, and give the pieces as they come; the errors of the house where it is refused."""
        import httpx2

        try:
            answered = self._asking.__enter__()
        except httpx2.TransportError as error:
            raise _unreached(self._url, error) from error
        if answered.status_code >= 400:
            try:
                body = answered.read()
            finally:
                self._asking.__exit__(None, None, None)
            raise of_problem(answered.status_code, body)
        return self._pieces(answered)

    def __exit__(self, *_: object) -> None:
        """Leave."""
        self._asking.__exit__(None, None, None)

    def _pieces(self, answered: "httpx2.Response") -> Iterator[bytes]:
        import httpx2

        try:
            yield from answered.iter_raw()
        except httpx2.TransportError as error:
            raise _unreached(self._url, error) from error


def _unreached(url: str, error: Exception) -> Unreached:
    return Unreached(
        f"{url} does not answer: {str(error) or type(error).__name__}", hint="does `duly serve` run, and at this URL?"
    )


def _quoted(word: str) -> str:
    return quote(word, safe="")


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _match(version: int | None) -> dict[str, str]:
    return {} if version is None else {"If-Match": f'"v{version}"'}
