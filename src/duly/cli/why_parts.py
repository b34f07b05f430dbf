"""What the screens of `why` tell of runs and pauses: a run with its holder and attempts, its story, what was beside."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from duly.cli.moments import away, distance, took
from duly.cli.table import Cell, plain
from duly.core.figures import Wall, local_text
from duly.operations.lookup import ending

if TYPE_CHECKING:
    from duly.core.run import Run
    from duly.operations.why_then import Hold
    from duly.operations.why_values import Holding, Why

Rows = list[tuple[str, str | Cell]]
OPENED: Mapping[str, str] = {
    "schedule": "",
    "catch_up": " to catch up",
    "event": " for an event",
    "manual": " by hand",
    "offer": " as an accepted offer",
    "backfill": " to fill the past",
}
STORY_SHOWN = 12
ATTEMPTS_SHOWN = 5


def run(found: "Why") -> Rows:
    """The run: who noticed and opened it, who holds it, its attempts."""
    run = found.fate.run
    if run is None:
        return []
    rows: Rows = []
    late = run.opened_at - run.due_at
    opened = "on time" if late < timedelta(seconds=1) else f"{distance(late)} late"
    whom = f"by {run.opened_by_whom}" if run.opened_by_whom else noticed(found)
    how = OPENED.get(run.opened_by, f"{run.opened_by}")
    again = f", again after {ending(run.retry_of)}" if run.retry_of else ""
    rows.append(("run", said(f"{ending(run.id)}, opened {opened}{how} {whom}".rstrip() + again)))
    if found.kind == "task" or len(found.story) > STORY_SHOWN:
        rows += _attempts(found)
    if found.held_by is not None and run.state == "held":
        rows.append(("held by", said(_holding(found.held_by, run, found.now))))
    if run.cancel_asked_at is not None and run.state != "ended":
        rows.append(("cancel", said(f"asked {away(run.cancel_asked_at, found.now)} by {run.cancel_asked_by}")))
    return rows


def story(found: "Why") -> Rows:
    """A run's entries in sentences, the newest where they are many."""
    from duly.core.story import tell

    shown = found.story[-STORY_SHOWN:]
    if not shown:
        return []
    left = len(found.story) - len(shown)
    lines = [f"… {left} earlier entries (duly ledger)"] if left else []
    lines += [f"{_time(one.entry.at, found)}  {tell(one.entry, wall_of(found))}" for one in shown]
    return [("story", said("\n".join(lines)))]


def beside(run: "Run", found: "Why") -> str:
    """Another run of the task, live at that time."""
    by = "by hand" if run.opened_by == "manual" else run.opened_by.replace("_", " ")
    name = f"run {ending(run.id)} ({by})"
    if run.started_at is None:
        return f"{name} waits since {local_text(run.opened_at, wall_of(found))}"
    began = local_text(run.started_at, wall_of(found))
    if run.ended_at is None:
        return f"{name} runs since {began}"
    return f"{name} ran from {began} to {local_text(run.ended_at, wall_of(found))}"


def hold_text(hold: "Hold", found: "Why") -> str:
    """A pause: of what, by whom, from when until when, and why."""
    what = {"store": "the whole store", "project": f"the project {hold.target}"}.get(hold.scope, "it")
    ends = [at for at in (hold.until, hold.ended_at) if at is not None]
    until = f" until {local_text(min(ends), wall_of(found))}" if ends else ", without an end"
    note = f": {hold.note}" if hold.note else ""
    over = ", over by then" if found.at is not None and ends and found.now < min(ends) <= found.at else ""
    return f"{what}, by {hold.by} since {local_text(hold.since, wall_of(found))}{until}{over}{note}"


def noticed(found: "Why") -> str:
    """By which holder an instant was found, with its host where it is still known."""
    if found.fate.noticed_by is None:
        return ""
    row = found.noticed_by
    return f"by {ending(found.fate.noticed_by)}" + ("" if row is None else f" on {row.host} (pid {row.pid})")


def said(text: str, *styles: str) -> Cell:
    """A value that is wrapped where it is long, with nothing in it that would move the cursor."""
    return Cell(text="\n".join(plain(line) for line in text.split("\n")), styles=styles, wraps=True)


def wall_of(found: "Why") -> Wall:
    """Instants are told on the task's wall, and on the day of the one asked about by their time alone."""
    return Wall(zone=found.zone, beside=found.at)


def _holding(held: "Holding", run: "Run", now: datetime) -> str:
    host = "" if held.row is None else f" on {held.row.host} (pid {held.row.pid})"
    alive = "" if held.alive else ", which is dead"
    lease = "lease over"
    if held.lease_ends_at is not None and held.lease_ends_at > now:
        lease = f"lease ends {away(held.lease_ends_at, now)} unless it beats"
    return f"{ending(held.holder)}{host}{alive}; fence {run.fence}, seat {run.seat}, {lease}"


def _attempts(found: "Why") -> Rows:
    if not found.attempts:
        return []
    lines = []
    for one in found.attempts[-ATTEMPTS_SHOWN:]:
        spent = "" if one.ended_at is None else f", {took(one.ended_at - one.started_at)}"
        word = (one.outcome or one.reason or ("running" if one.ended_at is None else "parked")).replace("_", " ")
        began = local_text(one.started_at, wall_of(found), fine=True)
        lines.append(f"{one.attempt}  {began}{spent}  {word}, held by {ending(one.holder or '')}, fence {one.fence}")
    return [("attempts" if len(lines) > 1 else "attempt", said("\n".join(lines)))]


def _time(at: datetime, found: "Why") -> str:
    """The time of an entry on the task's wall, with its day where it is not the day of the instant."""
    there = at.astimezone(found.zone) if found.zone is not None else at
    due = found.at.astimezone(found.zone) if found.at is not None and found.zone is not None else found.at
    time = f"{there:%H:%M:%S}.{there.microsecond // 1000:03d}"
    return time if due is not None and there.date() == due.date() else f"{there:%m-%d} {time}"
