"""The agents of this host, as its config names them, and how far its webhooks go, for who serves or asks."""

from collections.abc import Mapping

from duly import config
from duly.runners.agents import Agents
from duly.runners.webhook.reach import Reach


def agents_of(environ: Mapping[str, str]) -> Agents:
    """Read the config's agents and secrets; Invalid where the config cannot be read at all."""
    found = config.load(environ)
    return Agents(
        known=found.agents,
        faults=found.agent_faults,
        secrets=config.secrets_of(found, environ),
        reach=Reach(inside=config.in_force("http.inside", found, environ).value is True),
    )
