"""`enable`, `disable`, `pause`, `unpause`, `remove`: the switches of a task."""

import os
import sys
from typing import TYPE_CHECKING

import click

from duly.cli import out
from duly.cli.frame import command, settings
from duly.cli.joining import hint, hint_person, open_for_change
from duly.cli.moments import ahead, away, full_text
from duly.cli.table import plain
from duly.cli.words import many
from duly.errors import Invalid, Refused

if TYPE_CHECKING:
    from duly.core.task import Task
    from duly.operations.tasks import Paused
    from duly.store.store import Store


@command(
    name="enable", help="Switch a task on. It owes nothing of the time it was off.", params=[click.Argument(["task"])]
)
def enable(task: str) -> None:
    """Switch a task on."""
    _switch(task, on=True)


@command(name="disable", help="Switch a task off. A run that is live goes on.", params=[click.Argument(["task"])])
def disable(task: str) -> None:
    """Switch a task off."""
    _switch(task, on=False)


def _switch(word: str, *, on: bool) -> None:
    from duly.app import loops
    from duly.operations.lookup import caller
    from duly.operations.rail import asking_run

    with open_for_change() as store:
        task = loops.switch(store, word, on=on, by=caller(), environ=os.environ, run=asking_run())
        _answer(store, task, "enabled" if on else "disabled")


def _answer(store: "Store", task: "Task", done: str) -> None:
    from duly import zones
    from duly.core.loops import path_of
    from duly.operations import listing
    from duly.operations.lookup import told

    with store.read() as session:
        one = listing.one(session, task)
        now = session.now
    if settings().as_json:
        out.document(listing.shape(one))
        return
    following = ""
    if task.next_start_at is not None and not task.broken:
        at = task.next_start_at
        following = f", next {full_text(at, zones.zone(task.definition.zone))} ({away(at, now)})"
    elif task.definition.enabled and one.pauses:
        following = ", but paused"
    out.line(f"{done} {plain(told(task))}{following}")
    path = path_of(task.source)
    if path is not None:
        hint(f"it is written in {plain(path)}")
    hint_person(task)


SCOPE = [
    click.Argument(["task"], required=False),
    click.Option(["--project"], metavar="P", help="All tasks of a project."),
    click.Option(["--all", "all_"], is_flag=True, help="All tasks of the store."),
]


@command(
    name="pause",
    help="Hold a task, a project or all: nothing opens by time until the hold is lifted or over. Live runs go on.",
    epilog="duly pause backup --until 2h --note 'disk is being replaced'\nduly pause --all",
    params=[
        *SCOPE,
        click.Option(
            ["--until"], metavar="I", help="When the hold ends by itself, such as 2h or 2026-12-01T08:00:00Z."
        ),
        click.Option(["--note"], metavar="T", help="Why, for others to read."),
    ],
)
def pause(task: str | None, project: str | None, all_: bool, until: str | None, note: str | None) -> None:
    """Hold tasks."""
    from duly.core.notes import check_note
    from duly.operations import tasks
    from duly.operations.lookup import caller

    scope, target = _scope(task, project, all_)
    check_note(note)
    end = ahead(until, "--until") if until is not None else None
    with open_for_change() as store:
        _told(tasks.pause(store, scope, target, until=end, note=note, by=caller()), "paused", target)


@command(
    name="unpause", help="Lift the hold of a task, a project or all. Nothing of the time held is run.", params=SCOPE
)
def unpause(task: str | None, project: str | None, all_: bool) -> None:
    """Lift a hold."""
    from duly.operations import tasks
    from duly.operations.lookup import caller
    from duly.operations.rail import asking_run

    scope, target = _scope(task, project, all_)
    with open_for_change() as store:
        lifted = tasks.unpause(store, scope, target, by=caller(), run=asking_run())
        if lifted is None:
            what = plain(target) or "the store"
            out.document({"pause": None, "tasks": 0}) if settings().as_json else out.line(f"{what} was not paused")
            return
        _told(lifted, "unpaused", target)


def _scope(task: str | None, project: str | None, all_: bool) -> tuple[str, str]:
    given = [
        scope
        for scope, wanted in (("task", task is not None), ("project", project is not None), ("store", all_))
        if wanted
    ]
    if len(given) != 1:
        raise Invalid(
            "one of TASK, --project P and --all says what is meant",
            field="TASK",
            hint="duly pause TASK, or duly pause --all",
        )
    return given[0], task or project or ""


def _told(done: "Paused", verb: str, target: str) -> None:
    from duly.operations import shapes

    if settings().as_json:
        out.document(shapes.pause(done.pause) | {"tasks": done.tasks})
        return
    what = {"store": "all", "project": f"project {target}"}.get(done.pause.scope, target)
    end = ""
    if verb == "paused" and done.pause.until is not None:
        end = f" until {full_text(done.pause.until, None)}"
    out.line(f"{verb} {plain(what)}{end} ({many(done.tasks, 'task')})")


@command(
    name="remove",
    help="Remove a task: what waits is dropped, what runs is cancelled. Its runs and its ledger stay.",
    params=[click.Argument(["task"]), click.Option(["--yes"], is_flag=True, help="Do not ask.")],
)
def remove(task: str, yes: bool) -> None:
    """Remove a task."""
    from duly.operations import shapes, tasks
    from duly.operations.lookup import caller, told

    with open_for_change() as store:
        if not yes:
            _confirm(store, task)
        removed = tasks.remove(store, task, by=caller())
    if settings().as_json:
        out.document(shapes.task(removed, pauses=(), last_run=None, open_missed=0))
        return
    out.line(f"removed {plain(told(removed))}")
    hint(f"its story stays: duly ledger --task {removed.id}")


def _confirm(store: "Store", word: str) -> None:
    from duly.operations.lookup import find_task, told

    with store.read() as session:
        task = find_task(session, word)
        live = len(session.runs.live_of(task.id))
    named = plain(told(task))
    if settings().as_json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise Refused(
            "needs_confirmation",
            f"removing {named} needs a yes, and nobody can be asked here",
            details={"task": task.id},
            hint=f"duly remove {named} --yes",
        )
    running = f", and cancel {many(live, 'live run')}" if live else ""
    out.flush()
    sys.stderr.write(f"Remove {named} ({many(task.runs, 'run')} so far){running}? [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise Refused("needs_confirmation", "nothing was removed", details={"task": task.id})
