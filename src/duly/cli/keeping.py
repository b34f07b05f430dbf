"""`backup`, `restore` and `migrate`: whole copies of a store, taken and put back, and a store brought up to date."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from duly.cli import out
from duly.cli.asking import YES, confirm
from duly.cli.frame import command, settings
from duly.cli.joining import address, hint
from duly.cli.moments import full_text
from duly.cli.table import Cell, Column, plain, render
from duly.cli.words import many
from duly.errors import Invalid

if TYPE_CHECKING:
    from duly.operations.restoring import Restored

DUE_SHOWN = 20


@command(
    name="backup",
    help="Copy the store whole into a new file, while others go on using it. The copy is read through before it gets "
    "its name, and never takes the place of another file. What runs wrote (their logs) is not in it.",
    epilog='duly backup "/backup/duly-$(date +%F).db"',
    params=[click.Argument(["file"])],
)
def backup(file: str) -> None:
    """Back the store up."""
    from duly import clock
    from duly.operations import backups

    done = backups.backup(address(), _path(file), os.environ, now=clock.now())
    told = backups.taken(done.contents)
    if settings().as_json:
        out.document({"store": str(address()), "file": str(done.file), **told})
        return
    held = f"{many(done.contents.tasks, 'task')}, {many(done.contents.runs, 'run')}, {done.contents.bytes:,} bytes"
    out.line(f"backed up to {plain(str(done.file))}: {held}, read through and sound")


@command(
    name="restore",
    help="Put a backup in the store's place. Nobody may serve the store meanwhile; what it holds now is kept beside "
    "it. Afterwards everything is paused, what waited or ran at the backup is ended, and nothing that would have been "
    "due since is run: it is told.",
    epilog="duly restore /backup/duly-2026-12-01.db\nduly unpause --all        # once all is as it should be",
    params=[click.Argument(["file"]), YES],
)
def restore(file: str, yes: bool) -> None:
    """Restore a backup."""
    from duly.operations import backups, restoring
    from duly.operations.lookup import caller

    path, where = _path(file), address()
    contents = restoring.examine(path)
    restoring.check_free(where, path)
    if not yes:
        there = "; what it holds now is kept beside it" if where.path.exists() else ""
        confirm(
            f"Restore {plain(str(where))} from a backup of {full_text(contents.taken_at, None)} "
            f"({many(contents.tasks, 'task')}, {many(contents.runs, 'run')}){there}?",
            what=f"restoring {plain(str(where))}",
            hint=f"duly restore {plain(file)} --yes",
            details={"store": str(where), "file": str(path), **backups.taken(contents)},
        )
    done = restoring.restore(where, path, os.environ, by=caller())
    if settings().as_json:
        out.document({"store": str(where), "file": str(path), **restoring.shape(done)})
        return
    _told(done)


def _told(done: "Restored") -> None:
    taken = full_text(done.contents.taken_at, None)
    out.line(f"restored {plain(str(address()))} from a backup of {taken}: {many(done.contents.tasks, 'task')}")
    if done.kept is not None:
        out.line(f"what stood there is kept as {plain(str(done.kept))}")
    skipped = sum(run.outcome == "skipped" for run in done.ended)
    held = len(done.ended) - skipped
    if done.ended:
        parts = [many(skipped, "run") + " that waited"] * bool(skipped) + [many(held, "run") + " that ran"] * bool(held)
        out.line(f"ended: {' and '.join(parts)} at the backup (duly ledger tells which)")
    _due(done)
    out.line("everything is paused: duly unpause --all goes on from that moment")


def _due(done: "Restored") -> None:
    from duly.operations.lookup import told

    if not done.due:
        out.line("nothing would have been due since")
        return
    total = sum(one.stretch.count for one in done.due)
    out.line(f"would have been due since, and is not run by itself: {total:,} of {many(len(done.due), 'task')}")
    columns = [
        Column(head="TASK", cut=True),
        Column(head="TIMES", right=True),
        Column(head="FIRST", yields=1),
        Column(head="LAST", yields=1),
    ]
    rows: list[list[Cell | str]] = [
        [
            plain(told(one.task)),
            f"{one.stretch.count:,}",
            full_text(one.stretch.first, None),
            full_text(one.stretch.last, None),
        ]
        for one in done.due[:DUE_SHOWN]
    ]
    out.lines(render(columns, rows))
    if len(done.due) > DUE_SHOWN:
        out.line(f"and {len(done.due) - DUE_SHOWN} more tasks: all of them with --json")
    hint("duly run TASK does one of them by hand")


@command(
    name="migrate",
    help="Bring the store up to date with this version, after a backup beside it. One that is up to date stays as "
    "it is. (`duly serve` does the same at its start.)",
)
def migrate() -> None:
    """Migrate the store."""
    from duly.operations import backups

    done = backups.migrate(address(), os.environ)
    kept = None if done.backup is None else str(done.backup)
    if settings().as_json:
        told = {"store": str(address()), "migrated": kept is not None, "from": done.before, "to": done.after}
        out.document({**told, "backup": kept})
        return
    if kept is None:
        out.line(f"{plain(str(address()))} is up to date (revision {done.after})")
        return
    out.line(f"migrated {plain(str(address()))} from revision {done.before} to {done.after}")
    out.line(f"as it was before: {plain(kept)}")


def _path(file: str) -> Path:
    if not file.strip() or "\0" in file:
        raise Invalid("it names no file", field="FILE", hint="a path such as ./duly-backup.db")
    try:
        return Path(os.path.abspath(Path(file).expanduser()))  # noqa: PTH100 - links stay as they are
    except FileNotFoundError as error:
        raise Invalid("the folder this was called in no longer exists", field="FILE") from error
