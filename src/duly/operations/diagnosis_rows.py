"""What `doctor` reads in a store's rows: who serves, what is due, clocks and zones, tasks that cannot run."""

import os
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from pathlib import Path

from duly import zones
from duly.clock import MICROSECOND, from_us
from duly.core.names import key_of
from duly.core.spans import write_instant
from duly.core.task import Task
from duly.operations import serving as servers
from duly.operations.ailment import Ailment
from duly.operations.lookup import told
from duly.runners import processes
from duly.store.rows import HolderRow
from duly.store.store import Session, Store

Look = Callable[[Store, Session], Iterator[Ailment]]
PAGE = 1_000
NAMED = 5
DEATHS_MOST = 3
"""Deaths of whoever served within a day that are no accident any more."""
DEATHS_WITHIN = timedelta(days=1)
OUTAGES_LOOKED_AT = 100
CLOCK_SLACK = timedelta(seconds=5)
"""Two looks at one clock differ by less, however busy the machine is."""


def serving(store: Store, session: Session) -> Iterator[Ailment]:
    """Somebody serves where something is due or waits, and who serves is heard of."""
    alive = servers.alive(store, session)
    # Who drains or is passive starts nothing.
    if not any(row.id in alive and row.state == "alive" and row.slots > 0 for row in session.holders.living()):
        yield from _nobody(session)
    for row in session.holders.living():
        late = session.lease_us - row.beat_lease_us
        if row.id in alive and row.boot == store.clock.boot_id() and late > row.lease_for // MICROSECOND:
            yield Ailment(
                check="holder_silent",
                subject=row.id,
                text=f"{row.id} (pid {row.pid} on {row.host}) lives, and has not beaten for {late // 1_000_000:,} s;"
                f" its leases end after {row.lease_for.total_seconds():g} s",
                details={"holder": row.id, "pid": row.pid, "host": row.host, "silent_s": round(late / 1e6, 1)},
                hint=f"look at process {row.pid}: it may be stopped (kill -CONT {row.pid}), or its disk may hang",
            )


def deaths(_: Store, session: Session) -> Iterator[Ailment]:
    """Who serves does not die again and again."""
    recent = [
        one.entry
        for one in session.ledger.outages(session.ledger.last() + 1, most=OUTAGES_LOOKED_AT)
        if one.entry.reason == "died" and session.now - one.entry.at <= DEATHS_WITHIN
    ]
    if len(recent) >= DEATHS_MOST:
        last = recent[0]
        yield Ailment(
            check="dies_often",
            subject=str(last.details.get("last")),
            text=f"whoever served died {len(recent)} times within a day; the last was found at"
            f" {write_instant(last.at.replace(microsecond=0))}",
            details={"deaths": len(recent), "last_at": write_instant(last.at)},
            hint="duly outages; the log of the service (standard error) and of the kernel say what killed it",
        )


def _nobody(session: Session) -> Iterator[Ailment]:
    due = session.tasks.due(session.now, PAGE)
    counts = session.runs.counts()
    held = counts.get("held", 0)
    if due:
        oldest = min((task.next_due_at for task in due if task.next_due_at is not None), default=session.now)
        yield Ailment(
            check="nobody_serves",
            subject=told(due[0]),
            text=f"{_many(len(due), 'task')} {'is' if len(due) == 1 else 'are'} due and nobody serves the store:"
            f" {_names(due)}; the oldest since {write_instant(oldest.replace(microsecond=0))}",
            details={"due": len(due), "oldest": write_instant(oldest), "tasks": [told(task) for task in due[:PAGE]]},
            hint="duly serve",
        )
    if counts.get("waiting", 0):
        yield Ailment(
            check="nobody_serves",
            text=f"{_many(counts['waiting'], 'run')} wait, and nobody serves the store",
            details={"waiting": counts["waiting"]},
            hint="duly serve",
        )
    if held:
        yield Ailment(
            check="held_by_nobody",
            text=f"{_many(held, 'run')} {'is' if held == 1 else 'are'} held by holders that are gone; their work may"
            " go on under its keepers",
            details={"held": held},
            hint="duly serve takes them over",
        )


def clocks(_store: Store, session: Session) -> Iterator[Ailment]:
    """This machine's clock is not behind what is on record."""
    newest = session.ledger.newest_us()
    now = session.now
    if newest is not None and from_us(newest) > now + CLOCK_SLACK:
        ahead = from_us(newest) - now
        yield Ailment(
            check="clock_behind",
            text=f"the newest entry of the ledger is {_span(ahead)} ahead of this machine's clock, which says"
            f" {write_instant(now.replace(microsecond=0))}: the clock is slow, or was fast before",
            details={"now": write_instant(now), "newest": write_instant(from_us(newest)), "ahead_s": _seconds(ahead)},
            hint="set the clock (timedatectl)",
        )
    for task in _tasks(session):
        ahead = task.planned_until - now
        if ahead > CLOCK_SLACK and not task.done and task.definition.triggers:
            cursor = write_instant(task.planned_until.replace(microsecond=0))
            yield Ailment(
                check="cursor_ahead",
                subject=told(task),
                text=f"{told(task)} opens nothing before {cursor}: its occurrences until then have their fate, by a"
                f" clock that was {_span(ahead)} ahead",
                details={
                    "task": task.id,
                    "planned_until": write_instant(task.planned_until),
                    "ahead_s": _seconds(ahead),
                },
                hint=f"duly run {told(task)} by hand until then; or duly export it, remove it, and add it again",
            )


