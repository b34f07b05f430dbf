"""Tasks: list them, look at one."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from duly.operations import listing
from duly.web.describing import described
from duly.web.frame import Reads, answer

router = APIRouter(tags=["tasks"])
MOST, USUAL = 200, 50


@router.get("/tasks", **described("List the tasks", right="read", answer="[task]"))
def tasks(ask: Reads, cursor: str | None = None, limit: Annotated[int, Query(ge=1, le=MOST)] = USUAL) -> Response:
    """List the tasks by project and name, a page at a time."""
    with ask.store.read() as session:
        found, following = listing.tasks(session, cursor=cursor, most=limit)
        items = [listing.shape(one) for one in found if ask.sees(one.task.definition.project)]
    return answer({"items": items, "next": following})


@router.get("/tasks/{id}", **described("Show a task", right="read", answer="task", headers={"ETag": "its version"}))
def task(ask: Reads, id: str) -> Response:  # noqa: A002 - the word of the path
    """Show a task, by its id or its name."""
    with ask.store.read() as session:
        found = ask.task(session, id)
        return answer(listing.shape(listing.one(session, found)), version=found.version)
