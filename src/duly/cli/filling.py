"""`backfill`: open what a task never ran, in a span of the past."""

from typing import TYPE_CHECKING

import click

from duly.cli import out
from duly.cli.frame import command, settings
from duly.cli.joining import address, hint, hint_nobody, open_for_change
from duly.cli.listing import instant
from duly.cli.moments import full_text
from duly.cli.table import plain, wrapped
from duly.cli.words import many

if TYPE_CHECKING:
    from duly.operations.filling import Filled


@command(
    name="backfill",
    help=(
        "Open a run for each occurrence of a task between two instants that has none, both ends included."
        " They wait behind everything else, and keep nothing from running at its time."
        " Which there are tells the schedule of that time; they are performed by the definition of today."
    ),
    epilog=(
        "duly backfill report --from 7d --to now --dry-run\n"
        "duly backfill report --from '2026-12-01 00:00' --to '2026-12-24 00:00'"
    ),
    params=[
        click.Argument(["task"]),
        click.Option(["--from", "first"], metavar="INSTANT", required=True, help="The beginning, such as 7d ago."),
        click.Option(["--to", "last"], metavar="INSTANT", required=True, help="The end, such as now."),
        click.Option(
            ["--overlap"],
            metavar="O",
            default="queue",
            help="What its runs do while the seats are taken: queue or skip.  [queue]",
        ),
        click.Option(["--anyway"], is_flag=True, help="Run them though the task is paused."),
        click.Option(["--dry-run"], is_flag=True, help="Say what would be opened, and open nothing."),
    ],
)
def backfill(task: str, first: str, last: str, overlap: str, anyway: bool, dry_run: bool) -> None:
    """Fill the past."""
    from duly.operations import filling
    from duly.operations.lookup import caller
    from duly.operations.rail import asking_run

    ask = filling.Ask(first=instant(first, "--from"), last=instant(last, "--to"), overlap=overlap)
    with open_for_change() as store:
        done = filling.backfill(store, task, ask, by=caller(), anyway=anyway, dry_run=dry_run, run=asking_run())
    if settings().as_json:
        out.document(filling.shape(done))
        return
    _tell(done)
    if done.runs:
        hint_nobody(address(), "the runs wait until somebody does")


def _tell(done: "Filled") -> None:
    from duly import zones
    from duly.operations import filling
    from duly.operations.lookup import told

    zone, name = zones.zone(done.task.definition.zone), plain(told(done.task))
    verb = "would open" if done.dry_run else "opened"
    if done.dues:
        span = f"due {full_text(done.dues[0], zone)}"
        if len(done.dues) > 1:
            span = f"from {full_text(done.dues[0], zone)} to {full_text(done.dues[-1], zone)}"
        out.lines(wrapped(f"{verb} {many(len(done.dues), 'run')} of {name}, {span}", out.width()))
    else:
        out.line(f"nothing to fill: every occurrence of {name} there has a run" if done.ran else f"{name} was not due")
    if done.dues and done.ran:
        out.line(f"{many(len(done.ran), 'occurrence')} there {'has' if len(done.ran) == 1 else 'have'} a run already")
    idle = filling.not_started(done)
    if idle:
        hint(f"{many(idle, 'run')} there ended without a start: duly runs --outcome skipped, duly retry RUN")
    if done.ahead:
        which = f"the {done.ahead:,} due" if done.ahead > 1 else "the one due"
        hint(f"{which} after {full_text(done.until, zone)} {'is' if done.ahead == 1 else 'are'} the schedule's own")
