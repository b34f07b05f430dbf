"""`mcp`: the tools for agents, over standard input and output."""

import os

import click

from duly.cli.frame import command
from duly.cli.joining import address, config


@command(
    name="mcp",
    help=(
        "Answer an agent's client by the Model Context Protocol over standard input and output, until it leaves. Inside"
        " of a run it may do what the task's --store-access says."
    ),
    epilog=('duly mcp --store ./duly.db\nin a client: {"mcpServers": {"duly": {"command": "duly", "args": ["mcp"]}}}'),
    params=[
        click.Option(
            ["--commands"],
            metavar="ask|allow",
            help="Whether what an agent schedules to act on this host waits for a person's yes.  [ask]",
        ),
        click.Option(["--shortest"], metavar="SPAN", help="How far apart the starts of its tasks must be.  [1m]"),
        click.Option(["--tasks-most"], metavar="N", help="How many tasks agents may have made.  [100]"),
    ],
)
def mcp(commands: str | None, shortest: str | None, tasks_most: str | None) -> None:
    """Serve one client."""
    from duly.app import agents_door

    flags = {"commands": commands, "shortest": shortest, "tasks_most": tasks_most}
    agents_door.stdio(address(), agents_door.rails_of(config(), os.environ, flags))
