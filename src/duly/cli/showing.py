"""`show`: all one wants to know of a task or a run, on one screen."""

import shlex
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, cast

import click

from duly.cli import out
from duly.cli.actions import action_text, kind_told
from duly.cli.frame import command, settings
from duly.cli.joining import find
from duly.cli.listing import state, why
from duly.cli.moments import away, coming_text, distance, full_text, took
from duly.cli.table import Cell, pairs, plain, trimmed, wrapped
from duly.cli.words import colour, failure, many, rules_told
from duly.cli.words import told as told_word
from duly.core.loops import path_of
from duly.errors import Refused

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from duly.core.events import Event
    from duly.core.skips import Range
    from duly.operations.showing import RunShown, TaskShown
    from duly.store.store import Session, Store

TAIL_BYTES = 4_096
TAIL_LINES = 8
INDENT = 12
INPUT_SHOWN = 200
Rows = list[tuple[str, str | Cell]]


@command(
    name="show",
    help="Show all there is to know of a task or a run.",
    epilog="duly show backup\nduly show 7kq2m9xw",
    params=[click.Argument(["which"], metavar="TASK|RUN")],
)
def show(which: str) -> None:
    """Show a task or a run."""
    from duly.core.run import Run
    from duly.operations import showing
    from duly.operations.lookup import find_any

    store = find()
    if store is None:
        raise Refused(
            "unknown_id", f'there is no task and no run "{which}": there is no store yet', details={"word": which}
        )
    try:
        with store.read() as session:
            found = find_any(session, which)
            if isinstance(found, Run):
                _run(store, session, showing.run(session, found))
            else:
                _task(session, showing.task(session, found))
    finally:
        store.close()


def _task(session: "Session", shown: "TaskShown") -> None:
    if settings().as_json:
        out.document(shown.shape)
        return
    from duly import zones

    task, now = shown.listed.task, session.now
    definition = task.definition
    zone = zones.zone(definition.zone) if task.broken is None else None
    standing = state(shown.listed)
    title = plain(definition.name if definition.project == "default" else f"{definition.project}/{definition.name}")
    out.line(
        f"{out.styled(title, 'bold')}  {out.styled(standing.text, *standing.styles)}  {out.styled(task.id, 'dim')}"
    )
    if definition.description:
        out.lines(wrapped(plain(definition.description), out.width()))
    rows: Rows = []
    wrong = cast(Mapping[str, object] | None, shown.shape["broken"])
    if wrong is not None:
        said = plain(f"{wrong['field']}: {wrong['message']}")
        rows.append(("broken", Cell(text=said, styles=("red",), wraps=True)))
    for hold in shown.listed.pauses:
        until = f" until {full_text(hold.until, zone)}" if hold.until else ""
        note = f": {hold.note}" if hold.note else ""
        text = f"{hold.scope} by {hold.by} since {full_text(hold.since, zone)}{until}{note}"
        rows.append(("paused", Cell(text=plain(text), styles=("yellow",), wraps=True)))
    if task.broken is None:
        rows += _schedule(shown, zone, now)
        rows += _rules(shown.shape)
    rows += _history(shown, now)
    out.lines(pairs(rows))


def _schedule(shown: "TaskShown", zone: "ZoneInfo | None", now: datetime) -> Rows:
    definition = shown.listed.task.definition
    action, inherited = definition.action, definition.inherited
    coming = "\n".join(
        f"{coming_text(one.due_at, one.start_at, zone, now)}{_marks(one.due_at, range_, now)}"
        for one, range_ in zip(shown.coming, shown.skipped, strict=True)
    )
    if shown.listed.kept is not None and all(shown.skipped):
        coming += f"\n{coming_text(shown.listed.kept, shown.listed.kept, zone, now)}"
    rows: Rows = [
        ("when", Cell(text=str(shown.shape["words"]), wraps=True)),
        ("canonical", str(shown.shape["canonical"])),
        ("zone", definition.zone),
        ("next", coming or _no_next(shown)),
        *_sources(shown, now),
        (kind_told(action), plain(action_text(action))),
        *([] if action.get("kind") == "http" else [_folder(action, inherited)]),
    ]
    headers = cast(Mapping[str, str], action.get("headers") or {})
    if headers:
        rows.append(("with", plain("\n".join(f"{name}: {text}" for name, text in headers.items()))))
    if action.get("sign"):
        rows.append(("signed", plain(f"with {action['sign']}")))
    env = cast(Mapping[str, str], action.get("env") or {})
    if env:
        rows.append(("env", plain(" ".join(f"{key}={value}" for key, value in env.items()))))
    if definition.labels:
        rows.append(("labels", plain(" ".join(f"{key}={value}" for key, value in definition.labels.items()))))
    return rows


