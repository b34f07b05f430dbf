"""`backup`, `restore`, `migrate` and `prune`: a store copied, put back, brought up to date, and kept small."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from duly.cli import out
from duly.cli.asking import YES, confirm
from duly.cli.frame import command, settings
from duly.cli.joining import address, hint, open_for_change
from duly.cli.moments import full_text
from duly.cli.table import Cell, Column, plain, render
from duly.cli.words import many
from duly.errors import Invalid

if TYPE_CHECKING:
    from duly.operations.pruning import Wish
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

    path = _path(file)
    where = backups.of_file(address(), "its server's own tools restore it", hint="pg_restore")
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
    help="Bring the store up to date with this version. One that is up to date stays as it is. A store in a file is "
    "copied beside itself before (`duly serve` does the same at its start); a store on PostgreSQL is migrated by this "
    "command alone: back it up with pg_dump.",
)
def migrate() -> None:
    """Migrate the store."""
    from duly.operations import backups

    done = backups.migrate(address(), os.environ)
    kept = None if done.backup is None else str(done.backup)
    if settings().as_json:
        told = {"store": str(address()), "migrated": done.before != done.after, "from": done.before, "to": done.after}
        out.document({**told, "backup": kept})
        return
    if done.before == done.after:
        out.line(f"{plain(str(address()))} is up to date (revision {done.after})")
        return
    out.line(f"migrated {plain(str(address()))} from revision {done.before} to {done.after}")
    if kept is not None:
        out.line(f"as it was before: {plain(kept)}")


@command(
    name="prune",
    help="Take away what is older than --keep: runs that ended, their logs, what the ledger tells of them, missed "
    "occurrences, holders that are gone. Never what is younger than any task's max_age, what is live or offered, a "
    "task's newest run, or what people wrote. Events and the tombstones of removed tasks are kept for 90 days at "
    "least. Others go on meanwhile; what was pruned never runs again.",
    epilog="duly prune --dry-run\nduly prune --keep 30d --yes        # such as from a task of its own, once a week",
    params=[
        click.Option(["--keep"], metavar="SPAN", default="90d", help="How much stays.  [90d]"),
        click.Option(["--dry-run"], is_flag=True, help="Say what would go, and take nothing."),
        YES,
    ],
)
def prune(keep: str, dry_run: bool, yes: bool) -> None:
    """Prune the store."""
    from duly.core.spans import read_span
    from duly.operations import pruning

    kept = read_span(keep, field="--keep")
    with open_for_change() as store:
        with store.read() as session:
            wanted = pruning.wish(session, kept)
        if wanted.raised_by is not None:
            hint(_raised(wanted))
        if dry_run or not yes:
            counted = pruning.prune(store, wanted, take=False)
            if not dry_run and any(counted.values()):
                confirm(
                    f"Take away {_counted(counted)}, all older than {full_text(wanted.ages.cutoff, None)}?",
                    what="pruning",
                    hint=f"duly prune --keep {keep} --yes",
                    details=pruning.shape(wanted, counted, dry_run=True),
                )
        done = counted if dry_run else pruning.prune(store, wanted, take=True)
    if settings().as_json:
        out.document({"store": str(address()), **pruning.shape(wanted, done, dry_run=dry_run)})
        return
    verb = "would take" if dry_run else "took"
    if any(done.values()):
        out.line(f"{verb} away {_counted(done)}, all older than {full_text(wanted.ages.cutoff, None)}")
    else:
        out.line(f"nothing is older than {full_text(wanted.ages.cutoff, None)}")


def _raised(wanted: "Wish") -> str:
    from duly.core.spans import write_span
    from duly.operations.lookup import told

    assert wanted.raised_by is not None
    return f"{write_span(wanted.keep)} stays: so late may {plain(told(wanted.raised_by))} still run (max_age)"


def _counted(done: dict[str, int]) -> str:
    words = {
        "runs": ("run", None),
        "entries": ("ledger entry", "ledger entries"),
        "missed": ("missed record", None),
        "tasks": ("removed task", None),
        "events": ("event", None),
        "holders": ("holder", None),
        "skips": ("skip", None),
        "notices": ("notice", None),
        "logs": ("log", None),
    }
    parts = [many(done[kind], *word) for kind, word in words.items() if done[kind]]
    size = f" ({done['log_bytes']:,} bytes)" if done["log_bytes"] else ""
    return ", ".join(parts) + size


def _path(file: str) -> Path:
    if not file.strip() or "\0" in file:
        raise Invalid("it names no file", field="FILE", hint="a path such as ./duly-backup.db")
    try:
        return Path(os.path.abspath(Path(file).expanduser()))  # noqa: PTH100 - links stay as they are
    except FileNotFoundError as error:
        raise Invalid("the folder this was called in no longer exists", field="FILE") from error
