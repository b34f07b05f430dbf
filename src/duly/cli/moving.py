"""`move`: a store into another database."""

import os

import click

from duly.cli import out
from duly.cli.asking import YES, confirm
from duly.cli.frame import command, settings
from duly.cli.joining import address, hint
from duly.cli.table import plain
from duly.cli.words import many


@command(
    name="move",
    help="Move the store with all that it holds into another database: into PostgreSQL for many hosts, or into a file. "
    "Nobody may serve it meanwhile, and nothing of it may be running. Every row is compared before the old store is "
    "left; a move that was cut short goes on when it is asked again. The old store stays as it is, and is used by "
    "nobody any more.",
    epilog="duly move --to postgresql://duly@db.example/duly\nduly --store postgresql://… move --to ./duly.db",
    params=[click.Option(["--to", "to"], metavar="URL-OR-PATH", required=True, help="Where it shall be."), YES],
)
def move(to: str, yes: bool) -> None:
    """Move the store."""
    from duly.operations import moving
    from duly.store.address import resolve

    source, target = address(), resolve(to, os.environ)
    if not yes:
        confirm(
            f"Move {plain(str(source))} to {plain(str(target))}?",
            what=f"moving {plain(str(source))}",
            hint=f"duly move --to {plain(str(target))} --yes",
            details={"from": str(source), "to": str(target)},
        )
    done = moving.move(source, target, os.environ, tell=_tell)
    if settings().as_json:
        out.document(moving.shape(done))
        return
    rows = sum(done.rows.values())
    out.line(f"moved {plain(done.source)} to {plain(done.target)}: {many(rows, 'row')}, each compared")
    hint(f"from now on: --store {plain(done.target)}, or DULY_STORE")


def _tell(table: str, written: int) -> None:
    import sys

    if sys.stderr.isatty() and not settings().as_json:
        sys.stderr.write(f"\r{written:,} rows ({table})\033[K")
        sys.stderr.flush()
