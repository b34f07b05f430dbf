"""`holders` and `fence`: who serves, and whether the fence that a work was given is still the one that counts."""

import os
from datetime import datetime
from typing import cast

import click

from duly.cli import out
from duly.cli.fields import whole_number
from duly.cli.frame import command, settings
from duly.cli.joining import address, find, hint, hint_nobody, reading
from duly.cli.listing import CURSOR, most_of, one_of
from duly.cli.moments import away
from duly.cli.table import Cell, Column, plain, render
from duly.errors import Invalid, Refused

HOLDERS_SHOWN = "50"
NO = 3
"""The exit code of a fence that is not current."""
COLOURS = {"alive": ("green",), "draining": ("yellow",), "gone": ("dim",)}


@command(
    name="holders",
    help="List the processes that serve or served this store, the newest first.",
    epilog="duly holders\nduly holders --state alive --json",
    params=[
        click.Option(["--state"], metavar="S", help="alive, draining or gone."),
        click.Option(["-n", "most"], metavar="N", default=HOLDERS_SHOWN, help=f"How many.  [{HOLDERS_SHOWN}]"),
        CURSOR,
    ],
)
def holders(state: str | None, most: str, cursor: str | None) -> None:
    """List holders."""
    from duly.operations import holding, listing

    one_of(state, holding.STATES, "--state")
    count = most_of(most, listing.PAGE_MOST)
    store = find()
    items: list[dict[str, object]] = []
    following = None
    if store is not None:
        try:
            with store.read() as session:
                items, following = holding.holders(store, session, state=state, cursor=cursor, most=count)
                now = session.now
        finally:
            store.close()
    if settings().as_json:
        out.document({"items": items, "next": following})
        return
    if items:
        _table(items, now)
        if following is not None:
            hint(f"more: duly holders --cursor {following}")
    if store is not None:
        hint_nobody(address(), "nothing runs until somebody does")


def _table(items: list[dict[str, object]], now: datetime) -> None:
    columns = [
        Column(head="HOLDER"),
        Column(head="HOST", cut=True, yields=1),
        Column(head="PID", right=True),
        Column(head="STATE"),
        Column(head="SLOTS", right=True),
        Column(head="BEAT"),
        Column(head="STARTED", yields=2, optional=True),
        Column(head="CLAIMS", right=True, yields=3, optional=True),
        Column(head="VERSION", yields=4, optional=True),
        Column(head="LABELS", words=True, yields=5, optional=True),
    ]
    out.lines(render(columns, [_row(one, now) for one in items]))


def _row(one: dict[str, object], now: datetime) -> list[Cell | str]:
    state = str(one["state"])
    return [
        str(one["id"]),
        plain(str(one["host"])),
        str(one["pid"]),
        Cell(text=state, styles=COLOURS[state]),
        "passive" if one["passive"] else f"{one['running']}/{one['slots']}",
        away(datetime.fromisoformat(str(one["last_beat_at"])), now),
        away(datetime.fromisoformat(str(one["started_at"])), now),
        f"{one['claims']}" + (f" ({one['claims_lost']} lost)" if one["claims_lost"] else ""),
        str(one["version"]),
        plain(", ".join(cast(list[str], one["labels"]))),
    ]


@command(
    name="fence",
    help="Say whether a fence is current: exit 0 if the attempt that was given it still holds its run, 3 if not. "
    "Without arguments a command asks about itself, by what it was told in DULY_RUN, DULY_TASK and DULY_FENCE.",
    epilog="duly fence || exit          # in a script that Duly runs, before what must not happen twice\n"
    "duly fence backup 17",
    params=[click.Argument(["task"], required=False), click.Argument(["fence"], required=False)],
)
def fence(task: str | None, fence: str | None) -> int:
    """Answer whether a fence is current."""
    from duly.operations import holding

    if task is not None and fence is None:
        raise Invalid("it is missing", field="FENCE", hint=f"duly fence {plain(task)} 17")
    word, given = task or os.environ.get("DULY_TASK"), fence or os.environ.get("DULY_FENCE")
    if not word or not given:
        raise Invalid(
            "no TASK and FENCE were given, and DULY_TASK and DULY_FENCE name none", hint="duly fence TASK FENCE"
        )
    number = whole_number(given, "FENCE" if fence else "DULY_FENCE")
    run, project = (None, None) if task else (os.environ.get("DULY_RUN"), os.environ.get("DULY_PROJECT"))
    with reading() as session:
        if session is None:
            raise Refused("unknown_task", f"there is no task {plain(word)}", details={"word": word})
        found = holding.fence(session, holding.fenced_task(session, task=word, project=project, run=run), number)
    if settings().as_json:
        out.document(found)
    else:
        out.line(_answer(found))
    settings().code = 0 if found["current"] else NO
    return settings().code


def _answer(found: dict[str, object]) -> str:
    name = plain(str(found["task_name"]))
    if found["current"]:
        return f"fence {found['fence']} of {name} is current: {found['run']}, attempt {found['attempt']}"
    if found["reason"] == "unknown_id":
        return f"fence {found['fence']} of {name} was never given; the highest is {found['highest']}"
    if found["reason"] == "already_ended":
        return f"fence {found['fence']} of {name} is over: {found['run']} {str(found['outcome']).replace('_', ' ')}"
    return f"fence {found['fence']} of {name} is over; the highest is {found['highest']}"
