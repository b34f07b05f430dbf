"""The frame around all commands: which there are, the options every one takes, and how a call ends.

A command's file is loaded when the command is called, so that `duly list` pays for nothing but itself.
"""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from duly import __version__
from duly.cli import faults, out

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

# name → (file under duly.cli, what it does); the order is that of the help.
COMMANDS: Mapping[str, tuple[str, str]] = {
    "serve": ("serving", "run what is due from a store, until stopped"),
    "demo": ("serving", "show real commands run at their times, in a store of its own"),
    "init": ("serving", "make an empty store"),
    "add": ("adding", "add a task"),
    "list": ("listing", "list the tasks: when, next, last"),
    "show": ("showing", "show all there is to know of a task or a run"),
    "edit": ("editing", "change a task, by options or in an editor"),
    "enable": ("switching", "switch a task on"),
    "disable": ("switching", "switch a task off"),
    "pause": ("switching", "hold a task, a project or all, with a note and an end"),
    "unpause": ("switching", "lift such a hold"),
    "check": ("checking", "say what loop files would become, or what is wrong with them"),
    "project": ("projects", "set, list and remove projects"),
    "default": ("defaults", "set, list and remove the rules that tasks have by default"),
    "remove": ("switching", "remove a task; its ledger stays"),
    "run": ("running", "run a task now"),
    "retry": ("running", "do an ended run again"),
    "emit": ("events", "emit an event, for the tasks that listen to its source"),
    "cancel": ("running", "end a run"),
    "runs": ("listing", "list the runs, the newest first"),
    "skip": ("skipping", "let occurrences not run, also ones to come"),
    "backfill": ("filling", "open what never ran in a span of the past"),
    "missed": ("missed", "list what was found too late, and what waits for an answer"),
    "accept": ("missed", "run a missed occurrence all the same"),
    "decline": ("missed", "say that a missed occurrence shall not run"),
    "questions": ("questions", "list what agents ask, and what waits for an answer"),
    "answer": ("questions", "answer what an agent asks"),
    "log": ("logs", "print what a run wrote"),
    "preview": ("previewing", "say what a WHEN means, and its next instants"),
    "next": ("previewing", "list what is due next"),
    "status": ("status", "say how things stand"),
    "why": ("why", "say why an instant ran, did not, or will not"),
    "ledger": ("ledger", "tell the story of every occurrence and run"),
    "verify": ("status", "check the promises on this store"),
    "limit": ("limits", "set, list and remove limits over many tasks"),
    "source": ("sources", "set, list and remove what is wanted of who sends events"),
    "budget": ("budgets", "set, list and remove what may be spent in a day or a month"),
    "token": ("tokens", "make, list and revoke what programs ask with over the network"),
    "open": ("tokens", "open the interface of who serves here in a browser, logged in"),
    "channel": ("channels", "set, list, test and remove where people and programs are told"),
    "holders": ("holding", "list the processes that serve this store"),
    "outages": ("outages", "list when nobody served, and what was missed by it"),
    "drain": ("draining", "let those who serve end what they run, and leave"),
    "fence": ("holding", "say whether a fence is current"),
    "export": ("exporting", "write the definitions of tasks as YAML or JSON"),
    "backup": ("keeping", "copy the store whole, while it is used"),
    "restore": ("keeping", "put a backup in the store's place, with everything paused"),
    "prune": ("keeping", "take away what is older than is kept"),
    "move": ("moving", "move the store into another database"),
    "migrate": ("keeping", "bring the store up to date with this version"),
    "doctor": ("doctoring", "look for what is wrong, and say what to do"),
    "mcp": ("mcp", "answer agents by the Model Context Protocol"),
    "skill": ("skill", "teach agents to use Duly"),
    "completion": ("completing", "print what makes a shell complete commands and names"),
    "config": ("configuring", "show the settings of this host, and where each comes from"),
}
NAMED = {"list": "list_", "next": "next_", "open": "open_"}


@dataclass(slots=True, kw_only=True)
class Settings:
    """What the options of every command set, before or after the command's name."""

    store: str | None = None
    as_json: bool = False
    code: int = 0
    """What the call will end with, set by commands that know it before all is printed."""
    config: object = None
    """The config file, once it was read."""


def settings() -> Settings:
    """Give the settings of the command that is running."""
    found = click.get_current_context().find_root().obj
    assert isinstance(found, Settings)
    return found


class Text(click.types.StringParamType):
    """A text of the command line; which words may stand in its place is found out when a shell asks."""

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> "list[CompletionItem[str]]":
        """Give the values that begin as typed."""
        from duly.cli.completing import values

        return values(ctx, param, incomplete)


TEXT = Text()


