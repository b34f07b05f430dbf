"""Projects: what tasks belong to, and the folder in which their work is done."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Response

from duly.core.names import key_of
from duly.errors import Refused
from duly.operations import projects, shapes
from duly.operations.projects import Owned
from duly.web import fields
from duly.web.bodies import Asked, refuse_others
from duly.web.describing import described
from duly.web.fields import WORD_MOST
from duly.web.frame import Admin, Reads, answer, nothing

router = APIRouter(tags=["store"])
PROJECT: dict[str, Any] = fields.object_of(
    {"dir": {"type": ["string", "null"], "description": "an absolute path on the host that serves; null takes it away"}}
)
Name = Annotated[str, Path(max_length=WORD_MOST)]


@router.get("/projects", **described("List the projects", right="read", answer="[project]"))
def all_(ask: Reads) -> Response:
    """List the projects by their names."""
    with ask.store.read() as session:
        found = [one for one in projects.projects(session) if ask.sees(one.project.key)]
    return answer({"items": [_shape(one) for one in found], "next": None})


@router.get("/projects/{name}", **described("Show a project", right="read", answer="project"))
def one(ask: Reads, name: Name) -> Response:
    """Show a project with its folder and how many tasks it has."""
    ask.check(name)
    with ask.store.read() as session:
        found = projects.owned(session, key_of(name))
    if found is None:
        raise Refused("unknown_id", "there is no such project")
    return answer(_shape(found))


@router.put(
    "/projects/{name}",
    **described(
        "Make or change a project",
        right="admin",
        body=PROJECT,
        example={"dir": "/srv/shop"},
        answer="project",
        errors=(409,),
    ),
)
def set_(ask: Admin, name: Name, body: Asked) -> Response:
    """Make a project, or set its folder; its loop files are its tasks a few seconds later, on the host that serves."""
    ask.check(name)
    refuse_others(body, "dir")
    folder = fields.text(body, "dir")
    clear = "dir" in body and folder is None
    done = projects.set_project(ask.store, name, folder=folder, clear=clear, by=ask.by, run=ask.asker.run)
    return answer(_shape(done))


@router.delete("/projects/{name}", **described("Remove a project", right="admin", status=204, errors=(409,)))
def remove(ask: Admin, name: Name) -> Response:
    """Remove a project that has no tasks, with its default rules and its hold."""
    ask.check(name)
    projects.remove_project(ask.store, name, by=ask.by)
    return nothing()


def _shape(one: Owned) -> dict[str, object]:
    return shapes.project(one.project, tasks=one.tasks, in_its_folder=one.in_its_folder)
