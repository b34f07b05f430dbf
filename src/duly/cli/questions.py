"""`questions` and `answer`: what agents ask while nobody is there, and a person's answers."""

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, cast

import click

from duly.cli import out
from duly.cli.frame import command, settings
from duly.cli.joining import address, hint, hint_nobody, open_for_change, reading
from duly.cli.listing import CURSOR
from duly.cli.moments import away, distance
from duly.cli.table import Cell, Column, plain, render, wrapped
from duly.cli.words import many

if TYPE_CHECKING:
    from duly.core.questions import Question
    from duly.store.store import Store

SHOWN = "50"
COLOURS: Mapping[str, str] = {"open": "yellow", "answered": "green", "expired": "dim"}
COLUMNS = [
    Column(head="ID"),
    Column(head="TASK", cut=True),
    Column(head="ASKED", yields=2),
    Column(head="STATE", yields=1),
    Column(head="WHAT", words=True),
]


@command(
    name="questions",
    help="List what agents have asked, the newest first; open ones wait for an answer, and their runs with them.",
    epilog="duly questions --open\nduly questions --task report",
    params=[
        click.Option(["--task"], metavar="T", help="Only of this task; a removed one by its id."),
        click.Option(["--open", "only_open"], is_flag=True, help="Only those that wait for an answer."),
        click.Option(["-n", "most"], metavar="N", default=SHOWN, help=f"How many.  [{SHOWN}]"),
        CURSOR,
    ],
)
def questions(task: str | None, only_open: bool, most: str, cursor: str | None) -> None:
    """List questions."""
    from duly.cli.previewing import number
    from duly.operations import listing
    from duly.operations import questions as asked

    count = number(most, "-n", listing.PAGE_MOST)
    with reading() as session:
        if session is None:
            if settings().as_json:
                out.document({"items": [], "next": None})
            return
        items, following = asked.listed(session, task=task, only_open=only_open, cursor=cursor, most=count)
        if settings().as_json:
            out.document({"items": items, "next": following})
            return
        if not items:
            hint("no question waits for an answer" if only_open else "nothing was asked")
            return
        out.lines(render(COLUMNS, [_row(item, session.now) for item in items]))
    if out.on_terminal():
        more = f", more: --cursor {following}" if following else ""
        waiting = sum(item["state"] == "open" for item in items)
        said = f", {waiting} open: duly answer ID allow, or duly answer ID --text TEXT" if waiting else ""
        out.line()
        out.line(out.styled(f"{many(len(items), 'question')}{said}{more}", "dim"))


def _row(item: Mapping[str, object], now: datetime) -> list[Cell | str]:
    from duly.operations.lookup import ending

    text = " ".join(str(item["text"]).split())
    options = cast(list[str], item["options"])
    if item["kind"] == "question" and options:
        text += f" ({', '.join(options)})"
    return [
        ending(str(item["id"])),
        Cell(text=plain(str(item["task_name"])), styles=("bold",)),
        away(_instant(item["asked_at"]), now),
        _state(item, now),
        Cell(text=plain(text)),
    ]


def _state(item: Mapping[str, object], now: datetime) -> Cell:
    state = str(item["state"])
    styles = (COLOURS[state],)
    if state == "open":
        left = distance(_instant(item["until"]) - now)
        return Cell(text=f"open for {left}", styles=styles, shorter=("open",))
    if state == "answered":
        short = " ".join(str(item["answer"]).split())
        whom = plain(str(item["answered_by"]))
        return Cell(text=f"{plain(short)} by {whom} {away(_instant(item['answered_at']), now)}", styles=styles)
    return Cell(text=state, styles=styles)


def _instant(text: object) -> datetime:
    return datetime.fromisoformat(str(text))


@command(
    name="answer",
    help="Answer what an agent asks: allow or deny a permission, or a question in words. Its run goes on with that.",
    epilog='duly questions --open\nduly answer 7kq2m9xw allow --note "this once"\nduly answer 7kq2m9xw --text main',
    params=[
        click.Argument(["id"]),
        click.Argument(["choice"], required=False, metavar="[allow|deny]"),
        click.Option(["--text"], metavar="TEXT", help="The answer in words; or @FILE, and @@… begins with @."),
        click.Option(["--note"], metavar="T", help="Why, for the agent and for others to read."),
    ],
)
def answer(id: str, choice: str | None, text: str | None, note: str | None) -> None:  # noqa: A002 - the contract's word
    """Answer a question."""
    from duly.cli.running import text_or_file
    from duly.operations import questions as asked
    from duly.operations import shapes
    from duly.operations.lookup import caller

    given = None if text is None else text_or_file(text, "--text")
    with open_for_change() as store:
        one = asked.answer(store, id, by=caller(), choice=choice, text=given, note=note)
        if settings().as_json:
            out.document(shapes.question(one))
            return
        _tell(store, one)
    if not hint_nobody(address(), "the run goes on when somebody does"):
        from duly.operations.lookup import ending

        hint(f"duly log -f {ending(one.run)}")


def _tell(store: "Store", one: "Question") -> None:
    from duly.operations.listing import name_of

    with store.read() as session:
        task = session.tasks.by_id(one.task)
    said = {"allow": "allowed", "deny": "denied"}.get(str(one.answer), "answered")
    out.lines(wrapped(f"{said} {plain(name_of(task, one.task))}: {plain(' '.join(one.text.split()))}", out.width()))
