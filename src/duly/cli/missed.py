"""`missed`, `accept`, `decline`: what was found too late, and a person's answers to what is offered."""

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

import click

from duly.cli import out
from duly.cli.frame import command, settings
from duly.cli.joining import address, hint, hint_nobody, open_for_change, reading
from duly.cli.listing import CURSOR
from duly.cli.moments import away, clock_text, distance, full_text
from duly.cli.table import Cell, Column, plain, render, wrapped
from duly.cli.words import many
from duly.cli.words import told as told_word

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from duly.core.run import Missed
    from duly.core.task import Task
    from duly.operations.missed import Accepted
    from duly.store.store import Session, Store

SHOWN = "50"
COLOURS: Mapping[str, str] = {"open": "yellow", "accepted": "green", "declined": "dim", "expired": "dim"}
COLUMNS = [
    Column(head="ID"),
    Column(head="TASK", cut=True),
    Column(head="COUNT", right=True),
    Column(head="DUE", yields=2),
    Column(head="STATE", yields=1),
    Column(head="WHY", words=True, yields=3),
]


@command(
    name="missed",
    help="List what was found too late to open by itself, the newest first; open ones wait for accept or decline.",
    epilog="duly missed --open\nduly missed --task report",
    params=[
        click.Option(["--task"], metavar="T", help="Only of this task; a removed one by its id."),
        click.Option(["--open", "only_open"], is_flag=True, help="Only offers that wait for an answer."),
        click.Option(["-n", "most"], metavar="N", default=SHOWN, help=f"How many.  [{SHOWN}]"),
        CURSOR,
    ],
)
def missed(task: str | None, only_open: bool, most: str, cursor: str | None) -> None:
    """List missed occurrences."""
    from duly.cli.previewing import number
    from duly.operations import listing
    from duly.operations import missed as missed_ones

    count = number(most, "-n", listing.PAGE_MOST)
    with reading() as session:
        if session is None:
            if settings().as_json:
                out.document({"items": [], "next": None})
            return
        items, following = missed_ones.listed(session, task=task, only_open=only_open, cursor=cursor, most=count)
        if settings().as_json:
            out.document({"items": items, "next": following})
            return
        if not items:
            hint("no offer waits for an answer" if only_open else "nothing was missed")
            return
        zones_of = _zones(session, items)
        out.lines(render(COLUMNS, [_row(item, zones_of[str(item["task"])], session.now) for item in items]))
    if out.on_terminal():
        more = f", more: --cursor {following}" if following else ""
        waiting = sum(item["state"] == "open" for item in items)
        said = f", {waiting} open: duly accept ID, or duly decline ID" if waiting else ""
        out.line()
        out.line(out.styled(f"{many(len(items), 'record')}{said}{more}", "dim"))


def _zones(session: "Session", items: list[dict[str, object]]) -> dict[str, "ZoneInfo | None"]:
    found = session.tasks.by_ids({str(item["task"]) for item in items})
    return {str(item["task"]): _zone(found.get(str(item["task"]))) for item in items}


def _zone(task: "Task | None") -> "ZoneInfo | None":
    from duly import zones

    return None if task is None or task.broken is not None else zones.zone(task.definition.zone)


def _row(item: Mapping[str, object], zone: "ZoneInfo | None", now: datetime) -> list[Cell | str]:
    from duly.core.reasons import NO_START
    from duly.operations.lookup import ending

    reason = str(item["reason"])
    return [
        ending(str(item["id"])),
        Cell(text=plain(str(item["task_name"])), styles=("bold",)),
        f"{item['count']:,}",
        _due(item, zone, now),
        _state(item, now),
        Cell(text=NO_START.get(reason, reason), shorter=(reason,)),
    ]


def _due(item: Mapping[str, object], zone: "ZoneInfo | None", now: datetime) -> Cell:
    """Tell the newest first, because that is the one that accepting runs."""
    first, last = _instant(item["due_at"]), _instant(item["until_at"])
    text = f"{clock_text(last, zone, now)}, {away(last, now)}"
    if first == last:
        return Cell(text=text, shorter=(away(last, now),))
    return Cell(text=f"{text}, back to {clock_text(first, zone, now)}", shorter=(text, away(last, now)))


