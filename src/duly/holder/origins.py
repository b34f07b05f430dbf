"""Where claimed tasks come from: the folders of the projects whose files define them, those of this host alone."""

import socket
from collections.abc import Iterable

from duly.core.loops import path_of
from duly.holder.dispatcher import Won
from duly.store import Session


def origins_of(session: Session, won: Iterable[Won], *, one_place: bool) -> dict[str, str]:
    """Give the folder of the project of each claimed run that a file defines, by the run; those of this host alone."""
    found: dict[str, str] = {}
    for one in won:
        project = None if path_of(one.task.source) is None else session.projects.by_key(one.run.project)
        if project is None or project.dir is None:
            continue
        if one_place or project.dir_host in (None, socket.gethostname()):
            found[one.run.id] = project.dir
    return found
