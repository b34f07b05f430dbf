"""`skip`: occurrences that shall not run, though their schedule says so."""

from datetime import datetime
from typing import TYPE_CHECKING

import click

from duly.cli import out
from duly.cli.frame import command, settings
from duly.cli.joining import hint, open_for_change
from duly.cli.moments import away, full_text
from duly.cli.table import plain, wrapped
from duly.cli.words import many
from duly.errors import Invalid

if TYPE_CHECKING:
    from duly.operations.skipping import Ask, Skipped

WAYS = "one of --next, --at INSTANT and --before INSTANT is needed"


@command(
    name="skip",
    help="Let occurrences of a task not run, also ones to come. A run of one that still waits ends skipped.",
    epilog="duly skip backup --next\nduly skip report --before '2026-12-27 00:00' --note 'the office is closed'",
    params=[
        click.Argument(["task"]),
        click.Option(["--next", "next_"], is_flag=True, help="The next one that would run."),
        click.Option(["--at"], metavar="INSTANT", help="The one that is due at exactly this instant."),
        click.Option(["--before"], metavar="INSTANT", help="All that are due before this instant."),
        click.Option(["--note"], metavar="T", help="Why, for others to read."),
    ],
)
def skip(task: str, next_: bool, at: str | None, before: str | None, note: str | None) -> None:
    """Skip occurrences."""
    from duly.operations import skipping
    from duly.operations.lookup import caller

    if sum((next_, at is not None, before is not None)) != 1:
        raise Invalid(WAYS + ("" if not (next_ or at or before) else ", and only one"), field="--next")
    with open_for_change() as store:
        done = skipping.skip(store, task, _ask(at, before), by=caller(), note=note)
        if settings().as_json:
            out.document(skipping.shape(done))
            return
        with store.read() as session:
            _tell(done, session.now)


def _ask(at: str | None, before: str | None) -> "Ask":
    from duly.cli.moments import ahead
    from duly.operations.skipping import AT, BEFORE, NEXT, Ask

    if at is not None:
        return Ask(what=AT, at=ahead(at, "--at"))
    return Ask(what=NEXT) if before is None else Ask(what=BEFORE, at=ahead(before, "--before"))


def _tell(done: "Skipped", now: datetime) -> None:
    from duly import zones
    from duly.operations.lookup import told

    name, zone = plain(told(done.task)), zones.zone(done.task.definition.zone)
    for run in done.runs:
        out.line(f"skipped {run.id}, which waited: {name} of {full_text(run.due_at, zone)}")
    if done.count and done.first is not None and done.last is not None:
        first = f"{full_text(done.first, zone)} ({away(done.first, now)})"
        if done.count == 1:
            out.lines(wrapped(f"skipped {name} of {first}", out.width()))
        else:
            bounds = f"from {first} to {full_text(done.last, zone)}"
            out.lines(wrapped(f"skipped {many(done.count, 'occurrence')} of {name}, {bounds}", out.width()))
    if done.already:
        hint("nothing is left there to skip" if done.first is None else "it had been skipped before")