def zone_data(_store: Store, session: Session) -> Iterator[Ailment]:
    """This machine's zone data are not older than those the store was planned with."""
    mine = zones.zone_data_version()
    newest = max([row.zone_data for row in session.holders.living()], default="")
    newest = max([newest, *(task.zone_data or "" for task in _tasks(session))])
    if newest > mine:
        yield Ailment(
            check="zone_data_older",
            text=f"the zone data here are {mine}, and the store was planned with {newest}",
            details={"here": mine, "store": newest},
            hint="pip install --upgrade tzdata, or update the system's zone data",
        )


def tasks(_store: Store, session: Session) -> Iterator[Ailment]:
    """Every task's definition reads, and can be planned."""
    for task in _tasks(session):
        if task.broken is not None:
            yield Ailment(
                check="broken_task",
                subject=told(task),
                text=f"{told(task)} cannot run: {task.broken.field}: {task.broken.message}",
                details={"task": task.id, "field": task.broken.field},
                hint=f"duly show {told(task)}",
            )


def programs(store: Store, session: Session) -> Iterator[Ailment]:
    """What commands start is found by the PATH that they will have, and where they work is there."""
    served = list(_served_by(store, session))
    paths = {path for _, path in served} or {os.environ.get("PATH", os.defpath)}
    for task in _tasks(session):
        action = task.definition.action
        if task.broken is not None or not task.definition.enabled or task.done or action.get("kind") != "command":
            continue
        cwd = str(action.get("cwd") or Path.home())
        if not Path(cwd).is_dir():
            yield Ailment(
                check="folder_missing",
                subject=told(task),
                text=f"{told(task)} works in {cwd}, which is no folder now; its runs fail (no_directory)",
                details={"task": task.id, "cwd": cwd},
                hint=f"mkdir -p {cwd}",
            )
            continue
        argv = action.get("argv")
        if not isinstance(argv, list | tuple):
            continue  # what a shell line calls is known to the shell alone
        own = action.get("env")
        given = own.get("PATH") if isinstance(own, Mapping) else None
        for path in [str(given)] if given is not None else sorted(paths):
            if _found(str(argv[0]), path, cwd):
                continue
            whose = "its own PATH" if given is not None else "the PATH of who serves" if served else "this PATH"
            yield Ailment(
                check="program_missing",
                subject=told(task),
                text=f"{told(task)} starts {argv[0]}, which is not found by {whose} ({path})",
                details={"task": task.id, "program": str(argv[0]), "path": path},
                hint="name the program by its whole path, or serve with a PATH that has its folder",
            )
            break


LOOKS: Mapping[str, Look] = {
    "serving": serving,
    "deaths": deaths,
    "clocks": clocks,
    "zone_data": zone_data,
    "tasks": tasks,
    "programs": programs,
}


def _served_by(store: Store, session: Session) -> Iterator[tuple[HolderRow, str]]:
    """Give who serves with the PATH that its commands have, where this machine lets it be seen."""
    alive = servers.alive(store, session)
    for row in session.holders.living():
        if row.id not in alive or row.ticks is None or processes.living(row.pid, row.ticks) is None:
            continue
        for variable in processes.environ(row.pid):
            if variable.startswith(b"PATH="):
                yield row, os.fsdecode(variable.removeprefix(b"PATH="))


def _found(program: str, path: str, cwd: str) -> bool:
    if "/" in program:
        return os.access(Path(cwd, program), os.X_OK)
    return any(os.access(Path(cwd, folder or ".", program), os.X_OK) for folder in path.split(":"))


def _tasks(session: Session) -> Iterator[Task]:
    after = ("", "")
    while page := session.tasks.page(after=after, most=PAGE):
        yield from page
        last = page[-1].definition
        after = (key_of(last.project), key_of(last.name))


def _names(found: list[Task]) -> str:
    more = f" and {len(found) - NAMED} more" if len(found) > NAMED else ""
    return ", ".join(told(task) for task in found[:NAMED]) + more


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}" + ("" if count == 1 else "s")


def _span(span: timedelta) -> str:
    return str(span - timedelta(microseconds=span.microseconds))


def _seconds(span: timedelta) -> float:
    return round(span.total_seconds(), 3)
