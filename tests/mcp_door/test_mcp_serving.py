"""`duly serve` with its door for agents, and `duly mcp` beside it, both spoken to by the official client."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

import databases
from duly.operations import tokens
from duly.store import Store

WITHIN_S = 60.0


class Served:
    """A store that a process serves, in a folder that is its home."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = databases.given(databases.unmade(folder))
        kept = {"PATH": os.environ["PATH"], "TZ": "UTC", "LANG": "C.UTF-8"}
        self.env = {**kept, "HOME": str(folder), "DULY_STORE": self.store, "DULY_MCP_COMMANDS": "allow"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "duly", "serve", "--port", "0"],
            env=self.env,
            cwd=folder,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        told = self.process.stdout.readline()
        assert told.startswith("duly: serving"), told
        self.url = f"{told.rpartition(' at ')[2].strip()}/mcp/"

    def close(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(WITHIN_S)
        assert self.process.stdout is not None
        self.process.stdout.close()

    def stdio(self, *flags: str, **more: str) -> StdioServerParameters:
        return StdioServerParameters(
            command=sys.executable, args=["-m", "duly", "mcp", *flags], env={**self.env, **more}, cwd=str(self.folder)
        )

    def seen(self, task: str) -> list[str]:
        """What a run of this task wrote down of what it was lent: the store and the token."""
        path = self.folder / f"seen.{task}"
        return path.read_text().strip().split("|") if path.exists() and path.read_text() else []

    def token(self, *rights: str) -> str:
        with closing(Store.open(databases.unmade(self.folder), self.env)) as store:
            return tokens.create(store, f"for {' '.join(rights)}", rights=rights, projects=(), by="ann").secret

    def over_stdio(self, do: Callable[[Client], Awaitable[Any]], *flags: str, **more: str) -> Any:
        async def talked() -> Any:
            async with Client(self.stdio(*flags, **more)) as client:
                return await do(client)

        return anyio.run(talked)

    def over_http(self, secret: str, do: Callable[[Client], Awaitable[Any]]) -> Any:
        async def talked() -> Any:
            headers = {"Authorization": f"Bearer {secret}"}
            async with (
                httpx2.AsyncClient(headers=headers, timeout=WITHIN_S, trust_env=False) as http,
                Client(streamable_http_client(self.url, http_client=http)) as client,
            ):
                return await do(client)

        return anyio.run(talked)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    one = Served(tmp_path_factory.mktemp("served"))
    yield one
    one.close()


async def called(client: Client, tool: str, **given: Any) -> Mapping[str, Any]:
    result = await client.call_tool(tool, given)
    assert not result.is_error, result.content
    shape: Mapping[str, Any] = result.structured_content
    return shape


async def a_life(client: Client, name: str, folder: Path) -> str:
    """List, preview, create, run and read a task, as an agent does."""
    listed = await called(client, "schedule_list")
    assert name not in [one["name"] for one in listed["items"]]
    assert (await called(client, "schedule_preview", when=["daily 09:00"]))["words"] == "every day at 09:00"
    made = await called(
        client, "schedule_create", name=name, when=["daily 09:00"], command=["echo", f"hello {name}"], cwd=str(folder)
    )
    assert (made["served"], len(made["upcoming"])) == (True, 3)
    run = (await called(client, "run_now", task=name))["id"]
    until = time.monotonic() + WITHIN_S
    while (seen := await called(client, "run_get", run=run))["state"] != "ended":
        assert time.monotonic() < until, seen
        await anyio.sleep(0.02)
    assert seen["outcome"] == "succeeded", seen
    text: str = (await called(client, "run_log", run=run))["text"]
    return text


def test_a_client_over_standard_streams_lists_previews_creates_runs_and_reads_a_task(served: Served) -> None:
    assert served.over_stdio(lambda client: a_life(client, "one", served.folder)) == "hello one\n"


def test_a_client_over_http_lists_previews_creates_runs_and_reads_a_task_as_its_token_says(served: Served) -> None:
    secret = served.token("read", "run", "write")
    assert served.over_http(secret, lambda client: a_life(client, "two", served.folder)) == "hello two\n"

    async def asked(client: Client) -> tuple[Any, Any]:
        seen = await called(client, "schedule_get", task="two")
        return seen, await client.call_tool("schedule_delete", {"task": "two"})

    seen, no = served.over_http(served.token("read"), asked)
    assert seen["recent"][0]["opened_by_whom"] == "for read run write over mcp"
    assert no.is_error
    assert no.structured_content["reason"] == "not_allowed"


def test_a_run_sees_the_store_and_a_token_only_as_its_task_says_and_the_token_ends_with_it(served: Served) -> None:
    """Each of three runs writes down what it was lent; the one that may run tasks asks by it over both roads."""
    witness = 'echo "$DULY_STORE|$DULY_TOKEN" > seen.$DULY_TASK; until test -e go; do sleep 0.05; done'

    async def begun(client: Client) -> dict[str, str]:
        runs = {}
        for access in ("none", "read", "run"):
            given = {"name": access, "when": ["manual"], "shell": witness, "cwd": str(served.folder)}
            await called(client, "schedule_create", **given, project="lab", rules={"store_access": access})
            runs[access] = (await called(client, "run_now", task=access))["id"]
        until = time.monotonic() + WITHIN_S
        while not all(served.seen(access) for access in runs):
            assert time.monotonic() < until
            await anyio.sleep(0.02)
        return runs

    async def in_a_run(client: Client) -> tuple[Any, Any, Any]:
        listed = await called(client, "schedule_list")
        given = {"name": "more", "when": ["daily 09:00"], "agent": "claude", "prompt": "x", "cwd": "/tmp"}
        made = await client.call_tool("schedule_create", {**given, "project": "lab"})
        return listed["items"], made.structured_content, await client.call_tool("schedule_delete", {"task": "lab/none"})

    async def all_ended(client: Client) -> None:
        (served.folder / "go").touch()
        until = time.monotonic() + WITHIN_S
        while (await called(client, "run_list", state="running"))["items"]:
            assert time.monotonic() < until
            await anyio.sleep(0.02)

    secret = served.token("read", "run", "write", "answer")
    runs = served.over_http(secret, begun)
    assert served.seen("none") == ["", ""]
    lent = {access: served.seen(access) for access in ("read", "run")}
    assert {store for store, _ in lent.values()} == {served.store}
    for listed, made, no in (
        served.over_http(lent["run"][1], in_a_run),
        served.over_stdio(in_a_run, DULY_RUN=runs["run"]),
    ):
        assert {one["project"] for one in listed} == {"lab"} == {made.get("project", "lab")}
        assert made.get("state", made.get("reason")) in {"waits_for_a_person", "already_exists"}
        assert no.structured_content["reason"] == "not_allowed"
    served.over_http(lent["read"][1], lambda client: called(client, "run_list"))
    served.over_http(secret, all_ended)
    for _, gone in lent.values():
        asked = httpx2.get(served.url, headers={"Authorization": f"Bearer {gone}"}, trust_env=False, timeout=WITHIN_S)
        assert asked.status_code == 401
