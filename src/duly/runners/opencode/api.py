"""Calls of an OpenCode server's HTTP API, and its stream of events; nothing that a server answers can break us."""

import contextlib
import json
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import httpx2

ANSWERED_WITHIN_S = 20.0
SILENT_MOST_S = 35.0
"""A stream of events that brings nothing for so long is broken: the server beats every ten seconds."""
SHOWN_MOST = 300
USER = "opencode"


class Away(Exception):
    """The server cannot be reached, or does not answer in time."""


class Strange(Exception):
    """The server answered what its API has not."""


class Told(Exception):
    """The server answered with an error: its HTTP status, and its words."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status


class Api:
    """One server as seen from one directory; used in one loop, and closed there."""

    def __init__(self, client: "httpx2.AsyncClient", directory: str) -> None:
        self._client = client
        self._params = {"directory": directory}

    async def get(self, path: str) -> Any:
        """Ask for what is there."""
        return await self.ask("GET", path)

    async def post(self, path: str, body: Mapping[str, object] | None = None) -> Any:
        """Tell it something."""
        return await self.ask("POST", path, body if body is not None else {})

    async def ask(self, method: str, path: str, body: Mapping[str, object] | None = None) -> Any:
        """Call it; Away, Told or Strange where there is no answer of its API."""
        import httpx2

        try:
            answer = await self._client.request(method, path, params=self._params, json=body)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise Away(f"the server does not answer: {str(error) or type(error).__name__}") from error
        if answer.status_code == 401:
            raise Told(401, "the server wants another password")
        if answer.status_code == 204:
            return None
        try:
            found = answer.json()
        except ValueError:
            shown = " ".join(answer.text.split())[:SHOWN_MOST]
            raise Strange(f"the server answered {path} with no JSON (HTTP {answer.status_code}): {shown}") from None
        if answer.status_code >= 400:
            raise Told(answer.status_code, words_of(found) or f"HTTP {answer.status_code}")
        return found

    async def objects(self, path: str) -> list[Mapping[str, Any]]:
        """Ask for a list of objects."""
        found = await self.get(path)
        if not isinstance(found, list):
            raise Strange(f"the server answered {path} with no list")
        return [one for one in found if isinstance(one, Mapping)]

    async def fields(self, path: str) -> Mapping[str, Any]:
        """Ask for an object."""
        found = await self.get(path)
        if not isinstance(found, Mapping):
            raise Strange(f"the server answered {path} with no object")
        return found

    async def events(self) -> AsyncIterator[tuple[str, Mapping[str, Any]]]:
        """Hear what happens in the directory, from now on, each as its type and its properties."""
        import httpx2

        timeout = httpx2.Timeout(ANSWERED_WITHIN_S, read=SILENT_MOST_S)
        try:
            async with self._client.stream("GET", "/event", params=self._params, timeout=timeout) as answer:
                if answer.status_code != 200:
                    raise Told(answer.status_code, f"its events cannot be heard: HTTP {answer.status_code}")
                async for line in answer.aiter_lines():
                    found = _event(line)
                    if found is not None:
                        yield found
        except httpx2.HTTPError as error:
            raise Away(f"the stream of events ended: {str(error) or type(error).__name__}") from error


@contextlib.asynccontextmanager
async def reached(url: str, password: str | None, directory: str, *, outside: bool) -> AsyncIterator[Api]:
    """Give the server at this address; nothing is asked of it yet."""
    import httpx2

    auth = None if password is None else httpx2.BasicAuth(USER, password)
    # What is of this machine is asked directly, whichever proxies the environment names.
    async with httpx2.AsyncClient(base_url=url, auth=auth, timeout=ANSWERED_WITHIN_S, trust_env=outside) as client:
        yield Api(client, directory)


async def health(api: Api) -> str:
    """Ask a server for its version; Strange where it is none of these."""
    found = await api.get("/global/health")
    version = found.get("version") if isinstance(found, Mapping) and found.get("healthy") is True else None
    if not isinstance(version, str):
        raise Strange(f"it is no OpenCode server: it answered {json.dumps(found)[:SHOWN_MOST]}")
    return version


def words_of(error: object) -> str | None:
    """Find the words in an error as the server tells it, with the provider's status where there is one."""
    if not isinstance(error, Mapping):
        return None
    data = error.get("data")
    told = data.get("message") if isinstance(data, Mapping) else None
    words = str(told or error.get("message") or error.get("name") or "").splitlines()
    code = data.get("statusCode") if isinstance(data, Mapping) else None
    return None if not words else words[0] + (f" (HTTP {code})" if code and str(code) not in words[0] else "")


def _event(line: str) -> tuple[str, Mapping[str, Any]] | None:
    if not line.startswith("data:"):
        return None
    try:
        found = json.loads(line[5:])
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, Mapping) or not isinstance(found.get("type"), str):
        return None
    properties = found.get("properties")
    return found["type"], properties if isinstance(properties, Mapping) else {}
