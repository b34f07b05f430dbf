"""Projects: what tasks belong to, and the folder in which their work is done."""

from dataclasses import dataclass

from duly.core.loops import path_of
from duly.core.names import key_of
from duly.core.reading import read_name
from duly.core.run import Entry
from duly.errors import Invalid, Refused
from duly.operations.lookup import project_key, told
from duly.operations.owned import host
from duly.operations.rail import refuse_in_a_run
from duly.store import Session, Store, removing
from duly.store.projects import Project
from duly.store.switches import lift_over

TASKS_TOLD = 5
PATH_MOST = 4_095


@dataclass(frozen=True, slots=True, kw_only=True)
class Owned:
    """A project with how many tasks it has, and how many of those work in its folder because they name none."""

    project: Project
    tasks: int
    in_its_folder: int


def set_project(
    store: Store, name: str, *, folder: str | None, by: str, clear: bool = False, run: str | None = None
) -> Owned:
    """Make a project, or set the folder (an absolute path) in which its tasks work; `clear` takes the folder away.

    A project that is there keeps the name it goes by. Refused while tasks would be left without a folder; those that
    files define go with the folder. Naming a folder, whose loop files run then, is for a person: from a `run` it is
    refused `not_allowed`.
    """
    if folder is not None:
        refuse_in_a_run(run, "naming a folder whose loop files run then", f"duly project set {name} --dir PATH")
    wanted = read_name(name, "project")
    if folder is not None and (not folder.startswith("/") or "\0" in folder or len(folder.encode()) > PATH_MOST):
        raise Invalid("it is not an absolute path that a system can have", field="dir", hint="--dir /srv/reports")
    with store.write() as session:
        lift_over(session)
        key = key_of(wanted)
        known = session.projects.by_key(key)
        session.projects.ensure(key, wanted, session.now)
        before = session.projects.by_key(key)
        assert before is not None
        if folder is not None or clear:
            if clear:
                _remove_of_files(session, key, by=by)
            left = [] if folder is not None else _in_its_folder(session, before)
            if left:
                raise Invalid(
                    f"{len(left)} of its tasks work there because they name no folder: {_few(left)}",
                    field="dir",
                    hint=f"duly edit {left[0]} --cwd PATH",
                    details={"tasks": left},
                )
            session.projects.set_dir(key, folder, host())
            session.defaults.forget()
        after = session.projects.by_key(key)
        assert after is not None
        if known != after:
            told_ = {"project": after.name, "dir": after.dir, "was": None if known is None else known.dir}
            session.ledger.add([Entry(kind="defined", at=session.now, by=by, details=told_)])
        return _owned(session, after)


def remove_project(store: Store, name: str, *, by: str) -> Project:
    """Remove a project with its default rules and its hold; refused `already_exists` while it has tasks."""
    with store.write() as session:
        lift_over(session)
        key = project_key(session, name)
        gone = session.projects.by_key(key)
        assert gone is not None
        tasks = [told(task) for task in session.tasks.in_scope("project", key)]
        if tasks:
            raise Refused(
                "already_exists",
                f"the project {gone.name} still has {len(tasks)} task{'s' * (len(tasks) != 1)}: {_few(tasks)}",
                details={"project": gone.name, "tasks": tasks[:TASKS_TOLD], "count": len(tasks)},
                hint=f"duly edit {tasks[0]} --project P, or duly remove {tasks[0]}",
            )
        for pause in session.pauses.all():
            if pause.scope == "project" and pause.target == key:
                session.pauses.delete(pause.id)
        session.defaults.set(key, {})
        session.projects.delete(key)
        session.ledger.add([Entry(kind="removed", at=session.now, by=by, details={"project": gone.name})])
        return gone


def owned(session: Session, key: str) -> Owned | None:
    """Give the project of a key as the list shows it."""
    project = session.projects.by_key(key)
    return None if project is None else _owned(session, project)


def projects(session: Session) -> list[Owned]:
    """List the projects by their names."""
    return [_owned(session, project) for project in session.projects.all()]


def _remove_of_files(session: Session, key: str, *, by: str) -> None:
    """Remove the tasks that files define: a folder that nobody names any more does not count."""
    for task in session.tasks.in_scope("project", key):
        path = path_of(task.source)
        if path is not None:
            removing.remove(session, task, by=by, details={"why": "folder", "path": path})
    session.projects.set_loops(key, {})


def _owned(session: Session, project: Project) -> Owned:
    tasks = session.tasks.in_scope("project", project.key)
    return Owned(project=project, tasks=len(tasks), in_its_folder=len(_in_its_folder(session, project)))


def _in_its_folder(session: Session, project: Project) -> list[str]:
    tasks = session.tasks.in_scope("project", project.key)
    return [told(task) for task in tasks if "cwd" in task.definition.inherited]


def _few(names: list[str]) -> str:
    more = f" and {len(names) - TASKS_TOLD} more" if len(names) > TASKS_TOLD else ""
    return ", ".join(names[:TASKS_TOLD]) + more
