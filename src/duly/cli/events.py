"""`emit`: tell of something that happened, and see which tasks it started."""

from typing import TYPE_CHECKING

import click

from duly.cli import out
from duly.cli.frame import command, settings
from duly.cli.joining import address, hint, hint_nobody, open_for_change
from duly.cli.running import text_or_file
from duly.cli.table import Cell, Column, plain, render
from duly.cli.words import told as told_word

if TYPE_CHECKING:
    from duly.operations.events import Emitted, NotOpened, Opened


@command(
    name="emit",
    help=(
        "Emit an event: it is kept, and starts every task that listens to its source, once. The same key again, with"
        " the same data, changes nothing and answers as the first time."
    ),
    epilog='duly emit deploy --key 2026-12-01-1 --data \'{"branch": "main"}\'\nduly emit invoice --data @invoice.json',
    params=[
        click.Argument(["source"], metavar="SOURCE"),
        click.Option(["--key"], metavar="KEY", help="What makes it this very event; without one each is new."),
        click.Option(
            ["--data"], metavar="JSON|@FILE", help="What is known of it; the work reads it in DULY_EVENT_FILE."
        ),
    ],
)
def emit(source: str, key: str | None, data: str | None) -> None:
    """Emit an event."""
    from duly.operations import event_shapes, events
    from duly.operations.lookup import caller

    given = text_or_file(data, "--data") if data is not None else None
    with open_for_change() as store:
        emitted = events.emit(store, source, by=caller(), key=key, data=given)
    if settings().as_json:
        out.document(event_shapes.emitted(emitted))
        return
    _tell(emitted)
    if any(one.run.state == "waiting" for one in emitted.opened):
        hint_nobody(address(), "what it opened waits until somebody does")


def _tell(emitted: "Emitted") -> None:
    event = emitted.event
    named = f"{event.source} {plain(event.key)}" if event.key is not None else event.source
    again = ", emitted before: nothing new was opened" if emitted.again else ""
    out.line(f"{out.styled(named, 'bold')}  {out.styled(event.id, 'dim')}{again}")
    if not emitted.opened and not emitted.not_opened:
        out.line("no task takes it")
        if emitted.near is not None:
            hint(f"there are tasks that listen to {emitted.near}")
        return
    rows = [_opened(one) for one in emitted.opened] + [_not_opened(one) for one in emitted.not_opened]
    columns = [Column(head="TASK", cut=True), Column(head="RUN"), Column(head="STATE"), Column(head="WHY", words=True)]
    out.lines(render(columns, rows))


def _opened(one: "Opened") -> list[Cell | str]:
    from duly.operations.lookup import ending, told

    run = one.run
    word = run.outcome or {"held": "running"}.get(run.state, run.state)
    name = run.task if one.task is None else told(one.task)
    return [Cell(text=plain(name), styles=("bold",)), ending(run.id), told_word(word), ""]


def _not_opened(one: "NotOpened") -> list[Cell | str]:
    from duly.operations.lookup import told

    name = "?" if one.task is None else told(one.task)
    shorter = (one.message.partition(",")[0], *([one.reason] if one.reason else []))
    why = Cell(text=plain(one.message), styles=("yellow",), shorter=tuple(map(plain, shorter)))
    return [Cell(text=plain(name), styles=("bold",)), "", "not opened", why]
