"""`list` and `runs`: tables of tasks and of runs."""

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

import click

from duly.cli import out
from duly.cli.frame import command, settings
from duly.cli.joining import hint, hint_nobody, reading
from duly.cli.moments import away, clock_text, distance, took
from duly.cli.table import Cell, Column, cells_of, plain, render
from duly.cli.words import colour, failure, many, mark
from duly.cli.words import told as told_word

if TYPE_CHECKING:
    from duly.core.triggers import Trigger
    from duly.operations.listing import Listed
    from duly.store.store import Session

PAGE = 1_000
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

    limit = most_of(most, listing.PAGE_MOST) if most is not None else None
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
        Column(head="WHEN", words=True, yields=1, enough=40),
        Column(head="NEXT", words=True, yields=3),
        Column(head="LAST", words=True, yields=2),
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
        "(broken)" if task.broken else _when(one),
        _next(one, now),
        _last(one, now),
        state(one),
    ]


def _when(one: "Listed") -> Cell:
    triggers = one.task.definition.triggers
    if not triggers:
        return Cell(text="by hand only", shorter=("by hand",))
    said = [_said(trigger) for trigger in triggers]
    forms = ["; ".join(form) for form in zip(*said, strict=True)]
    return Cell(text=forms[0], shorter=tuple(form for form in forms[1:] if cells_of(form) < cells_of(forms[0])))


def _said(trigger: "Trigger") -> tuple[str, str, str]:
    """Say a trigger in words, as it is written, and in the fewest letters that still tell it."""
    from duly.core.spans import write_span
    from duly.core.triggers import Cron, Every, On, Once
    from duly.core.when import write
    from duly.core.words import describe, describe_span

    if isinstance(trigger, Every):
        # The anchor of an interval stands in `duly show`; here it would only push what matters aside.
        written = f"every {write_span(trigger.span)}"
        return f"every {describe_span(trigger.span)}", written, written
    if isinstance(trigger, On):
        return describe(trigger), write(trigger), f"on {trigger.source}"
    written = trigger.expression if isinstance(trigger, Cron) else write(trigger)
    return describe(trigger), written, written[: len("once 2026-12-01")] if isinstance(trigger, Once) else written


def _next(one: "Listed", now: datetime) -> Cell | str:
    from duly import zones
    from duly.core.schedule import takes_events

    at = one.task.next_start_at
    if at is None and not one.task.broken and takes_events(one.task.definition) and _may_start(one):
        return "on event"
    if at is None or one.task.broken:
        return "–" if mark("") == "·" else "-"
    if one.skipped is not None:
        at = one.kept
        if at is None:
            return Cell(text=f"all skipped by {plain(one.skipped.by)}", shorter=("skipped",))
        far, clock = away(at, now), clock_text(at, zones.zone(one.task.definition.zone), now)
        return Cell(text=f"{far} ({clock}), after skipped ones", shorter=(f"{far} (skips)",))
    if at <= now:
        return Cell(text=f"due {away(at, now)}", shorter=("overdue",) if at < now else ())
    far = away(at, now)
    return Cell(text=f"{far} ({clock_text(at, zones.zone(one.task.definition.zone), now)})", shorter=(far,))


def _may_start(one: "Listed") -> bool:
    return one.task.definition.enabled and not one.pauses and not one.task.done


def _last(one: "Listed", now: datetime) -> Cell:
    if one.live is not None:
        since = one.live.started_at or one.live.opened_at
        word = "running" if one.live.state == "held" else one.live.state
        length = distance(now - since)
        return Cell(text=f"{mark(word)} {word} for {length}", styles=colour(word), shorter=(f"{mark(word)} {length}",))
    run = one.last_run
    if run is None or run.outcome is None:
        return Cell(text="never ran", styles=("dim",), shorter=("never",))
    ago, sign = away(run.ended_at or run.opened_at, now), mark(run.outcome)
    row = one.task.failures_in_a_row
    times = f", {row} in a row" if row > 1 and run.outcome in {"failed", "timed_out", "abandoned"} else ""
    text = f"{sign} {run.outcome.replace('_', ' ')} {ago}{times}"
    return Cell(text=text, styles=colour(run.outcome), shorter=(f"{sign} {ago}",))


