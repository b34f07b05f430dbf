"""The list of `why --since`: what did not run as planned, a line each, counted where many had one fate."""

from typing import TYPE_CHECKING

from duly.cli import out
from duly.cli.moments import full_text
from duly.cli.table import Cell, Column, plain, render, wrapped
from duly.cli.why_rows import fate_colour, fate_mark
from duly.core.figures import Wall, local_text
from duly.core.spans import write_instant
from duly.operations import why_answer
from duly.operations.lookup import ending, told

if TYPE_CHECKING:
    from duly.operations.why_since import Line, Since


def listed(found: "Since") -> list[str]:
    """Lay out what did not run as planned since a moment."""
    name, since = plain(told(found.task)), full_text(found.since, found.zone)
    if not found.lines:
        text = f"{fate_mark('succeeded')} {name}: all {found.due:,} instants since {since} ran as planned"
        return wrapped(text, out.width())
    counted = f"of {found.due:,} instants since {since}, {found.count():,} did not run as planned"
    head = f"{fate_mark('missed')} {name}: {counted}"
    columns = [
        Column(head="DUE", yields=1),
        Column(head="TO", yields=3),
        Column(head="TIMES", right=True),
        Column(head="FATE"),
        Column(head="RUN", yields=4, optional=True),
        Column(head="WHY", words=True, yields=2),
    ]
    rows = [_line(line, found) for line in found.lines]
    more = [f"more: --since {write_instant(found.following)}"] if found.following is not None else []
    return [*wrapped(head, out.width()), *render(columns, rows), *more]


def _line(line: "Line", found: "Since") -> list[Cell | str]:
    wall = Wall(zone=found.zone, beside=line.first)
    first = full_text(line.first, found.zone)
    last = "" if line.count == 1 else local_text(line.last, wall)
    said = why_answer.line_text(line, wall) or ""
    word = line.fate.replace("_", " ")
    # An exit status stands at the beginning, so that what is cut is only what the command said.
    shorter = () if line.reason == "exit_status" else (line.reason or "late",)
    return [
        Cell(text=first, shorter=(first[4:], first[4:20])),
        Cell(text=last, shorter=(last[4:20],) if len(last) > 20 else ()),
        f"{line.count:,}",
        Cell(text=word, styles=fate_colour(line.fate)),
        ending(line.run or line.missed or ""),
        Cell(text=plain(said.splitlines()[0] if said else ""), shorter=shorter),
    ]
