"""`status` and `verify`: how things stand, and whether the promises were kept."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, cast

from duly.cli import out
from duly.cli.frame import command, settings
from duly.cli.joining import address, find, hint_nobody
from duly.cli.moments import away, full_text
from duly.cli.table import Cell, pairs, plain
from duly.cli.words import many

FINDINGS = 1
NAMED = 5
"""So many failing tasks are named on the screen."""


@command(name="status", help="Say how things stand: who serves, what runs and waits, what wants a person.")
def status() -> None:
    """Tell how things stand."""
    from duly.operations import standing

    store = find()
    if store is None:
        if settings().as_json:
            out.document(standing.nothing(str(address())))
        return
    try:
        with store.read() as session:
            found = standing.status(store, session)
            now = session.now
    finally:
        store.close()
    if settings().as_json:
        out.document(found)
        return
    _tell(found, now)
    hint_nobody(address(), "nothing runs until somebody does")


def _tell(found: Mapping[str, object], now: datetime) -> None:
    tasks, runs = cast(dict[str, int], found["tasks"]), cast(dict[str, int], found["runs"])
    alive = cast(int, found["holders_alive"])
    rows: list[tuple[str, str | Cell]] = [
        ("store", plain(str(found["store"]))),
        ("served by", _served(found, alive)),
        *([("polling", "only: a pooler stands before the database")] if found["polling_only"] else []),
        ("tasks", _counts(tasks["total"], [(f"{tasks['enabled']} enabled", 1), *_named(tasks, "paused", "broken")])),
        (
            "runs",
            ", ".join(f"{runs[word]} {word}" for word in ("running", "waiting", "parked") if runs[word]) or "none live",
        ),
    ]
    failing = cast(int, found["failing"])
    if failing:
        rows.append(("failing", Cell(text=plain(_failing(found, failing)), styles=("red",), wraps=True)))
    if found["open_missed"]:
        rows.append(("missed", f"{found['open_missed']:,} open: duly missed --open"))
    if found["open_questions"]:
        rows.append(("questions", f"{found['open_questions']:,} open: duly questions --open"))
    rows += [("budget", _budget(one)) for one in cast(list[Mapping[str, Any]], found["budgets"])[:NAMED]]
    rows += _projects(cast(list[Mapping[str, Any]], found["projects"]))
    at = found["next_due_at"]
    if at is not None:
        due = datetime.fromisoformat(str(at))
        rows.append(("next due", f"{full_text(due, None)} ({away(due, now)})"))
    holds = cast(list[dict[str, object]], found["pauses"])
    rows += [("paused", Cell(text=plain(_hold(hold, now)), wraps=True)) for hold in holds]
    for holder in cast(list[dict[str, object]], found["holders"]):
        beat = datetime.fromisoformat(str(holder["last_beat_at"]))
        busy = "passive" if holder["passive"] else f"{holder['running']}/{holder['slots']} slots"
        stopping = ", draining" if holder["state"] == "draining" else ""
        text = f"{holder['id']}  {holder['host']} pid {holder['pid']}, {busy}{stopping}, beat"
        rows.append(("holder", Cell(text=plain(f"{text} {away(beat, now)}"), wraps=True)))
    rows.append(("version", str(found["version"])))
    out.lines(pairs(rows))


def _projects(troubled: list[Mapping[str, Any]]) -> list[tuple[str, str | Cell]]:
    """Tell of folders that cannot be used, and of loop files that were not taken."""
    rows: list[tuple[str, str | Cell]] = []
    for one in troubled:
        if one["missing"] is not None:
            text = f"{one['name']}: {one['dir']} cannot be used: {one['missing']}"
            rows.append(("project", Cell(text=plain(text), styles=("red",), wraps=True)))
        for fault in one["faults"][:NAMED]:
            line = f":{fault['line']}" if fault["line"] else ""
            text = f"{fault['path']}{line}: {fault['message']}"
            rows.append(("loop file", Cell(text=plain(text), styles=("yellow",), wraps=True)))
    return rows


def _served(found: Mapping[str, object], alive: int) -> Cell:
    passive = sum(bool(one["passive"]) for one in cast(list[dict[str, object]], found["holders"]))
    if alive > passive:
        return Cell(text=many(alive, "holder") + (f", {passive} of them passive" if passive else ""))
    return Cell(text=f"nobody who starts anything ({passive} passive)" if passive else "nobody", styles=("yellow",))


def _failing(found: Mapping[str, object], count: int) -> str:
    names = cast(list[str], found["failing_tasks"])[:NAMED]
    more = f" and {count - len(names)} more" if count > len(names) else ""
    return f"{many(count, 'task')}: {', '.join(names)}{more} (why: duly runs)"


def _budget(one: Mapping[str, Any]) -> Cell:
    """A budget in one line: of each kind that it bounds what is spent, what is set aside, and what is left."""
    parts, short = [], False
    for kind, bound in one["limit"].items():
        if bound is None:
            continue
        spent, reserved = one["spent"][kind], one["reserved"][kind]
        left = max(0, bound - spent - reserved)
        short = short or left == 0
        dollars = "$" if kind == "usd" else ""
        shown = ":,.2f" if kind == "usd" else ":,"
        amounts = [f"{{}}{{{shown}}}".format(dollars, amount) for amount in (spent, reserved, left, bound)]
        parts.append("{} spent, {} set aside, {} left of {} {}".format(*amounts, "" if kind == "usd" else kind).strip())
    text = f"{one['scope']}, a {one['per']}: {'; '.join(parts)}"
    return Cell(text=plain(text), styles=("yellow",) if short else (), wraps=True)


def _hold(hold: Mapping[str, object], now: datetime) -> str:
    what = "all tasks" if hold["scope"] == "store" else f"{hold['scope']} {hold['target']}"
    since = away(datetime.fromisoformat(str(hold["since"])), now)
    end = ""
    if hold["until"]:
        until = datetime.fromisoformat(str(hold["until"]))
        end = f", until {full_text(until, None)} ({away(until, now)})"
    note = f": {hold['note']}" if hold["note"] else ""
    return f"{what} by {hold['by']} {since}{end}{note}"


def _named(counts: Mapping[str, int], *words: str) -> list[tuple[str, int]]:
    return [(f"{counts[word]} {word}", counts[word]) for word in words]


def _counts(total: int, parts: list[tuple[str, int]]) -> str:
    return ", ".join([str(total), *(text for text, shown in parts if shown)])


@command(name="verify", help="Check the promises on this store, row by row; exit 1 names the rows that break which.")
def verify() -> int:
    """Check the promises."""
    from duly.operations import audit

    store = find()
    if store is None:
        if settings().as_json:
            out.document({"items": [], "next": None, "ok": True})
        return 0
    try:
        with out.progress("verify") as tell:
            findings = audit.verify(store, tell)
    finally:
        store.close()
    settings().code = FINDINGS if findings else 0
    if settings().as_json:
        from dataclasses import asdict

        out.document({"items": [asdict(one) for one in findings], "next": None, "ok": not findings})
        return FINDINGS if findings else 0
    for one in findings:
        out.line(plain(str(one)))
    out.line(f"{many(len(findings), 'finding')}" if findings else "all promises hold on this store")
    return FINDINGS if findings else 0
