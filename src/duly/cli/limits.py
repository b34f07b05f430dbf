"""`limit set`, `limit list`, `limit remove`: how many runs may be live, and how many may start in a span."""

from typing import TYPE_CHECKING

import click

from duly.cli import out
from duly.cli.fields import whole_number
from duly.cli.frame import Verbs, command, settings
from duly.cli.joining import hint, open_for_change, reading
from duly.cli.table import Cell, Column, plain, render
from duly.cli.words import many

if TYPE_CHECKING:
    from duly.core.limits import Limit
    from duly.operations.limits import Shown

KEY = click.Argument(["key"], metavar="KEY")


@command(
    name="set",
    help="Set how many runs of all tasks that name KEY may be live at once; a task's weight counts that much.",
    epilog=(
        "duly limit set gpu 3\nduly limit set api 5 --per 10/1m\n"
        "duly add train --when 'daily 02:00' --limit gpu=2 -- ./train"
    ),
    params=[
        KEY,
        click.Argument(["most"], metavar="N"),
        click.Option(["--per"], metavar="RATE", help="At most so many starts in a span as well, such as 10/1m."),
    ],
)
def set_(key: str, most: str, per: str | None) -> None:
    """Set a limit."""
    from duly.operations import limits
    from duly.operations.lookup import caller

    rate, rate_for = limits.read_rate(per, "--per") if per is not None else (None, None)
    with open_for_change() as store:
        done = limits.set_limit(store, key, whole_number(most, "N"), rate=rate, rate_for=rate_for, by=caller())
        with store.read() as session:
            tasks = len(session.crowd.named_by(done.key))
    if settings().as_json:
        _document(done, tasks)
        return
    out.line(f"limit {plain(done.key)} is {_figures(done)} ({many(tasks, 'task')}, {done.used} taken)")
    if not tasks:
        hint(f"no task names it yet: duly edit TASK --limit {plain(done.key)}")


@command(name="list", help="List the limits: what each allows, and what is taken of it.")
def list_() -> None:
    """List the limits."""
    from duly.operations import limits, shapes

    with reading() as session:
        found: list[Shown] = [] if session is None else limits.limits(session)
    if settings().as_json:
        out.document({"items": [shapes.limit(one.limit, tasks=one.tasks) for one in found], "next": None})
        return
    if not found:
        hint("no limit is set: duly limit set KEY N")
        return
    columns = [
        Column(head="LIMIT", cut=True),
        Column(head="TAKEN", right=True),
        Column(head="OF", right=True),
        Column(head="RATE"),
        Column(head="TASKS", right=True),
        Column(head="SET", yields=1),
    ]
    out.lines(render(columns, [_row(one) for one in found]))


@command(name="remove", help="Set a limit back to what it is unset: 1, and 2 for agents:PROJECT.", params=[KEY])
def remove(key: str) -> None:
    """Remove a limit."""
    from duly.operations import limits, shapes
    from duly.operations.lookup import caller

    with open_for_change() as store:
        gone = limits.remove_limit(store, key, by=caller())
    if settings().as_json:
        out.document(shapes.limit(gone, tasks=0))
        return
    out.line(f"limit {plain(gone.key)} is no longer set")


limit = Verbs(
    "limit", set_, list_, remove, help="Limits over all tasks that name them: live runs, and starts in a span."
)


def _document(limit_: "Limit", tasks: int) -> None:
    from duly.operations import shapes

    out.document(shapes.limit(limit_, tasks=tasks))


def _figures(limit_: "Limit") -> str:
    rate = _rate_text(limit_)
    return f"{limit_.most} at once" + (f", {rate}" if rate else "")


def _rate_text(limit_: "Limit") -> str:
    from duly.core.spans import write_span

    if limit_.rate is None or limit_.rate_for is None:
        return ""
    return f"{limit_.rate}/{write_span(limit_.rate_for)}"


def _row(one: "Shown") -> list[Cell | str]:
    styles = ("yellow",) if one.limit.used >= one.limit.most else ()
    return [
        plain(one.limit.key),
        Cell(text=str(one.limit.used), styles=styles),
        str(one.limit.most),
        _rate_text(one.limit),
        str(one.tasks),
        "not set" if one.limit.set_at is None else f"by {plain(one.limit.set_by or '')}",
    ]
