"""`ledger`: the story of every occurrence and run, and on as it is written."""

from datetime import timedelta
from typing import TYPE_CHECKING

import click

from duly import clock
from duly.cli import out
from duly.cli.frame import command, settings
from duly.cli.joining import find
from duly.cli.listing import CURSOR, instant
from duly.cli.moments import MINUTE, distance
from duly.cli.table import Cell, Column, cells_of, fitted, plain, render
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
TELLING = (
    *("source", "key", "cause", "outcome", "exit_code", "late_by_s", "why", "from", "next", "scope", "note", "version"),
    *("count", "not_before", "refused", "text", "answer", "said", "changed", "limit", "project", "defaults"),
)
LATE_LEAST_S = 0.001
NARROW = 110
"""A terminal with fewer columns is followed in shorter words."""
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
        out.lines(render(COLUMNS, [_row(one, names, session.now) for one in found]))
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
    names, room = _Names(session), out.width()
    widths = FOLLOW_WIDTHS if room >= NARROW else NARROW_WIDTHS
    rest = room - sum(widths) - len(GAP) * len(widths)
    for one in found:
        # Lines come one at a time here, so columns keep widths of their own.
        parts = []
        for cell, column, width in zip(_row(one, names, session.now), COLUMNS, (*widths, rest), strict=True):
            text = cell.text if room >= NARROW else fitted(cell, column, width)
            fill = "" if column is COLUMNS[-1] else " " * max(0, width - cells_of(text))
            parts.append(out.styled(text, *cell.styles) + fill)
        out.line(GAP.join(parts).rstrip())
    out.flush()


COLUMNS = [
    Column(head="AT", yields=2),
    Column(head="KIND"),
    Column(head="TASK", cut=True),
    Column(head="RUN"),
    Column(head="WHY"),
    Column(head="DETAILS", words=True, yields=1),
]
FOLLOW_WIDTHS = (24, 12, 20, 8, 16)
NARROW_WIDTHS = (15, 10, 12, 8, 11)


def _row(written: "Written", names: "_Names", now: "datetime") -> list[Cell]:
    from duly.operations.lookup import ending

    entry = written.entry
    return [
        _at(entry.at, now),
        Cell(text=entry.kind, styles=("bold",)),
        Cell(text=plain(names.of(entry.task))),
        Cell(text=ending(entry.run) if entry.run else ""),
        Cell(text=entry.reason or ""),
        _details(entry),
    ]


def _at(at: "datetime", now: "datetime") -> Cell:
    whole = f"{at.year:04d}-{at:%m-%d %H:%M:%S}.{at.microsecond // 1000:03d}Z"
    if at.date() == now.date():
        return Cell(text=whole, shorter=(whole[11:],))
    return Cell(text=whole, shorter=(f"{at:%m-%d %H:%M:%S}Z",) if at.year == now.year else (f"{whole[:16]}Z",))


def _details(entry: "Entry") -> Cell:
    from duly.core.spans import write_instant

    long = [] if entry.count is None else [many(entry.count, "time")]
    short = list(long)
    if entry.until_at is not None:
        long.append(f"until {write_instant(entry.until_at.replace(microsecond=0))}")
        same_day = entry.until_at.date() == entry.at.date()
        short.append(f"until {entry.until_at:%H:%MZ}" if same_day else f"until {entry.until_at:%m-%d %H:%MZ}")
    if entry.by is not None:
        long.append(f"by {entry.by}")
        short.append(f"by {entry.by}")
    for name in TELLING:
        value = entry.details.get(name)
        if _tells(value):
            long.append(_detail(name, value))
            short += _short(name, value, entry)
    return Cell(text=plain(", ".join(long)), shorter=(plain(", ".join(short)),))


def _tells(value: object) -> bool:
    return value not in (None, "", 0, []) and not (isinstance(value, float) and value < LATE_LEAST_S)


def _detail(name: str, value: object) -> str:
    told = name.removesuffix("_s").replace("_", " ")
    if isinstance(value, list):
        return f"{told} {' '.join(str(one) for one in value)}"
    if isinstance(value, float) and name.endswith("_s"):
        return f"{told} {value:.3f}s" if value < MINUTE else f"{told} {distance(timedelta(seconds=value))}"
    return str(value).replace("_", " ") if name == "outcome" else f"{told} {value}"


def _short(name: str, value: object, entry: "Entry") -> list[str]:
    if name == "late_by_s" and isinstance(value, float):
        return [f"{value * 1000:.0f}ms late" if value < 1 else f"{distance(timedelta(seconds=value))} late"]
    if name in {"version", "scope", "not_before"} or (name == "outcome" and entry.details.get("exit_code")):
        return []  # an exit status says of itself that the outcome was a failure
    return [f"exit {value}" if name == "exit_code" else _detail(name, value)]


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
