"""`preview` and `next`: what a WHEN means, and what is due next."""

from collections.abc import Mapping
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import click

from duly.cli import out
from duly.cli.fields import rule_options, whole_number
from duly.cli.frame import command, settings
from duly.cli.moments import away, clock_text, full_text, start_text
from duly.cli.table import Cell, Column, pairs, plain, render
from duly.errors import Invalid

PREVIEW_MOST = 10_000
MARKS: Mapping[object, str] = {
    "gap": "gap (missing)",
    "fold": "fold (twice)",
}


@command(
    name="preview",
    help="Say what a WHEN means: its words, its canonical form, its next instants.",
    epilog="duly preview 'weekly mon-fri 09:00' --zone Europe/Berlin\nduly preview '*/15 8-18 * * 1-5' -n 3",
    params=[
        click.Argument(["texts"], nargs=-1, required=True, metavar="WHEN..."),
        click.Option(["--zone"], metavar="ZONE", help="The zone of its times, by IANA name.  [this machine's]"),
        click.Option(["--after"], metavar="INSTANT", help="Stands for now."),
        *rule_options("gap", "fold"),
        click.Option(["-n", "most"], metavar="N", default="10", help="How many instants.  [10]"),
    ],
)
def preview(texts: tuple[str, ...], zone: str | None, after: str | None, most: str, **rules: str | None) -> None:
    """Preview triggers."""
    from duly import clock, zones
    from duly.core import when
    from duly.core.spans import read_instant
    from duly.operations import previewing

    count = number(most, "-n", PREVIEW_MOST)
    name = zone if zone is not None else zones.machine_zone()
    if name is None:
        raise Invalid("this machine's zone has no IANA name", field="zone", hint="--zone Europe/Berlin")
    place = zones.zone(name)
    now = clock.now()
    if after is not None:
        now = read_instant(after, now=now, zone=place, bare="ahead", field="--after")
    triggers = when.read_all(texts, now=now, zone=place)
    gap, fold = previewing.bends(rules, triggers)
    found = previewing.preview(triggers, place, after=now, most=count, gap=gap, fold=fold)
    warnings = [note for text in texts if triggers for note in when.read(text, now=now, zone=place).warnings]
    warned = zones.warning(name) if zone is not None else None
    if settings().as_json:
        out.document(found | {"warnings": [*([warned] if warned else []), *warnings]})
        return
    for note in [*([warned] if warned else []), *warnings]:
        out.note(f"warning: {note}")
    _show(found, place, now)


def _show(found: Mapping[str, object], place: ZoneInfo, now: datetime) -> None:
    out.lines(
        pairs(
            [
                ("words", Cell(text=str(found["words"]), styles=("bold",), wraps=True)),
                ("canonical", str(found["canonical"])),
                ("zone", str(place.key)),
            ]
        )
    )
    items = found["items"]
    assert isinstance(items, list)
    out.line()
    if not items:
        out.line(_no_instant(found))
        return
    columns = [
        Column(head="LOCAL"),
        Column(head="UTC"),
        Column(head="AWAY"),
        Column(head="NOTE", words=True, yields=1),
    ]
    rows: list[list[Cell | str]] = []
    for item in items:
        at = datetime.fromisoformat(item["due_at"])
        there = at.astimezone(UTC)
        rows.append(
            [
                full_text(at, place),
                f"{there.year:04d}-{there:%m-%d %H:%M:%S}Z",
                away(at, now),
                _note(item["note"]),
            ]
        )
    out.lines(render(columns, rows))


def _no_instant(found: Mapping[str, object]) -> str:
    triggers = found["triggers"]
    assert isinstance(triggers, list)
    sources = [trigger["source"] for trigger in triggers if trigger["kind"] == "event"]
    if not sources:
        return "no instant by itself; `duly run` starts it"
    return f"no instant: an event starts it, such as `duly emit {sources[0]}`"


def _note(word: object, start: str = "") -> Cell:
    plainly = str(word or "")
    whole, short = (", ".join(filter(None, [text, start])) for text in (MARKS.get(word, plainly), plainly))
    return Cell(text=whole, styles=("yellow",), shorter=(short,))


def _fate(item: Mapping[str, object], at: datetime, zone: ZoneInfo) -> Cell:
    """Note what becomes of an instant to come of a task: skipped, overdue, or what the wall does to it."""
    skipped = item["skipped"]
    if isinstance(skipped, dict):
        why = f": {skipped['note']}" if skipped["note"] else ""
        return Cell(text=plain(f"skipped by {skipped['by']}{why}"), styles=("yellow",), shorter=("skipped",))
    return _note("overdue" if item["overdue"] else item["note"], _start(item, at, zone))


def _start(item: Mapping[str, object], at: datetime, zone: ZoneInfo) -> str:
    start = datetime.fromisoformat(str(item["start_at"]))
    return "" if start == at else start_text(at, start, zone)


def number(text: str, option: str, most: int) -> int:
    """Read how many from an option: at least one, at most so many."""
    count = whole_number(text, option)
    if not 1 <= count <= most:
        raise Invalid(f"{count} is not between 1 and {most:,}", field=option, text=text, at=0)
    return count


@command(
    name="next",
    help="List what is due next, of one task or of all.",
    epilog="duly next\nduly next backup -n 3",
    params=[
        click.Argument(["task"], required=False),
        click.Option(["-n", "most"], metavar="N", default="5", help="How many instants.  [5]"),
    ],
)
def next_(task: str | None, most: str) -> None:
    """List instants to come."""
    from duly.cli.joining import address, hint, hint_nobody, reading
    from duly.errors import Refused
    from duly.operations import previewing, skipping
    from duly.operations.lookup import find_task

    count = number(most, "-n", previewing.NEXT_MOST)
    with reading() as session:
        if session is None:
            if task is not None:
                raise Refused(
                    "unknown_task", f'there is no task "{task}": there is no store yet', details={"word": task}
                )
            if settings().as_json:
                out.document({"items": [], "next": None})
            return
        tasks = [find_task(session, task)] if task is not None else previewing.coming(session, count)
        items = skipping.marked(session, previewing.next_of(tasks, now=session.now, most=count))
        now = session.now
    if settings().as_json:
        out.document({"items": items, "next": None})
        return
    if not items:
        hint("nothing is due: what is disabled, paused, done, by hand or by events alone has no next instant")
    else:
        _next_table(items, now)
    hint_nobody(address(), "nothing runs until somebody does")


def _next_table(items: list[dict[str, object]], now: datetime) -> None:
    from duly import zones

    columns = [
        Column(head="TASK", cut=True),
        Column(head="AWAY"),
        Column(head="LOCAL", yields=2),
        Column(head="ZONE", cut=True, yields=1),
        Column(head="NOTE", words=True, yields=3),
    ]
    rows: list[list[Cell | str]] = []
    for item in items:
        at = datetime.fromisoformat(str(item["due_at"]))
        zone = zones.zone(str(item["zone"]))
        rows.append(
            [
                Cell(text=plain(str(item["task_name"])), styles=("bold",)),
                away(at, now),
                Cell(text=full_text(at, zone), shorter=(clock_text(at, zone, now),)),
                str(item["zone"]),
                _fate(item, at, zone),
            ]
        )
    out.lines(render(columns, rows))
