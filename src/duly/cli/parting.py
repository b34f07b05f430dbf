"""Commands that take words of the work after `--`, byte for byte."""

import click

from duly.cli.frame import Command

META = "duly.words"


class Parted(Command):
    """A command whose words after `--` are not its own; `words()` gives them."""

    tail = "-- COMMAND ARG..."

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Part the work's words from our own before those are read."""
        if "--" in args:
            at = args.index("--")
            ctx.meta[META] = tuple(args[at + 1 :])
            args = args[:at]
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Show how those words are parted off."""
        return [*filter(None, super().collect_usage_pieces(ctx)), self.tail]


def words() -> tuple[str, ...] | None:
    """Give the words after `--` in this call; None where there was no `--`."""
    found: tuple[str, ...] | None = click.get_current_context().meta.get(META)
    return found
