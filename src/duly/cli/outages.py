"""`outages`: when nobody served, the machine slept or its clock was set, and what was missed by it."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import cast

import click

from duly.cli import out
from duly.cli.frame import command, settings
from duly.cli.joining import find, hint
from duly.cli.listing import CURSOR, instant, most_of
from duly.cli.moments import full_text, took
from duly.cli.table import Cell, pairs, plain
from duly.cli.words import many

OUTAGES_SHOWN = "20"
TASKS_NAMED = 5
"""So many tasks of an outage are named on the screen; all are counted."""


@command(
    name="outages",
    help="List when nobody served, the machine slept, its clock was set or the store could not be used, the newest "
    "first: what was missed by that, what was caught up, and which events nobody here can know of.",
    epilog="duly outages --since 30d\nduly outages --json",
    params=[
        click.Option(["--since"], metavar="I", help="Those that had not ended by this instant, such as 7d."),
        click.Option(["-n", "most"], metavar="N", default=OUTAGES_SHOWN, help=f"How many.  [{OUTAGES_SHOWN}]"),
        CURSOR,
    ],
)
def outages(since: str | None, most: str, cursor: str | None) -> None:
    """List outages."""
    from duly.operations import listing
    from duly.operations import outages as asked

    count = most_of(most, listing.PAGE_MOST)
    start = instant(since, "--since") if since is not None else None
    before = listing.seq_cursor(cursor) if cursor is not None else None
    store = find()
    items: list[dict[str, object]] = []
    following = None
    if store is not None:
        try:
            with store.read() as session:
                items, following = asked.outages(store, session, since=start, cursor=before, most=count)
        finally:
            store.close()
    if settings().as_json:
        out.document({"items": items, "next": None if following is None else str(following)})
        return
    if items:
        _table(items)
    elif store is not None:
        out.line("none is on record")
    if following is not None:
        hint(f"more: duly outages --cursor {following}")


def _table(items: list[dict[str, object]]) -> None:
    out.lines(pairs([row for one in items for row in _rows(one)]))


def _rows(one: dict[str, object]) -> Iterator[tuple[str, Cell]]:
    from duly.core.reasons import OUTAGES

    cause = str(one["cause"])
    what = OUTAGES.get(cause, plain(cause))
    if cause == "clock_step":
        what += f" {cast(dict[str, object], one['details']).get('way', '')}".rstrip()
    lasted = took(timedelta(seconds=float(str(one["for_s"]))))
    came, styles = _came(one)
    yield _full(one["since"]), Cell(text=f"{lasted}: {what}; {came}", styles=styles, wraps=True)
    tasks = cast(list[dict[str, object]], one["tasks"])
    for task in tasks[:TASKS_NAMED]:
        yield "", Cell(text=f"- {plain(str(task['told']))}: {_task(task)}", wraps=True)
    if len(tasks) > TASKS_NAMED:
        yield "", Cell(text=f"- {many(len(tasks) - TASKS_NAMED, 'task')} more (--json tells of all)", wraps=True)
    for source in cast(list[dict[str, object]], one["unknown"]):
        text = f"- events of {plain(str(source['source']))} that were not delivered are not known; {_last(source)}"
        yield "", Cell(text=text, wraps=True)


def _came(one: dict[str, object]) -> tuple[str, tuple[str, ...]]:
    if one["until"] is None:
        return "it goes on, and what is missed is told once somebody serves", ("yellow",)
    counts = [f"{one[word]:,} {word.replace('_', ' ')}" for word in ("missed", "caught_up", "interrupted") if one[word]]
    served = ""
    if one["others"]:
        served = f" ({many(int(str(one['others'])), 'other')} served)"
    return (", ".join(counts) if counts else "nothing was due") + served, ("yellow",) if one["missed"] else ()


def _task(task: dict[str, object]) -> str:
    reasons = cast(dict[str, int], task["reasons"])
    parts = [f"{count:,} missed ({reason})" for reason, count in reasons.items()]
    parts += [f"{task[word]:,} {word.replace('_', ' ')}" for word in ("caught_up", "interrupted") if task[word]]
    if task["first_due_at"] is not None:
        first, last = _full(task["first_due_at"]), _full(task["last_due_at"])
        parts.append(f"due {first}" if first == last else f"due from {first} to {last}")
    return ", ".join(parts)


def _last(source: dict[str, object]) -> str:
    if source["last_at"] is None:
        return "none had come before"
    key = f"{plain(str(source['last_key']))}, " if source["last_key"] is not None else ""
    return f"the last before was {key}{_full(source['last_at'])}"


def _full(at: object) -> str:
    return full_text(datetime.fromisoformat(str(at)), None)
