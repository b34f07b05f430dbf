"""`list` and `runs`: tables of tasks and of runs."""

from datetime import datetime
from typing import TYPE_CHECKING

import click

from duly.cli import out
from duly.cli.frame import command, settings
from duly.cli.joining import hint, hint_nobody, reading
from duly.cli.moments import away, clock_text, distance, took
from duly.cli.table import Cell, Column, plain, render
from duly.cli.words import colour, many, mark

if TYPE_CHECKING:
    from duly.operations.listing import Listed
    from duly.store.store import Session

PAGE = 1_000
# From so many columns on, instants stand beside distances; below so many, only what came of the last run is told.
WIDE, NARROW = 100, 70
RUNS_SHOWN = "50"
CURSOR = click.Option(["--cursor"], metavar="C", help="Go on where `next` of a --json list ended.")


@command(
    name="list",
    help="List the tasks: when they are due, what came of the last run, how they stand.",
    epilog="duly list\nduly list --json | jq '.items[].name'",
    params=[CURSOR, click.Option(["-n", "most"], metavar="N", help="How many at most.  [all; --json: pages of 1000]")],
)
def list_(cursor: str | None, most: str | None) -> None:
    """List tasks."""
    from duly.operations import listing

    limit = _most(most, listing.PAGE_MOST) if most is not None else None
    with reading() as session:
        if session is None:
            if settings().as_json:
                out.document({"items": [], "next": None})
            return
        if settings().as_json:
            page, following = listing.tasks(session, cursor=cursor, most=limit or PAGE)
            out.document({"items": [listing.shape(one) for one in page], "next": following})
            return
        found: list[Listed] = []
        while True:
            page, cursor = listing.tasks(session, cursor=cursor, most=limit or PAGE)
            found += page
            if limit is not None or cursor is None:
                break
        _table(session, found, cursor)


def _table(session: "Session", found: "list[Listed]", following: str | None) -> None:
    from duly.cli.joining import address

    if not found:
        hint("there are no tasks yet; a first one: duly add hello --when 'every 1m' -- echo hello")
        return
    columns = [
        Column(head="NAME", cut=True),
        Column(head="WHEN", cut=True),
        Column(head="NEXT", cut=True),
        Column(head="LAST", cut=True),
        Column(head="STATE"),
    ]
    out.lines(render(columns, [_row(one, session.now) for one in found]))
    if out.on_terminal():
        out.line()
        out.line(out.styled(_footer(found, following), "dim"))
    hint_nobody(address(), "nothing runs until somebody does")


def _row(one: "Listed", now: datetime) -> list[Cell | str]:
    from duly.operations.lookup import told

    task = one.task
    return [
        Cell(text=plain(told(task)), styles=("bold",)),
        "(broken)" if task.broken else plain(_when(one)),
        _next(one, now),
        _last(one, now),
        state(one),
    ]


def _when(one: "Listed") -> str:
    from duly.core.triggers import Every
    from duly.core.words import describe, describe_span

    # The anchor of an interval is told where there is room for it.
    said = (
        f"every {describe_span(trigger.span)}" if isinstance(trigger, Every) else describe(trigger)
        for trigger in one.task.definition.triggers
    )
    return "; ".join(said) or "by hand only"


def _next(one: "Listed", now: datetime) -> str:
    from duly import zones

    at = one.task.next_start_at
    if at is None or one.task.broken:
        return "–" if mark("") == "·" else "-"
    if at <= now:
        return f"due {away(at, now)}"
    if out.width() < WIDE:
        return away(at, now)
    return f"{away(at, now)} ({clock_text(at, zones.zone(one.task.definition.zone), now)})"


def _last(one: "Listed", now: datetime) -> Cell:
    if one.live is not None:
        since = one.live.started_at or one.live.opened_at
        word = "running" if one.live.state == "held" else one.live.state
        return Cell(text=f"{mark(word)} {word} for {distance(now - since)}", styles=colour(word))
    run = one.last_run
    if run is None or run.outcome is None:
        return Cell(text="never ran", styles=("dim",))
    ended = run.ended_at or run.opened_at
    ago = f" {away(ended, now)}" if out.width() >= NARROW else ""
    return Cell(text=f"{mark(run.outcome)} {run.outcome.replace('_', ' ')}{ago}", styles=colour(run.outcome))


def state(one: "Listed") -> Cell:
    """Tell how a task stands in one word."""
    task = one.task
    if task.broken:
        return Cell(text="broken", styles=("red",))
    if one.pauses:
        return Cell(text="paused", styles=("yellow",))
    if not task.definition.enabled:
        return Cell(text="disabled", styles=("yellow",))
    if task.done:
        return Cell(text="done", styles=("dim",))
    return Cell(text="on", styles=("green",))


