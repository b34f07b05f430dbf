"""Greeting an OpenCode server without asking it anything: whether it can be had here, and is one; it costs nothing."""

import importlib
import tempfile

from duly.core.agent_config import Agent
from duly.runners.nurseries import Nursery
from duly.runners.opencode.api import Away, Strange, Told, health, reached
from duly.runners.opencode.runner import OpenCode
from duly.runners.opencode.servers import Server, Servers, Unready
from duly.runners.streams import Streams
from duly.secrets import Missing, Secrets


def hello(agent: Agent, secrets: Secrets, nursery: Nursery, streams: Streams) -> tuple[str, bool]:
    """Greet it: gives its name and True, or why it cannot be used and False; a server that nobody uses is ended."""
    importlib.import_module("httpx2")
    servers = Servers()
    try:
        given = {name: secrets.fill(value) for name, value in agent.env.items()}
        server = OpenCode(nursery, secrets, streams, servers).lend(agent, given)
        return streams.run(_greeted(server)).result()
    except (Missing, Unready) as fault:
        return secrets.mask(str(fault)), False
    finally:
        servers.close()


async def _greeted(server: Server) -> tuple[str, bool]:
    try:
        async with reached(server.url, server.password, tempfile.gettempdir(), outside=server.kept is None) as api:
            return f"OpenCode {await health(api)}", True
    except (Away, Told, Strange) as fault:
        return str(fault), False
