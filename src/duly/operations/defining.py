"""Tasks that are defined from elsewhere, by programs and agents: read strictly, with a folder to work in, and added."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice

from duly import zones
from duly.core.names import key_of
from duly.core.task import Definition, Task
from duly.errors import Invalid, Refused
from duly.operations import listing, previewing, tasks
from duly.operations.edits import NEED_NO_FOLDER, Edited
from duly.operations.limits import check_fits
from duly.store import Session, Store

UPCOMING = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Created:
    """A task that was added, or would be, with what its author should know about it."""

    task: Task
    warnings: tuple[str, ...]


def create(
    store: Store,
    given: object,
    *,
    by: str,
    source: Mapping[str, object],
    projects: listing.Projects = None,
    dry_run: bool = False,
    run: str | None = None,
) -> Created:
    """Add a task by what somebody elsewhere wrote of it; `projects`: where who asks may have tasks.

    Its folder is the one it names, else its project's: that of a process here means nothing to who is elsewhere.
    Refused `already_exists`, and `not_allowed` for another project; Invalid with all faults.
    """
    from duly.definitions import read_definition

    with store.read() as session:
        read = read_definition(given, now=session.now, default_zone=zones.machine_zone())
        check_project(read.definition.project, projects)
        check_folder(session, read.definition)
        notes = check_fits(session, read.definition)
    task = tasks.add(store, read.definition, by=by, source=source, dry_run=dry_run, run=run)
    return Created(task=task, warnings=(*read.warnings, *notes))


def check_project(name: str, projects: listing.Projects) -> None:
    """Refuse a project to which who asks has no right."""
    if projects is not None and key_of(name) not in projects:
        raise Refused("not_allowed", "it belongs to a project that this token does not reach")


def check_folder(session: Session, definition: Definition) -> None:
    """Refuse work without a folder to do it in: Invalid where neither the task nor its project names one."""
    action = session.defaults.fill_in(definition).action
    if action["kind"] not in NEED_NO_FOLDER and action.get("cwd") is None:
        raise Invalid(
            f"it is missing, and the project {definition.project} has no folder",
            field="action.cwd",
            hint="an absolute path on the host that serves",
        )


def shape(session: Session, done: Created, *, dry_run: bool) -> dict[str, object]:
    """Show a task that was added, or would be, with what it means and when it comes."""
    coming = islice(previewing.ahead(done.task, known=not dry_run), UPCOMING)
    shown = _shape(session, done.task, coming) | {"warnings": list(done.warnings), "dry_run": dry_run}
    if dry_run and done.task.definition.rules.spread:
        shown["next_start_at"] = None  # its share is drawn from the id that it will get
    return shown


def edited_shape(session: Session, done: Edited, *, dry_run: bool) -> dict[str, object]:
    """Show a task that was edited, or would be: as it is then, with what changed, field by field."""
    task = done.after
    coming = () if task.broken is not None else islice(previewing.upcoming(task, session.now), UPCOMING)
    return _shape(session, task, coming) | {
        "changes": [{"field": one.field, "old": one.old, "new": one.new} for one in done.changes],
        "new_era": done.new_era,
        "ended": done.ended,
        "warnings": list(done.warnings),
        "dry_run": dry_run,
    }


def _shape(session: Session, task: Task, coming: Iterable[previewing.Coming]) -> dict[str, object]:
    definition = task.definition
    zone = None if task.broken is not None else zones.zone(definition.zone)
    return listing.shape(listing.one(session, task)) | {
        "words": previewing.say(definition.triggers),
        "canonical": previewing.canonical(definition.triggers),
        "upcoming": [] if zone is None else [previewing.item_of(task, zone, at) for at in coming],
    }