def state(one: "Listed") -> Cell:
    """Tell how a task stands in one word."""
    from duly.core.loops import fault_of

    task = one.task
    if task.broken:
        return Cell(text="broken", styles=("red",))
    if one.pauses:
        return Cell(text="paused", styles=("yellow",))
    if not task.definition.enabled:
        return Cell(text="disabled", styles=("yellow",))
    if task.done:
        return Cell(text="done", styles=("dim",))
    if fault_of(task.source) is not None:
        return Cell(text="on, file broken", styles=("yellow",), shorter=("on, file!",))
    return Cell(text="on", styles=("green",))


def _footer(found: "list[Listed]", following: str | None) -> str:
    parts = [many(len(found), "task")]
    for word in ("paused", "disabled", "broken", "done"):
        count = sum(state(one).text == word for one in found)
        if count:
            parts.append(f"{count} {word}")
    offered = sum(one.open_missed for one in found)
    if offered:
        parts.append(f"{offered:,} missed {'waits' if offered == 1 else 'wait'} for an answer: duly missed --open")
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

    one_of(state, listing.STATES, "--state")
    one_of(outcome, listing.OUTCOMES, "--outcome")
    count = most_of(most, listing.PAGE_MOST)
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
        Column(head="DUE"),
        Column(head="STATE", yields=1),
        Column(head="TOOK", right=True),
        Column(head="BY", yields=3, optional=True),
        Column(head="WHY", words=True, yields=2),
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
                Cell(text=told_word(word), styles=colour(word)),
                _took(run, now),
                str(run["opened_by"]).replace("_", " "),
                _why(run),
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
        if waits["what"] == "delay":
            return f"not before {waits['until']}"
        if waits["what"] == "gate":
            return "its gate is being asked"
        if waits["what"] == "backoff":
            failed = failure(reason=run["reason"], error=run["error"], exit_code=run["exit_code"])
            at = datetime.fromisoformat(str(waits["until"])).replace(tzinfo=None, microsecond=0)
            return f"tried again at {at} UTC; {failed}".splitlines()[0]
        return f"waits for {'somebody to serve' if _alone(waits) else _thing(waits)}"
    if run["outcome"] in (None, "succeeded"):
        return ""
    from duly.core.reasons import ENDED, NO_START

    reason = str(run["reason"] or "")
    sentence = (NO_START if run["outcome"] == "skipped" else ENDED).get(reason, reason)
    said = failure(reason=reason, error=run["error"] or sentence, exit_code=run["exit_code"])
    return said.splitlines()[0] if said else ""


def _thing(waits: Mapping[str, object]) -> str:
    """Name what a run waits for, and which one where that says something to a reader."""
    what = str(waits["what"])
    if what in {"limit", "label", "rate", "runner"} and waits["key"]:
        return f"{'the rate of' if what == 'rate' else what} {plain(str(waits['key']))}"
    return f"a {what}"


def _alone(waits: dict[str, object]) -> bool:
    """Whether a free slot is waited for where nobody has any."""
    from duly.cli.joining import address
    from duly.operations.serving import anybody_serves

    return waits["what"] == "slot" and not anybody_serves(address())


def _why(run: dict[str, object]) -> Cell | str:
    text = plain(why(run))
    # An exit status stands before everything else, so that what is cut is only what the command said.
    code = f"signal {run['signal']}" if run["reason"] == "signal" and run["signal"] else str(run["reason"] or "")
    return Cell(text=text, shorter=(code,)) if code not in {"", "exit_status"} else text


def instant(text: str, option: str) -> datetime:
    """Read an instant that lies behind: `7d` is seven days ago."""
    from duly import clock, zones
    from duly.core.spans import read_instant

    return read_instant(text, now=clock.now(), zone=zones.zone(zones.machine_zone() or "UTC"), field=option)


def most_of(text: str, most: int) -> int:
    """Read how many lines of a list are wanted."""
    from duly.cli.previewing import number

    return number(text, "-n", most)


def one_of(word: str | None, allowed: tuple[str, ...], option: str) -> None:
    """Refuse a word that is not one of those allowed."""
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
