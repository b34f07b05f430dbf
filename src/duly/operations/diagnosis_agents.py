"""What `doctor` looks at of agents: each that the config names can be used, is there, and answers a greeting."""

from collections.abc import Iterator, Mapping

from duly import config
from duly.errors import Invalid
from duly.operations.ailment import Ailment


def agents(environ: Mapping[str, str]) -> Iterator[Ailment]:
    """Greet each agent of this host; no session is opened and no prompt is sent."""
    try:
        found = config.load(environ)
    except Invalid:
        return  # the settings say so
    for name, bad in found.agent_faults.items():
        text = f"the agent {name} cannot be used: {bad.field}: {bad.message}"
        yield Ailment(check="agent_unusable", subject=name, text=text, hint=bad.hint or f"mend {found.path}")
    if not found.agents:
        return
    from duly.runners.acp import preflight as acp
    from duly.runners.nurseries import Nursery
    from duly.runners.opencode import preflight as opencode
    from duly.runners.streams import Streams

    secrets, nursery, streams = config.secrets_of(found, environ), Nursery(), Streams()
    try:
        for agent in found.agents.values():
            hello = acp.hello if agent.kind == "acp" else opencode.hello
            told, fits = hello(agent, secrets, nursery, streams)
            if not fits:
                yield Ailment(
                    check="agent_unfit",
                    subject=agent.name,
                    text=f"the agent {agent.name} does not answer: {told}",
                    details={"kind": agent.kind, "program": agent.command[0] if agent.url is None else agent.url},
                    hint=f"see [agents.{agent.name}] in {found.path}",
                )
    finally:
        streams.close()
        nursery.close()