def _folder(action: Mapping[str, object], inherited: Mapping[str, str]) -> tuple[str, str]:
    return "in", plain(str(action.get("cwd") or "")) + (" (the project's folder)" if "cwd" in inherited else "")


def _no_next(shown: "TaskShown") -> str:
    from duly.core.schedule import takes_events

    task = shown.listed.task
    return "when an event comes" if takes_events(task.definition) and not task.done else "none by itself"


def _sources(shown: "TaskShown", now: datetime) -> Rows:
    """Tell the last event of each source that the task listens to."""
    told = []
    for one in cast(Sequence[Mapping[str, object]], shown.shape["sources"]):
        key = f" {plain(str(one['last_key']))}" if one["last_key"] is not None else ""
        at = away(datetime.fromisoformat(str(one["last_at"])), now)
        told.append(f"{one['name']}{key} {at}, {one['received']:,} in all")
    return [("heard", "\n".join(told))] if told else []


def _marks(at: datetime, skipped: "Range | None", now: datetime) -> str:
    if skipped is not None:
        return f"  (skipped by {plain(skipped.by)})"
    return "  (overdue)" if at <= now else ""


def _rules(shape: Mapping[str, object]) -> Rows:
    rules = cast(Mapping[str, object], shape["rules"])
    own = cast(Sequence[str], shape["own_rules"])
    inherited = cast(Mapping[str, str], shape["inherited_rules"])
    return [("rules", "\n".join(rules_told(rules, own, inherited)))]


def _history(shown: "TaskShown", now: datetime) -> Rows:
    task = shown.listed.task
    counts = [many(task.runs, "run")]
    if task.failures_in_a_row:
        counts.append(f"{task.failures_in_a_row} failed in a row")
    offered = shown.listed.open_missed
    if offered:
        counts.append(f"{offered:,} missed {'waits' if offered == 1 else 'wait'} for an answer (duly missed)")
    path = path_of(task.source)
    rows: Rows = [
        ("made", plain(f"{full_text(task.created_at, None)} by {task.created_by}, version {task.version}")),
        *([] if path is None else [("file", plain(f"{path}:{task.source.get('line') or 1}"))]),
        ("so far", ", ".join(counts)),
    ]
    from duly.operations.lookup import ending

    lines = []
    for run in shown.recent:
        word = str(run["outcome"] or run["state"])
        reason = plain(why(dict(run)))
        due = datetime.fromisoformat(str(run["due_at"]))
        line = f"{ending(str(run['id']))}  {told_word(word)}  {away(due, now)}  {reason}"
        lines.append(trimmed(line.rstrip(), out.width() - INDENT))
    if lines:
        rows.append(("newest", "\n".join(lines)))
    return rows


