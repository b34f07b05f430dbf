"""Greeting an agent without asking it anything: whether it can be started here, and speaks our protocol.

It costs nothing: no session is opened, and no prompt is sent.
"""

import asyncio
import importlib
import os
import tempfile
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from duly import ids
from duly.core.agent_config import Agent
from duly.ports import Assignment
from duly.runners import command, folders
from duly.runners.acp import wire
from duly.runners.acp.greeting import Nonsense, error_told, greet, named
from duly.runners.agent_process import Pipes, Process
from duly.runners.nurseries import Forbidden, NotStarted, Nursery
from duly.runners.prompting import Unfit
from duly.runners.streams import Streams
from duly.runners.telling import Log
from duly.secrets import Missing, Secrets

TIMEOUT = timedelta(seconds=60)
LAST_BYTES = 65_536


def hello(agent: Agent, secrets: Secrets, nursery: Nursery, streams: Streams) -> tuple[str, bool]:
    """Greet it: gives its name and True, or why it cannot be used and False. Nothing of it is left afterwards."""
    importlib.import_module("acp.connection")
    try:
        given = {name: secrets.fill(value) for name, value in agent.env.items()}
    except Missing as missing:
        return str(missing), False
    around = command.without_ours(os.environ)
    with tempfile.TemporaryDirectory(prefix="duly-agent-") as place:
        assignment = _assignment(Path(place))
        folders.make_folder(assignment.folder)
        process = Process(nursery, assignment)
        env = command.as_utf8(around | given | {"DULY_RUN": assignment.run, "DULY_FENCE": str(assignment.fence)})
        pipes = process.start(agent.command, place, env)
        if isinstance(pipes, Forbidden | NotStarted):
            return str(getattr(pipes, "why", "its start was forbidden")), False
        told, fits = streams.run(_greeted(pipes, secrets)).result()
        ended = process.end()
    if ended.reason in ("not_found", "not_executable", "preflight") and not ended.side_effect:
        return ended.error or ended.reason, False
    if not fits and ended.exit_code:
        told += f" (it ended with exit status {ended.exit_code})"
    return secrets.mask(told), fits


async def _greeted(pipes: Pipes, secrets: Secrets) -> tuple[str, bool]:
    from acp.connection import Connection
    from acp.exceptions import RequestError

    log = Log(pipes.log, secrets.mask, secrets.longest)
    said, stdout = await wire.reader(pipes.stdout)
    noise, stderr = await wire.reader(pipes.stderr)
    connection = Connection(_refused, wire.Wire(said, await wire.writer(pipes.stdin), lambda _: None))
    listening = asyncio.create_task(_last_line(noise))
    try:
        greeting = await greet(connection)
        return named(greeting), True
    except (Unfit, Nonsense) as unfit:
        return str(unfit), False
    except RequestError as error:
        return f"it answered the greeting with an error: {error_told(error)}", False
    except ConnectionError:
        await asyncio.wait({listening}, timeout=1)
        last = listening.result() if listening.done() else ""
        return "it went away before it answered" + (f"; its last line: {last}" if last else ""), False
    finally:
        await connection.close()
        listening.cancel()
        stdout.close()
        stderr.close()
        log.close()


async def _last_line(noise: asyncio.StreamReader) -> str:
    kept = b""
    while data := await noise.read(LAST_BYTES):
        kept = (kept + data)[-LAST_BYTES:]
    lines = [line.strip() for line in kept.decode("utf-8", "replace").splitlines() if line.strip()]
    return lines[-1] if lines else ""


async def _refused(method: str, params: Any, notification: bool) -> Any:  # noqa: ARG001 - what a connection calls
    from acp.exceptions import RequestError

    if not notification:
        raise RequestError.method_not_found(method)


def _assignment(place: Path) -> Assignment:
    run = ids.new("run")
    action: Mapping[str, object] = {"kind": "agent"}
    return Assignment(
        run=run,
        attempt=1,
        fence=1,
        holder=run,
        task=run,
        task_name="greeting",
        project="",
        occurrence="",
        due_at=None,
        opened_by="manual",
        action=action,
        input=None,
        timeout=TIMEOUT,
        folder=place / "attempts" / f"{run}.1",
    )
