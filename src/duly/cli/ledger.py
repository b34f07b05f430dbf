"""`ledger`: the story of every occurrence and run, and on as it is written."""

from typing import TYPE_CHECKING

import click

from duly import clock
from duly.cli import out
from duly.cli.frame import command, settings
from duly.cli.joining import find
from duly.cli.listing import CURSOR, instant
from duly.cli.table import Cell, Column, cells_of, plain, render
from duly.cli.words import many

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from duly.core.run import Entry
    from duly.store.rows import Written
    from duly.store.store import Session, Store

LOOK_EVERY_S = 0.2
SHOWN = 50
FOLLOWED_FROM = 10
PAGE = 1_000
TELLING = ("late_by_s", "exit_code", "outcome", "why", "from", "next", "scope", "note", "version", "count")
GAP = "  "


@command(
    name="ledger",
    help="Tell the story of every occurrence and run, the oldest entry first.",
    epilog="duly ledger --task backup --since 7d\nduly ledger -f --json",
    params=[
        click.Option(["--task"], metavar="T", help="Only of this task; a removed one by its id."),
        click.Option(["--since"], metavar="I", help="From this instant on, such as 7d."),
        click.Option(
            ["-n", "most"], metavar="N", help=f"The newest N.  [{SHOWN}; --json: pages of {PAGE} from the start]"
        ),
        click.Option(["-f", "--follow"], is_flag=True, help="Go on printing what is written."),
        CURSOR,
    ],
)
def ledger(task: str | None, since: str | None, most: str | None, follow: bool, cursor: str | None) -> None:
    """Print ledger entries."""
    from duly.cli.previewing import number
    from duly.operations import listing

    count = number(most, "-n", listing.PAGE_MOST) if most is not None else None
    start = instant(since, "--since") if since is not None else None
    store = find()
    if store is None:
        if settings().as_json and not follow:
            out.document({"items": [], "next": None})
        return
    try:
        if follow:
            _follow(store, task, start, count)
        else:
            _once(store, task, start, count, cursor)
    finally:
        store.close()


def _once(store: "Store", task: str | None, since: "datetime | None", most: int | None, cursor: str | None) -> None:
    from duly.operations import listing, shapes

    with store.read() as session:
        following: int | None = None
        if cursor is not None or (most is None and (settings().as_json or since is not None)):
            after = listing.seq_cursor(cursor)
            found, following = listing.ledger(session, task=task, since=since, after=after, most=most or PAGE)
        else:
            found = listing.newest(session, task=task, since=since, most=most or SHOWN)
        if settings().as_json:
            told = None if following is None else str(following)
            out.document(shapes.listing([shapes.entry(one) for one in found], told))
            return
        names = _Names(session)
        out.lines(render(COLUMNS, [_row(one, names) for one in found]))
    if out.on_terminal():
        out.line()
        more = f", more: --cursor {following}" if following is not None else ""
        out.line(out.styled(many(len(found), "entry", "entries") + more, "dim"))


def _follow(store: "Store", task: str | None, since: "datetime | None", most: int | None) -> None:
    from duly.operations import listing

    store.changed()  # what is written from here on shows itself, also while the first entries are read
    with store.read() as session:
        found = listing.newest(
            session, task=task, since=since, most=most or (FOLLOWED_FROM if since is None else listing.PAGE_MOST)
        )
        only = None if task is None else listing.ledger_task(session, task)
        seq = max(session.ledger.last(), *(one.seq for one in found)) if found else session.ledger.last()
        _print(session, found)
    while True:
        clock.pause(LOOK_EVERY_S)
        store.check_here()
        if not store.changed():
            continue
        more = True
        while more:
            with store.read() as session:
                found = session.ledger.after(seq, task=only, most=PAGE)
                _print(session, found)
            more = len(found) == PAGE
            seq = found[-1].seq if found else seq


def _print(session: "Session", found: "Sequence[Written]") -> None:
    if settings().as_json:
        from duly.operations import shapes

        for one in found:
            out.entry(shapes.entry(one))
        return
    names = _Names(session)
    for one in found:
        # Lines come one at a time here, so columns keep widths of their own.
        cells = [cell if isinstance(cell, Cell) else Cell(text=cell) for cell in _row(one, names)]
        parts = [
            out.styled(cell.text, *cell.styles) + " " * max(0, width - cells_of(cell.text))
            for cell, width in zip(cells, FOLLOW_WIDTHS, strict=True)
        ]
        out.line(GAP.join(parts).rstrip())
    out.flush()


COLUMNS = [
    Column(head="AT"),
    Column(head="KIND"),
    Column(head="TASK", cut=True),
    Column(head="RUN"),
    Column(head="WHY"),
    Column(head="DETAILS", cut=True),
]
FOLLOW_WIDTHS = (24, 12, 16, 8, 16, 0)


def _row(written: "Written", names: "_Names") -> list[Cell | str]:
    from duly.operations.lookup import ending

    entry = written.entry
    return [
        f"{entry.at:%Y-%m-%d %H:%M:%S}.{entry.at.microsecond // 1000:03d}Z",
        Cell(text=entry.kind, styles=("bold",)),
        plain(names.of(entry.task)),
        ending(entry.run) if entry.run else "",
        entry.reason or "",
        plain(_details(entry)),
    ]


def _details(entry: "Entry") -> str:
    from duly.core.spans import write_instant

    parts = [] if entry.count is None else [f"{entry.count} times"]
    if entry.until_at is not None:
        parts.append(f"until {write_instant(entry.until_at)}")
    if entry.by is not None:
        parts.append(f"by {entry.by}")
    parts += [_detail(name, entry.details[name]) for name in TELLING if entry.details.get(name) not in (None, "", 0)]
    return ", ".join(parts)


def _detail(name: str, value: object) -> str:
    told = name.removesuffix("_s").replace("_", " ")
    return f"{told} {value:.3f}s" if name.endswith("_s") and isinstance(value, float) else f"{told} {value}"


class _Names:
    """Names of tasks by their ids, each looked up once."""

    def __init__(self, session: "Session") -> None:
        self._session = session
        self._known: dict[str, str] = {}

    def of(self, id_: str | None) -> str:
        """Give the name of a task, its id where nothing else is known, nothing for nothing."""
        if id_ is None:
            return ""
        if id_ not in self._known:
            from duly.operations.listing import name_of

            self._known[id_] = name_of(self._session.tasks.by_id(id_), id_)
        return self._known[id_]