def _run(store: "Store", session: "Session", shown: "RunShown") -> None:
    if settings().as_json:
        out.document(shown.shape)
        return
    from duly import zones
    from duly.operations.lookup import told

    run, task, now = shown.run, shown.task, session.now
    zone = zones.zone(task.definition.zone) if task is not None and task.broken is None else None
    word = str(shown.shape["outcome"] or shown.shape["state"])
    head = out.styled(told_word(word), "bold", *colour(word))
    out.line(f"{head}  {plain(told(task)) if task else run.task}  {out.styled(run.id, 'dim')}")
    rows: Rows = []
    waits = shown.shape["waiting_for"]
    if isinstance(waits, dict):
        rows.append(("waits for", Cell(text=_waits(store, waits, now), styles=("cyan",))))
    if run.reason:
        from duly.core.reasons import ENDED, NO_START

        sentence = ENDED.get(run.reason) or NO_START.get(run.reason) or ""
        rows.append(("reason", Cell(text=f"{run.reason}: {sentence}" if sentence else run.reason, wraps=True)))
    if run.error and run.state != "held":
        said = failure(reason=run.reason, error=run.error, exit_code=run.exit_code)
        said = "\n".join(plain(line) for line in said.splitlines())
        rows.append(("error", Cell(text=said, styles=("red",), wraps=True)))
    rows += _times(shown, zone, now)
    rows += _figures(shown)
    out.lines(pairs(rows))
    _tail(store, session, shown)


def _waits(store: "Store", waits: Mapping[str, object], now: datetime) -> str:
    from duly.operations.lookup import ending
    from duly.operations.serving import anybody_serves

    since = distance(now - datetime.fromisoformat(str(waits["since"]))) if waits["since"] else ""
    if waits["what"] == "seat":
        return f"its task's seat, which {ending(str(waits['key']))} has, for {since}"
    if waits["what"] == "delay":
        return f"its time, {waits['until']}"
    if waits["what"] == "gate":
        return f"its gate, for {since}"
    if waits["what"] == "question":
        left = distance(datetime.fromisoformat(str(waits["until"])) - now)
        return f"the answer to {ending(str(waits['key']))}, for {since}, and {left} more (duly answer)"
    if waits["what"] == "pause":
        return f"the end of a pause, or its task's switch, for {since}"
    if waits["what"] == "backoff":
        return f"its next try {away(datetime.fromisoformat(str(waits['until'])), now)}, {waits['until']}"
    if not anybody_serves(store.address):
        return f"somebody to serve this store (`duly serve`), for {since}"
    return f"a free slot, for {since}"


def _times(shown: "RunShown", zone: "ZoneInfo | None", now: datetime) -> Rows:
    from duly.operations.lookup import ending

    run = shown.run
    whom = f" by {run.opened_by_whom}" if run.opened_by_whom else ""
    rows: Rows = [
        ("due", full_text(run.due_at, zone)),
        ("opened", f"{full_text(run.opened_at, zone)}  {run.opened_by.replace('_', ' ')}{plain(whom)}"),
    ]
    if run.retry_of is not None:
        rows.append(("again", f"what {ending(run.retry_of)} did"))
    if run.started_at is not None:
        late = run.started_at - run.due_at - run.spread
        note = f"  {distance(late)} after it was due" if late >= timedelta(seconds=1) else ""
        rows.append(("started", f"{full_text(run.started_at, zone)}{note}"))
    if run.cancel_asked_at is not None and run.state != "ended":
        rows.append(("cancel", f"asked {away(run.cancel_asked_at, now)} by {plain(run.cancel_asked_by or '')}"))
    if run.stopping_since is not None:
        rows.append(("stopping", f"for {distance(now - run.stopping_since)}"))
    if run.ended_at is not None:
        spent = f"  took {took(run.ended_at - run.started_at)}" if run.started_at else ""
        rows.append(("ended", f"{full_text(run.ended_at, zone)}{spent}"))
    elif run.started_at is not None and run.state == "held":
        rows.append(("running", f"for {distance(now - run.started_at)}"))
    return rows


