"""`project set`, `project list`, `project remove`: what tasks belong to, and the folder they work in."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from duly.cli import out
from duly.cli.frame import Verbs, command, settings
from duly.cli.joining import absolute, find, hint, open_for_change
from duly.cli.table import Cell, Column, plain, render
from duly.cli.words import many
from duly.errors import Invalid

if TYPE_CHECKING:
    from duly.operations.loops import Reconciled
    from duly.operations.projects import Owned
    from duly.store.projects import Project
    from duly.store.store import Store

NAME = click.Argument(["name"], metavar="NAME")


@command(
    name="set",
    help="Make a project, or set the folder in which those of its tasks work that name none. Its loop files, "
    ".agents/loops/*.md there and above it up to the worktree's root, and those at home, are its tasks from then on.",
    epilog="duly project set reports --dir /srv/reports",
    params=[
        NAME,
        click.Option(["--dir", "folder"], metavar="PATH", help="The folder; a relative one is taken from here."),
        click.Option(["--no-dir"], is_flag=True, help="Take the folder away."),
    ],
)
def set_(name: str, folder: str | None, no_dir: bool) -> None:
    """Make or change a project."""
    from duly.operations import projects, shapes
    from duly.operations.lookup import caller
    from duly.operations.rail import asking_run

    if folder is not None and no_dir:
        raise Invalid("--dir and --no-dir exclude each other", field="dir")
    path = absolute(folder, "dir") if folder is not None else None
    missing = path is not None and not Path(path).is_dir()
    with open_for_change(create=True) as store:
        done = projects.set_project(store, name, folder=path, clear=no_dir, by=caller(), run=asking_run())
        files = _reconciled(store, done.project)
        with store.read() as session:
            done = projects.owned(session, done.project.key) or done
    warnings = [f"{path} is no folder now; runs that find none there fail (no_directory)"] if missing else []
    if settings().as_json:
        shape = shapes.project(done.project, tasks=done.tasks, in_its_folder=done.in_its_folder)
        changes = {
            name: [] if files is None else list(getattr(files, name)) for name in ("added", "changed", "removed")
        }
        out.document(shape | {"warnings": warnings, "loop_files": changes})
        return
    for note in warnings:
        out.note(f"warning: --dir: {plain(note)}")
    where = f" works in {plain(done.project.dir)}" if done.project.dir else " has no folder of its own"
    out.line(f"project {plain(done.project.name)}{where} ({_tasks(done)})")
    if files is not None:
        _tell_files(files)


def _reconciled(store: "Store", project: "Project") -> "Reconciled | None":
    """Bring in the loop files of a project whose folder is one of this host."""
    from duly.app import loops
    from duly.operations import owned

    if project.dir is None or not owned.is_here(store, project):
        return None
    return loops.reconcile(store, project, os.environ)


def _tell_files(files: "Reconciled") -> None:
    from duly.core.loops import told

    for verb, names in (("added", files.added), ("changed", files.changed), ("removed", files.removed)):
        for name in names:
            out.line(f"  {verb} {plain(name)}, by its loop file")
    for path, fault in files.faults:
        out.note(f"warning: {plain(told(fault, path))}")


@command(name="list", help="List the projects, their folders, and how many tasks each has.")
def list_() -> None:
    """List the projects."""
    from duly.operations import projects, shapes

    store = find()
    found: list[Owned] = []
    if store is not None:
        try:
            with store.read() as session:
                found = projects.projects(session)
        finally:
            store.close()
    if settings().as_json:
        items = [shapes.project(one.project, tasks=one.tasks, in_its_folder=one.in_its_folder) for one in found]
        out.document({"items": items, "next": None})
        return
    if not found:
        hint("there is no project yet: the first task makes one, or duly project set NAME")
        return
    columns = [Column(head="PROJECT", cut=True), Column(head="TASKS", right=True), Column(head="FOLDER", cut=True)]
    out.lines(render(columns, [_row(one) for one in found]))


@command(name="remove", help="Remove a project that has no tasks, with its default rules and its hold.", params=[NAME])
def remove(name: str) -> None:
    """Remove a project."""
    from duly.operations import projects, shapes
    from duly.operations.lookup import caller

    with open_for_change() as store:
        gone = projects.remove_project(store, name, by=caller())
    if settings().as_json:
        out.document(shapes.project(gone, tasks=0, in_its_folder=0))
        return
    out.line(f"removed project {plain(gone.name)}")


project = Verbs("project", set_, list_, remove, help="Projects: what tasks belong to, and the folder they work in.")


def _tasks(one: "Owned") -> str:
    if not one.in_its_folder:
        return many(one.tasks, "task")
    return f"{many(one.tasks, 'task')}, {one.in_its_folder} of them there"


def _row(one: "Owned") -> list[Cell | str]:
    return [plain(one.project.name), str(one.tasks), plain(one.project.dir or "")]