class Command(click.Command):
    """A command that also takes the options of every command."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params.extend(_common())
        for param in self.params:
            if param.type is click.STRING:
                param.type = TEXT

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Keep examples as they were laid out."""
        if self.epilog:
            formatter.write("\nExamples:\n")
            formatter.write("".join(f"  {line}\n" for line in self.epilog.strip().splitlines()))


def command(cls: type[Command] = Command, **attributes: Any) -> Callable[[Callable[..., int | None]], Command]:
    """Make a command of a function that returns its exit code (None is 0)."""

    def make(function: Callable[..., int | None]) -> Command:
        made = click.command(cls=cls, **attributes)(function)
        assert isinstance(made, Command)
        return made

    return make


class Verbs(click.Group):
    """A command whose first word is one of several verbs, such as `duly config show`."""

    def __init__(self, name: str, *verbs: Command, **attributes: Any) -> None:
        super().__init__(
            name,
            {str(verb.name): verb for verb in verbs},
            params=_common(),
            add_help_option=False,
            subcommand_metavar="|".join(str(verb.name) for verb in verbs),
            no_args_is_help=False,
            **attributes,
        )

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Name the verbs in their order."""
        return list(self.commands)


class Frame(click.Group):
    """The group of all commands, each loaded when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Name the commands in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Load one command's file and give the command."""
        if cmd_name not in COMMANDS:
            return None
        found = getattr(import_module(f"duly.cli.{COMMANDS[cmd_name][0]}"), NAMED.get(cmd_name, cmd_name))
        assert isinstance(found, click.Command)
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or refuse with the nearest there is."""
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            raise click.exceptions.NoSuchCommand(args[0], possibilities=COMMANDS, ctx=ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the commands without loading any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


def _common() -> list[click.Parameter]:
    return [
        click.Option(
            ["--store"],
            metavar="URL-OR-PATH",
            expose_value=False,
            callback=_keep_store,
            help="The store; else DULY_STORE, else duly/duly.db in the data folder.",
        ),
        click.Option(
            ["--json"],
            is_flag=True,
            expose_value=False,
            callback=_keep_json,
            help="Print exactly one JSON document (streams: one a line).",
        ),
        click.Option(
            ["-h", "--help"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_print_help,
            help="Show this and exit.",
        ),
    ]


def _keep_store(ctx: click.Context, _: click.Parameter, value: str | None) -> None:
    if value is not None:
        ctx.ensure_object(Settings).store = value


def _keep_json(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        ctx.ensure_object(Settings).as_json = True


def _print_help(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        out.line(ctx.get_help())
        ctx.exit()


def _print_version(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if not value or ctx.resilient_parsing:
        return
    if ctx.ensure_object(Settings).as_json:
        out.document({"version": __version__})
    else:
        out.line(f"duly {__version__}")
    ctx.exit()


def frame() -> Frame:
    """Make the group with its own options."""
    version = click.Option(
        ["--version"], is_flag=True, expose_value=False, callback=_print_version, help="Print the version and exit."
    )
    return Frame(
        "duly",
        params=[*_common(), version],
        help="Duly: one occurrence, one run.",
        no_args_is_help=False,
        invoke_without_command=True,
        add_help_option=False,
        callback=_no_command,
        context_settings={"max_content_width": 100},
    )


def _no_command() -> None:
    ctx = click.get_current_context()
    if ctx.invoked_subcommand is None:
        out.line(ctx.get_help())


def run(args: Sequence[str]) -> int:
    """Run one call and answer with its exit code; every way to fail is told here, in one form."""
    out.prepare()
    kept = Settings()
    as_json = _json_asked(args)
    try:
        kept.code = _call(args, kept)
        out.flush()
    except BrokenPipeError:
        # Who read our output has had enough of it. Python must not try to flush the rest at its end.
        _mute()
        return kept.code
    except (KeyboardInterrupt, click.Abort):
        return faults.interrupted()
    except BaseException as fault:
        if isinstance(fault, SystemExit | GeneratorExit):
            raise
        try:
            return faults.told(fault, args=args, as_json=as_json or kept.as_json)
        except BrokenPipeError:
            _mute()
            return faults.code_of(fault)
    return kept.code


def _call(args: Sequence[str], kept: Settings) -> int:
    """Call a command; not by click's `main`, which makes a 1 of every reader that leaves early."""
    group = frame()
    try:
        with group.make_context("duly", list(args), obj=kept) as ctx:
            code = group.invoke(ctx)
    except click.exceptions.Exit as left:
        code = left.exit_code
    return code if isinstance(code, int) else 0


def _json_asked(args: Sequence[str]) -> bool:
    """Say whether errors shall be JSON even if the words cannot be parsed."""
    for word in args:
        if word == "--":
            return False
        if word == "--json":
            return True
    return False


def _mute() -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            os.dup2(nowhere, stream.fileno())
        except (OSError, ValueError):
            continue