def _figures(shown: "RunShown") -> Rows:
    run = shown.run
    rows: Rows = []
    if run.exit_code is not None and run.state != "held":
        rows.append(("exit code", str(run.exit_code)))
    if run.signal is not None and run.state != "held":
        rows.append(("signal", str(run.signal)))
    attempts = cast(Sequence[Mapping[str, object]], shown.shape["attempts"])
    if attempts:
        last = attempts[-1]
        host = f" on {shown.shape['host']}" if shown.shape["host"] else ""
        rows.append(("attempt", f"{run.attempt}, fence {run.fence}, held by {last['holder']}{plain(host)}"))
    if len(attempts) > 1:
        rows.append(("attempts", "\n".join(_attempt(one) for one in attempts)))
    if run.agent.get("session"):
        rows.append(("session", plain(str(run.agent["session"]))))
    if spent := _spent(shown.shape["usage"]):
        rows.append(("usage", spent))
    rows += _asked(shown)
    if run.args:
        rows.append(("arguments", Cell(text=plain(shlex.join(run.args))[:INPUT_SHOWN], wraps=True)))
    if shown.event is not None:
        rows += _event(shown.event)
    if run.input is not None:
        more = "…" if len(run.input) > INPUT_SHOWN else ""
        rows.append(("input", plain(run.input[:INPUT_SHOWN]) + more))
    rows.append(("occurrence", plain(run.occurrence)))
    return rows + _left(shown)


def _asked(shown: "RunShown") -> Rows:
    """Tell the last question that its work asked, and the answer."""
    one = shown.question
    if one is None:
        return []
    from duly.operations.lookup import ending

    said = one.said if one.answer == "text" else one.answer
    by = f"{plain(one.answered_by or '')}: {plain(' '.join((said or '').split()))}"
    answer = {"open": "not answered yet", "expired": "never answered"}.get(one.state, by)
    return [("question", Cell(text=f"{ending(one.id)}  {plain(' '.join(one.text.split()))}\n{answer}", wraps=True))]


def _left(shown: "RunShown") -> Rows:
    """Tell what the work left running, and what became of that."""
    ends = [written.entry.details for written in shown.story if written.entry.kind == "ended"]
    told = (("leftovers", "left behind", "ended after its end: "), ("left_running", "left running", ""))
    return [
        (word, Cell(text=before + plain(", ".join(map(str, named))), wraps=True))
        for name, word, before in told
        for named in [ends[-1].get(name) if ends else None]
        if isinstance(named, list)
    ]


def _spent(usage: object) -> str:
    """Tell tokens and money as far as an agent told them."""
    assert isinstance(usage, Mapping)
    words = [
        f"{usage[name]:,} tokens {way}" for name, way in (("tokens_in", "in"), ("tokens_out", "out")) if usage[name]
    ]
    return ", ".join(words + ([f"{usage['cost_usd']:.4f} USD"] if usage["cost_usd"] else []))


def _event(event: "Event") -> Rows:
    key = f" {event.key}" if event.key is not None else ""
    more = "…" if len(event.body) > INPUT_SHOWN else ""
    named = f"{event.source}{key} by {event.by}"
    return [("event", plain(named)), ("data", plain(event.body[:INPUT_SHOWN]) + more)]


def _attempt(one: Mapping[str, object]) -> str:
    word = str(one["outcome"] or one["reason"] or ("running" if one["ended_at"] is None else "parked"))
    why = f": {one['reason']}" if one["outcome"] not in {None, "succeeded"} and one["reason"] else ""
    return f"{one['attempt']}  fence {one['fence']}  {one['started_at']}  {word.replace('_', ' ')}{why}"


def _tail(store: "Store", session: "Session", shown: "RunShown") -> None:
    from duly.operations import outputs
    from duly.operations.lookup import ending
    from duly.runners.folders import folder_of

    run = shown.run
    if not run.attempt:
        return
    folder = folder_of(store.run_folder, run.id, run.fence)
    size = outputs.size(store, folder, session=session)
    if not size:
        out.line(out.styled("no output", "dim"))
        return
    lines = outputs.tail(store, folder, TAIL_BYTES, session=session).decode(errors="replace").splitlines()[-TAIL_LINES:]
    out.line(out.styled(f"output, {size:,} bytes (duly log {ending(run.id)}):", "dim"))
    out.lines(f"  {plain(line)}" for line in lines)
