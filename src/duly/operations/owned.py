"""Tasks that a file defines: what is changed in the file alone, and what is refused while its folder is away."""

import socket
from pathlib import Path

from duly.core.loops import path_of
from duly.core.task import Task
from duly.errors import Refused
from duly.operations.lookup import told
from duly.store import Session, Store
from duly.store.address import Address
from duly.store.projects import Project
from duly.there import missing


def host() -> str:
    """Name this host, as holders do."""
    return socket.gethostname()


def is_here(store: Store, project: Project) -> bool:
    """Whether the folder of a project is one of this host: a store in a file has one machine, a server has many."""
    return isinstance(store.address, Address) or project.dir_host in (None, host())


def refuse_edit(task: Task) -> None:
    """Refuse to change what a file defines in any other way than in the file."""
    path = path_of(task.source)
    if path is None:
        return
    raise Refused(
        "owned_by_file",
        f"{_where(task)} defines {told(task)}",
        details={"task": task.id, "path": path, "line": task.source.get("line")},
        hint=f"change the file; duly enable and duly disable {told(task)} write into it",
    )


def refuse_switch(task: Task) -> None:
    """Refuse to switch in the store alone what a file switches."""
    path = path_of(task.source)
    if path is None:
        return
    raise Refused(
        "owned_by_file",
        f"{_where(task)} says whether {told(task)} is on",
        details={"task": task.id, "path": path, "line": task.source.get("line")},
        hint=f"write enabled: true or false there, or hold the task: duly pause {told(task)}",
    )


def refuse_removal(store: Store, session: Session, task: Task) -> None:
    """Refuse to remove a task while its file is there, or may be: it would come back."""
    path = path_of(task.source)
    project = None if path is None else project_of(session, task)
    if path is None or project is None or project.dir is None:
        return
    here = is_here(store, project)
    if here and missing(project.dir) is None and not Path(path).is_symlink() and not Path(path).exists():
        return
    where = "" if here else f" on {project.dir_host}"
    raise Refused(
        "owned_by_file",
        f"{_where(task)}{where} defines {told(task)}, and would bring it back",
        details={"task": task.id, "path": path, "line": task.source.get("line")},
        hint=f"delete the file; or duly disable {told(task)}, or duly pause {told(task)}",
    )


def refuse_missing(store: Store, session: Session, task: Task) -> None:
    """Refuse to run what a file defines while the folder of its project cannot be used."""
    project = None if path_of(task.source) is None else project_of(session, task)
    if project is None or project.dir is None:
        return
    why = missing(project.dir) if is_here(store, project) else project.loops.get("missing")
    if why is not None:
        raise Refused(
            "project_missing",
            f"the folder of the project {project.name}, {project.dir}, cannot be used: {why}",
            details={"task": task.id, "project": project.name, "dir": project.dir, "host": project.dir_host},
            hint=f"bring it back, or name another: duly project set {project.name} --dir PATH",
        )


def project_of(session: Session, task: Task) -> Project | None:
    """Give the project of a task."""
    from duly.core.names import key_of

    return session.projects.by_key(key_of(task.definition.project))


def _where(task: Task) -> str:
    line = task.source.get("line")
    return str(task.source.get("path")) + (f":{line}" if line else "")