def _state(item: Mapping[str, object], now: datetime) -> Cell:
    state = str(item["state"])
    styles = (COLOURS[state],) if state in COLOURS else ()
    if state == "open" and item["expires_at"] is not None:
        left = distance(_instant(item["expires_at"]) - now)
        return Cell(text=f"open for {left}", styles=styles, shorter=("open",))
    if state in {"accepted", "declined"}:
        when = away(_instant(item["decided_at"]), now)
        whom = plain(str(item["decided_by"]))
        return Cell(text=f"{state} by {whom} {when}", styles=styles, shorter=(f"{state} by {whom}", state))
    return Cell(text=state, styles=styles)


def _instant(text: object) -> datetime:
    return datetime.fromisoformat(str(text))


@command(
    name="accept",
    help="Run a missed occurrence all the same, of a count the newest. It waits for its seat and its limits.",
    epilog="duly missed --open\nduly accept 7kq2m9xw --wait",
    params=[
        click.Argument(["id"]),
        click.Option(["--anyway"], is_flag=True, help="Run it though its task is paused."),
        click.Option(["--wait"], is_flag=True, help="Wait for the end."),
    ],
)
def accept(id: str, anyway: bool, wait: bool) -> int:  # noqa: A002 - the contract's word
    """Accept a missed occurrence."""
    from duly.cli import running
    from duly.operations import missed as missed_ones
    from duly.operations.lookup import caller, ending
    from duly.operations.rail import asking_run

    with open_for_change() as store:
        done = missed_ones.accept(store, id, by=caller(), anyway=anyway, run=asking_run())
        if wait:
            hint_nobody(address(), "the run waits until somebody does")
            return running.wait_for(store, done.run)
        _show_accepted(store, done)
    if not hint_nobody(address(), "the run waits until somebody does"):
        hint(f"duly log -f {ending(done.run.id)}")
    return 0


def _show_accepted(store: "Store", done: "Accepted") -> None:
    from duly.operations import listing, shapes
    from duly.operations.lookup import told

    with store.read() as session:
        task = session.tasks.by_id(done.run.task)
        assert task is not None
        if settings().as_json:
            out.document(listing.run_shape(session, done.run, task) | {"missed": shapes.missed(done.missed)})
            return
        one = done.missed
        which = f", the newest of {one.count:,}" if one.count > 1 else ""
        goes_on = f"goes on after {many(done.run.attempt, 'attempt')}: " if done.run.attempt else ""
        due = f"{full_text(one.until_at, _zone(task))} ({away(one.until_at, session.now)})"
        out.line(f"{done.run.id}  {told_word('waiting')}")
        out.lines(wrapped(f"{goes_on}{plain(told(task))} of {due}{which}", out.width()))


@command(
    name="decline",
    help="Say that an offer is not wanted: it does not run. Who said so and why is kept.",
    params=[click.Argument(["id"]), click.Option(["--note"], metavar="T", help="Why, for others to read.")],
)
def decline(id: str, note: str | None) -> None:  # noqa: A002 - the contract's word
    """Decline an offer."""
    from duly.operations import missed as missed_ones
    from duly.operations import shapes
    from duly.operations.lookup import caller

    with open_for_change() as store:
        one = missed_ones.decline(store, id, by=caller(), note=note)
        if settings().as_json:
            out.document(shapes.missed(one))
            return
        out.line(f"declined {_what(store, one)}")


def _what(store: "Store", one: "Missed") -> str:
    from duly.operations.listing import name_of

    with store.read() as session:
        task = session.tasks.by_id(one.task)
        newest = full_text(one.until_at, _zone(task))
    name = plain(name_of(task, one.task))
    return f"{name} of {newest}" if one.count == 1 else f"{many(one.count, 'occurrence')} of {name}, until {newest}"