def _footer(found: "list[Listed]", following: str | None) -> str:
    parts = [many(len(found), "task")]
    for word in ("paused", "disabled", "broken", "done"):
        count = sum(state(one).text == word for one in found)
        if count:
            parts.append(f"{count} {word}")
    if following is not None:
        parts.append(f"more: duly list --cursor {following}")
    return ", ".join(parts)


@command(
    name="runs",
    help="List the runs, the newest first.",
    epilog="duly runs --task backup --outcome failed --since 7d\nduly runs --state waiting",
    params=[
        click.Option(["--task"], metavar="T", help="Only of this task."),
        click.Option(["--state"], metavar="S", help="waiting, running, parked or ended."),
        click.Option(["--outcome"], metavar="O", help="succeeded, failed, timed_out, cancelled, abandoned or skipped."),
        click.Option(
            ["--since"], metavar="I", help="Opened at or after this instant, such as 7d or 2026-12-01T08:00:00Z."
        ),
        click.Option(["-n", "most"], metavar="N", default=RUNS_SHOWN, help=f"How many.  [{RUNS_SHOWN}]"),
        CURSOR,
    ],
)
def runs(
    task: str | None, state: str | None, outcome: str | None, since: str | None, most: str, cursor: str | None
) -> None:
    """List runs."""
    from duly.operations import listing

    _one_of(state, listing.STATES, "--state")
    _one_of(outcome, listing.OUTCOMES, "--outcome")
    count = _most(most, listing.PAGE_MOST)
    start = instant(since, "--since") if since is not None else None
    with reading() as session:
        if session is None:
            if settings().as_json:
                out.document({"items": [], "next": None})
            return
        items, following = listing.runs(
            session, task=task, state=state, outcome=outcome, since=start, cursor=cursor, most=count
        )
        if settings().as_json:
            out.document({"items": items, "next": following})
            return
        _runs_table(items, following, session.now)


def _runs_table(items: list[dict[str, object]], following: str | None, now: datetime) -> None:
    from duly.operations.lookup import ending

    if not items:
        hint("there are no runs; `duly run TASK` makes one")
        return
    columns = [
        Column(head="RUN"),
        Column(head="TASK", cut=True),
        Column(head="DUE", cut=True),
        Column(head="STATE"),
        Column(head="TOOK", right=True),
        Column(head="BY"),
        Column(head="WHY", cut=True),
    ]
    rows: list[list[Cell | str]] = []
    for run in items:
        word = str(run["outcome"] or run["state"])
        due = datetime.fromisoformat(str(run["due_at"]))
        rows.append(
            [
                ending(str(run["id"])),
                Cell(text=plain(_name(run)), styles=("bold",)),
                away(due, now),
                Cell(text=f"{mark(word)} {word.replace('_', ' ')}", styles=colour(word)),
                _took(run, now),
                str(run["opened_by"]).replace("_", " "),
                plain(why(run)),
            ]
        )
    out.lines(render(columns, rows))
    if out.on_terminal():
        more = f", more: --cursor {following}" if following else ""
        out.line()
        out.line(out.styled(f"{many(len(items), 'run')}{more}", "dim"))


def _name(run: dict[str, object]) -> str:
    name = str(run["task_name"] or run["task"])
    return name if run["project"] in (None, "default") else f"{run['project']}/{name}"


def _took(run: dict[str, object], now: datetime) -> str:
    if run["started_at"] is None:
        return ""
    started = datetime.fromisoformat(str(run["started_at"]))
    ended = datetime.fromisoformat(str(run["ended_at"])) if run["ended_at"] else now
    return took(ended - started)


def why(run: dict[str, object]) -> str:
    """Tell in a few words why a run stands as it does."""
    waits = run["waiting_for"]
    if isinstance(waits, dict):
        return f"waits for a {waits['what']}" if waits["what"] != "delay" else f"not before {waits['until']}"
    if run["outcome"] in (None, "succeeded"):
        return ""
    return str(run["error"] or run["reason"] or "").splitlines()[0] if run["error"] or run["reason"] else ""


def instant(text: str, option: str) -> datetime:
    """Read an instant that lies behind: `7d` is seven days ago."""
    from duly import clock, zones
    from duly.core.spans import read_instant

    return read_instant(text, now=clock.now(), zone=zones.zone(zones.machine_zone() or "UTC"), field=option)


def _most(text: str, most: int) -> int:
    from duly.cli.previewing import number

    return number(text, "-n", most)


def _one_of(word: str | None, allowed: tuple[str, ...], option: str) -> None:
    from duly.core.reading import nearest, shown
    from duly.errors import Invalid

    if word is not None and word not in allowed:
        raise Invalid(
            f"{shown(word)} is not one of {', '.join(allowed)}",
            field=option,
            text=word,
            at=0,
            hint=f"{option} {nearest(word, allowed) or allowed[0]}",
        )
